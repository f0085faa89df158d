"""`FrozenConfig` and the field types that all recipe sections share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializeAsAny,
)

from posattn.errors import RecipeError
from posattn.registry import Registry

T = TypeVar("T")


def _source_text(value: object) -> object:
    """Return the text a number was written as, where the reader kept it (`name: 12e3`)."""
    return getattr(value, "source_text", value)


Text = Annotated[str, BeforeValidator(_source_text)]
"""A string field; `12e3` and `off` in YAML stay the text that the user wrote."""

Many = Annotated[tuple[T, ...], Field(strict=False)]
"""A tuple field that takes a YAML list; the items stay strict."""


class FrozenConfig(BaseModel):
    """One section of a recipe: frozen, strict types, unknown keys refused, no NaN."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=True
    )


class NamedConfig(FrozenConfig):
    """A section whose `name` picks an entry of a registry; the entry's own config reads the rest."""

    name: str


@dataclass(frozen=True)
class OpenTo:
    """Marks an open field with its registry; in the JSON Schema every entry is one choice."""

    registry: Registry[Any]
    leave_out: Callable[[Any], bool] | None = None  # configs that cannot stand here

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return a choice of bare names and of every entry's own schema."""
        names, choices = [], []
        for name in self.registry.names():
            config = self.registry.get(name).Config
            if self.leave_out is not None and self.leave_out(config):
                continue
            names.append(name)
            reference = handler(config.__pydantic_core_schema__)
            option = dict(handler.resolve_ref_schema(reference))
            option["properties"] = {**option["properties"], "name": {"const": name}}
            option["required"] = sorted({*option.get("required", []), "name"})
            choices.append({**option, "title": name})
        return {"oneOf": [{"enum": names}, *choices]}


def open_field(
    registry: Registry[Any], base: Any, leave_out: Callable[[Any], bool] | None = None
) -> Any:
    """Return the field type for 'any entry of this registry', open to plug-ins.

    `leave_out` says of a config, or of its class, that it cannot stand here.

    A registry entry has an attribute `Config`, a `NamedConfig`. A bare name stands for the entry
    with its defaults. Dumping keeps the options of the entry, not only those of `base`.
    """

    def resolve(value: object) -> object:
        found = entry_config(value)
        if leave_out is not None and leave_out(found):
            raise ValueError(f"the {registry.kind} '{found.name}' cannot stand here")
        return found

    def entry_config(value: object) -> Any:
        if isinstance(value, base):
            return value
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            known = ", ".join(registry.names())
            raise ValueError(f"the {registry.kind} needs a name: {{name: ...}} (known: {known})")
        try:
            entry = registry.get(value["name"])
        except RecipeError as error:
            raise ValueError(str(error)) from error
        return entry.Config.model_validate(value)

    return Annotated[SerializeAsAny[base], BeforeValidator(resolve), OpenTo(registry, leave_out)]  # type: ignore[misc]
