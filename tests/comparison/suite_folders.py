"""Folders of suites with accuracies that a test chooses, written without training."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.comparison.study_folders import FakeArm, mechanism, write_json, write_study

Accuracies = Mapping[str, Sequence[float | None]]
"""By arm, one for each seed; None is a run that diverged."""

BATTERY: dict[str, Accuracies] = {
    "offset": {
        "none": (0.13, 0.12, 0.14, 0.12, 0.13),
        "rope": (1.0, 0.999, 1.0, 1.0, 0.998),
        "alibi": (0.27, 0.28, 0.26, 0.27, 0.27),
        "disentangled": (1.0, 1.0, 0.997, 1.0, 1.0),
    },
    "offset_by_symbol": {
        "none": (0.12, 0.13, 0.12, 0.13, 0.12),
        "rope": (0.71, 0.73, 0.99, 0.72, None),
        "alibi": (0.26, 0.25, 0.27, 0.26, 0.26),
        "disentangled": (1.0, 0.998, 1.0, 1.0, 0.999),
    },
    "reverse": {
        "none": (0.07, 0.06, 0.07, 0.06, 0.07),
        "rope": (0.99, 0.21, 0.98, 0.99, 0.97),
        "alibi": (0.13, 0.12, 0.13, 0.14, 0.13),
        "disentangled": (0.95, 0.96, 0.95, 0.97, 0.31),
    },
}


def write_task(
    folder: Path, accuracies: Accuracies, *, primary: str = "validation_accuracy", **words: Any
) -> Path:
    """Write the study of one task; `words` replace entries of its plan.json."""
    seeds = tuple(range(max(map(len, accuracies.values()))))
    arms = tuple(FakeArm(name, 1.2, changes=mechanism(name)) for name in accuracies)
    diverged = frozenset(
        (name, seed)
        for name, values in accuracies.items()
        for seed, value in enumerate(values)
        if value is None
    )
    write_study(folder, arms, seeds, diverged=diverged, control=[], speed=False)
    for name, values in accuracies.items():
        for seed, value in enumerate(values):
            if value is not None:
                _set(folder / f"runs/{name}/seed-{seed}/evaluations.json", "validation", value)
    plan = json.loads((folder / "plan.json").read_text())
    named = {"study": folder.name, "title": "", "question": "", "primary": primary, "declared": {}}
    write_json(folder / "plan.json", plan | named | words)
    return folder


def _set(path: Path, section: str, accuracy: float) -> None:
    content = json.loads(path.read_text())
    content[section] |= {"accuracy": accuracy, "loss": 2.0 - accuracy}
    write_json(path, content)


def write_suite(
    out: Path, tasks: Mapping[str, Accuracies] = BATTERY, *, planned: bool = True
) -> Path:
    """Write a suite with these tasks and, where `planned`, its suite_plan.json."""
    for name, accuracies in tasks.items():
        write_task(out / "tasks" / name, accuracies, question=f"Who can do {name}?")
    if planned:
        entries = [
            {"name": name, "folder": f"tasks/{name}", "left_out": {}} for name in reversed(tasks)
        ]
        write_json(
            out / "suite_plan.json",
            {"suite": "battery", "title": "A small battery", "baseline": "none", "tasks": entries},
        )
    return out
