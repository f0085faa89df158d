"""The keys of a study that say which combinations it has, checked with their places in the file."""

import re
from math import prod
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from posattn.comparison.factorial.design import (
    Design,
    LeftOut,
    Levels,
    all_combinations,
    cell_name,
    matches,
    signs_of,
)
from posattn.comparison.factorial.fraction import Fraction, half, make_fraction
from posattn.config import FrozenConfig, Many, Text

MOST = 256
_FACTOR = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LEVEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*")

Fault = tuple[tuple[str | int, ...], str]


def level_text(value: object) -> object:
    """Return a level as its key is written: `true` and `4` are names here."""
    if isinstance(value, bool):
        return str(value).lower()
    return getattr(value, "source_text", value)


LevelName = Annotated[str, BeforeValidator(level_text)]


class Impossible(FrozenConfig):
    """Combinations that are left out: all that have these levels."""

    when: dict[str, LevelName] = Field(min_length=1, description="levels by factor")
    reason: Text = Field(min_length=1, description="shown in the report")


class FactorialKeys(FrozenConfig):
    """The part of a study that makes arms out of factors."""

    factors: dict[str, dict[str, dict[str, Any]]] = Field(
        default_factory=dict,
        description="by factor and level, what the level overrides; every combination is an arm",
    )
    fraction: Literal["half"] | dict[str, Text] | None = Field(
        None, description="run a part: half, or generators such as d: a*b*c"
    )
    impossible: Many[Impossible] = Field((), description="combinations that are left out")

    @model_validator(mode="after")
    def _design_is_sound(self) -> "FactorialKeys":
        faults = self._faults()
        if faults:
            raise ValidationError.from_exception_data(
                "Study",
                [
                    InitErrorDetails(
                        type=PydanticCustomError("disagreement", "{text}", {"text": text}),
                        loc=path,
                        input=None,
                    )
                    for path, text in faults
                ],
            )
        return self

    def design(self) -> Design | None:
        """Return the combinations, or None for a study without factors."""
        if not self.factors:
            return None
        levels = {name: tuple(known) for name, known in self.factors.items()}
        fraction = self._fraction()
        cells, left_out = {}, {}
        for chosen in all_combinations(levels):
            if fraction is not None and not fraction.keeps(signs_of(levels, chosen)):
                continue
            why = next((i.reason for i in self.impossible if matches(chosen, i.when)), None)
            if why is None:
                cells[cell_name(chosen)] = chosen
            else:
                left_out[cell_name(chosen)] = LeftOut(chosen, why)
        return Design(levels, cells, left_out, fraction)

    def _fraction(self) -> Fraction | None:
        if self.fraction is None:
            return None
        names = tuple(self.factors)
        return make_fraction(names, half(names) if self.fraction == "half" else self.fraction)

    def _faults(self) -> list[Fault]:
        if not self.factors:
            given = [key for key in ("fraction", "impossible") if getattr(self, key)]
            return [((key,), "belongs to a study with factors, and this has none") for key in given]
        faults = [*self._faults_of_factors(), *self._faults_of_impossible()]
        count = prod(map(len, self.factors.values()))
        if not faults and count > MOST:
            text = f"{count} combinations are more than {MOST}; use fewer factors or levels"
            faults.append((("factors",), text))
        faults = faults or self._faults_of_fraction()
        return faults or self._faults_of_cells()

    def _faults_of_factors(self) -> list[Fault]:
        faults: list[Fault] = []
        for name, levels in self.factors.items():
            here = ("factors", name)
            if not _FACTOR.fullmatch(name):
                text = "the name of a factor has letters, digits and _, and begins with a letter"
                faults.append((here, text))
            if len(levels) < 2:
                faults.append((here, f"a factor has two levels or more, not {len(levels)}"))
            seen: list[tuple[str, Any]] = []
            for level, changes in levels.items():
                if not _LEVEL.fullmatch(level):
                    faults.append(
                        ((*here, level), "the name of a level has letters, digits, _ and .")
                    )
                same = next((other for other, before in seen if before == changes), None)
                if same is not None:
                    faults.append(((*here, level), f"overrides the same as the level '{same}'"))
                seen.append((level, changes))
        return faults

    def _faults_of_impossible(self) -> list[Fault]:
        faults: list[Fault] = []
        for number, item in enumerate(self.impossible):
            for name, level in item.when.items():
                text = self._unknown(name, level)
                if text:
                    faults.append((("impossible", number, "when", name), text))
        if self.impossible and self.fraction is not None:
            text = "a fraction rests on all its combinations; leave out fraction, or the factor at fault"
            faults.append((("impossible",), text))
        return faults

    def _unknown(self, name: str, level: str) -> str | None:
        if name not in self.factors:
            return f"there is no factor '{name}' (factors: {', '.join(self.factors)})"
        if level not in self.factors[name]:
            return f"'{name}' has no level '{level}' (levels: {', '.join(self.factors[name])})"
        return None

    def _faults_of_fraction(self) -> list[Fault]:
        if self.fraction is None:
            return []
        many = [name for name, levels in self.factors.items() if len(levels) > 2]
        if many:
            text = f"is for factors of two levels; {', '.join(many)} has more"
            return [(("fraction",), text)]
        try:
            self._fraction()
        except ValueError as error:
            return [(("fraction",), str(error))]
        return []

    def _faults_of_cells(self) -> list[Fault]:
        design = self.design()
        assert design is not None
        if design.fraction is not None:
            return []
        faults: list[Fault] = []
        for number, item in enumerate(self.impossible):
            if not any(matches(out.levels, item.when) for out in design.left_out.values()):
                faults.append((("impossible", number), "leaves out no combination"))
        kept = list(design.cells.values())
        for name, levels in design.factors.items():
            reference, *others = levels
            faults += [
                (("factors", name, level), _unpaired(name, level, reference))
                for level in others
                if not any(
                    _pair(one, other, name, reference, level) for one in kept for other in kept
                )
            ]
        return faults


def _pair(one: Levels, other: Levels, name: str, reference: str, level: str) -> bool:
    return one[name] == reference and other == {**one, name: level}


def _unpaired(name: str, level: str, reference: str) -> str:
    return (
        f"no two combinations that are run differ in {name} ({level} against {reference}) alone, so its "
        "effect could not be told from others; leave out fewer combinations"
    )
