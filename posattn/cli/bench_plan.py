"""What the command line of `posattn bench` changes in a preset."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from posattn.errors import RecipeError

if TYPE_CHECKING:
    from posattn.bench import BenchPlan

OPTIONS = {"subjects": "mechanism", "backends": "backend", "precisions": "precision"}
SWITCHES = {
    "compiled": ("--compile", "--no-compile"),
    "rivals": ("--rivals", "--no-rivals"),
    "mixed": ("--mixed", "--full"),
}


@final
@dataclass(frozen=True)
class Shapes:
    """What is given of the cells; None is left as the preset has it."""

    length: list[int] | None
    batch: list[int] | None
    stage: list[str] | None
    mixed: bool | None

    def cells(self, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return all combinations; what is not given is as in the cells before."""
        if self.mixed is not None:
            kept: dict[str, Any] = next((cell["mixed"] for cell in before if cell["mixed"]), {})
            before = [{**cell, "mixed": kept if self.mixed else None} for cell in before]
        if not (self.length or self.batch or self.stage):
            return before

        def known(key: str) -> list[Any]:
            found: list[Any] = []
            for cell in before:
                if cell[key] not in found:
                    found.append(cell[key])
            return found

        return [
            {"batch_size": rows, "length": tokens, "stage": what, "mixed": mixed}
            for what in self.stage or known("stage")
            for mixed in known("mixed")
            for tokens in self.length or known("length")
            for rows in self.batch or known("batch_size")
        ]


def changed_plan(
    preset: str,
    given: Mapping[str, Any],
    shapes: Shapes,
    *,
    layers: int | None,
    width: int | None,
) -> "BenchPlan":
    """Return the preset with what the command line says in its place; None says nothing."""
    from pydantic import ValidationError

    from posattn.bench import BenchPlan, presets

    data = presets.get(preset)().model_dump(mode="json")
    command = _command(preset, {**given, **vars(shapes), "layers": layers, "width": width})
    changes = {key: value for key, value in given.items() if value not in (None, [])}
    if (cells := shapes.cells(data["cells"])) != data["cells"]:
        changes["cells"] = cells
    if layers is not None:
        changes["size"] = {**data["size"], "num_layers": layers}
    if width is not None:
        heads = {"num_heads": max(1, width // 64), "intermediate_size": 4 * width}
        changes["size"] = {**changes.get("size", data["size"]), "hidden_size": width, **heads}
    if changes.keys() - {"threads"}:
        changes["name"] = f"{preset}-custom"
    try:
        return BenchPlan.model_validate({**data, **changes, "command": command})
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc']))}: {fault['msg']} (given: {fault['input']!r})"
            for fault in error.errors()
        )
        raise RecipeError(f"this cannot be measured: {faults}") from error


def _command(preset: str, given: Mapping[str, Any]) -> str:
    """Return the command line that measures the same."""
    words = ["posattn", "bench", "--preset", preset]
    for key, value in given.items():
        if value is None:
            continue
        if key in SWITCHES:
            on, off = SWITCHES[key]
            words.append(on if value else off)
            continue
        for one in value if isinstance(value, list) else [value]:
            words += [f"--{OPTIONS.get(key, key)}", str(one)]
    return shlex.join(words)
