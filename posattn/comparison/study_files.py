"""The files of a study folder, read and checked: plan, runs, evaluations, speed.

Files are strict JSON (no NaN). A key that this reader does not know is kept or ignored, never an
error: evaluations are open to plug-ins. A file that is there and cannot be read is a `DataError`.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from posattn.comparison.inside_files import StoredAttention, StoredChecks, StoredEvidence
from posattn.comparison.stored import StoredModel
from posattn.errors import DataError, RecipeError

Number = float | None


class PlannedProbe(StoredModel):
    """What the study's probe asks: accuracy of guessing, and from where a run counts as solved."""

    name: str
    question: str
    chance: float
    solved: float
    score: str = "validation_accuracy"


class PlannedPrediction(StoredModel):
    """A prediction about one score of an arm."""

    score: str
    at_least: Number = None
    at_most: Number = None
    because: str


class PlannedArm(StoredModel):
    """An arm of plan.json; `contract` is its architecture contract, where the runner wrote one."""

    name: str
    changes: dict[str, Any] = Field(default_factory=dict)
    recipe_digest: str | None = None
    description: str | None = None
    contract: str | dict[str, Any] | None = None
    predictions: list[PlannedPrediction] = Field(default_factory=list)


class PlannedRun(StoredModel):
    """A run of plan.json; `folder` is relative to the study folder."""

    arm: str
    seed: int
    folder: str


class ControlRule(StoredModel):
    """One rule of control: held, not held, or null where it could not be checked.

    `expected` marks a rule that cannot hold because of a difference which the study declares.
    """

    rule: str
    held: bool | None
    detail: str = ""
    expected: bool = False


class Plan(StoredModel):
    """plan.json: what the study compares and which rules of control hold."""

    study: str
    title: str | None = None
    question: str | None = None
    description: str | None = None
    notes: str | None = None
    declared: dict[str, str] = Field(default_factory=dict)
    compensations: dict[str, str] = Field(default_factory=dict)
    arms: list[PlannedArm] = Field(min_length=1)
    seeds: list[int]
    baseline: str
    primary: str
    varies: list[str] = Field(default_factory=list)
    runs: list[PlannedRun]
    control: list[ControlRule] = Field(default_factory=list)
    confounds: dict[str, Any] = Field(default_factory=dict)
    probe: PlannedProbe | None = None
    design: dict[str, Any] | None = None
    depth_controls: dict[str, str] = Field(default_factory=dict)
    match: dict[str, Any] | None = None


class Status(StoredModel):
    """status.json of a run."""

    state: str
    step: int = 0
    tokens: int = 0
    targets: int = 0
    reason: str | None = None
    resumed: int = 0
    seconds: float | None = None
    graphs: int | None = None


class StoredValidation(StoredModel):
    """Scores on the validation split."""

    loss: Number = None
    accuracy: Number = None
    targets: int | None = None
    tokens: int | None = None
    reason: str | None = None


class StoredLength(StoredModel):
    """Scores by sequence length; `refused` gives the reason by length."""

    lengths: list[int]
    loss: list[Number]
    accuracy: list[Number] | None = None
    refused: dict[int, str] = Field(default_factory=dict)
    reason: str | None = None


class StoredPosition(StoredModel):
    """Loss by position; bin i holds positions edges[i] to edges[i + 1] - 1."""

    length: int
    edges: list[int]
    loss: list[Number]


class StoredSize(StoredModel):
    """Counts of parameters and operations."""

    parameters: int | None = None
    position_parameters: int | None = None
    embedding_parameters: int | None = None
    flops_per_token: float | None = None
    mechanism_flops_per_token: float | None = None


class Evaluations(BaseModel):
    """evaluations.json of a run; sections of further evaluations are kept as they are."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    validation: StoredValidation | None = None
    length: StoredLength | None = None
    position: StoredPosition | None = None
    size: StoredSize | None = None
    shift: StoredChecks | None = None
    permutation: StoredChecks | None = None
    padding: StoredChecks | None = None
    attention_distance: StoredAttention | None = None
    evidence_distance: StoredEvidence | None = None


class MetricsLine(StoredModel):
    """An evaluation line of metrics.jsonl."""

    step: int
    tokens: int
    loss: Number = None


class SpeedRound(StoredModel):
    """One timed stage of one arm in one round over all arms."""

    arm: str
    round: int
    stage: str
    seconds: float = Field(gt=0)
    tokens: int = Field(gt=0)


class Speed(StoredModel):
    """speed.json."""

    conditions: dict[str, Any] = Field(default_factory=dict)
    rounds: list[SpeedRound] = Field(default_factory=list)
    refused: dict[str, str] = Field(default_factory=dict)
    peak_memory_bytes: dict[str, int | None] = Field(default_factory=dict)


@dataclass(frozen=True)
class Examples:
    """Sums by validation sample."""

    sample_ids: NDArray[np.int64]
    loss_sum: NDArray[np.float64]
    targets: NDArray[np.float64]
    correct: NDArray[np.float64]


@dataclass(frozen=True)
class RunFiles:
    """All that the folder of one run holds so far; what is not there is None or empty."""

    arm: str
    seed: int
    folder: str
    status: Status | None = None
    evaluations: Evaluations | None = None
    curve: list[MetricsLine] = field(default_factory=list)
    recipe: dict[str, Any] | None = None
    data: dict[str, Any] | None = None
    environment: dict[str, Any] | None = None
    examples: Examples | None = None
    has_metrics: bool = False


@dataclass(frozen=True)
class StudyFiles:
    """All that a study folder holds so far."""

    folder: Path
    plan: Plan
    runs: list[RunFiles]
    speed: Speed | None


def read_study(out: Path) -> StudyFiles:
    """Return the contents of the study folder `out`, which may be partly finished."""
    if not out.is_dir():
        raise RecipeError(f"there is no folder {out}; give the --out folder of a comparison")
    plan_path = out / "plan.json"
    if not plan_path.is_file():
        raise RecipeError(
            f"{out} is no study folder: it has no plan.json; give the --out folder of a "
            "comparison, or start one with: posattn compare STUDY --out DIR"
        )
    plan = read_json(plan_path, Plan)
    _check_plan(plan, plan_path)
    speed_path = out / "speed.json"
    speed = read_json(speed_path, Speed) if speed_path.is_file() else None
    order = [arm.name for arm in plan.arms]
    planned = sorted(plan.runs, key=lambda run: (order.index(run.arm), run.seed))
    return StudyFiles(out, plan, [read_run(out, run) for run in planned], speed)


def read_run(out: Path, run: PlannedRun) -> RunFiles:
    """Return what the folder of one planned run holds so far."""
    folder = out / run.folder
    examples = folder / "examples.npz"
    return RunFiles(
        arm=run.arm,
        seed=run.seed,
        folder=run.folder,
        status=_optional(folder / "status.json", Status),
        evaluations=_optional(folder / "evaluations.json", Evaluations),
        curve=read_curve(folder / "metrics.jsonl"),
        recipe=read_yaml(folder / "recipe.yaml"),
        data=_optional(folder / "data.json", dict[str, Any]),
        environment=_optional(folder / "environment.json", dict[str, Any]),
        examples=read_examples(examples) if examples.is_file() else None,
        has_metrics=(folder / "metrics.jsonl").is_file(),
    )


def read_json(path: Path, kind: Any) -> Any:
    """Return the strict JSON of `path` as `kind`, or raise a `DataError` with the first fault."""
    try:
        return _parse(path.read_text(encoding="utf-8"), kind)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {_first_fault(error)}") from error


def read_yaml(path: Path) -> dict[str, Any] | None:
    """Return the mapping in `path`, or None where there is no such file."""
    if not path.is_file():
        return None
    try:
        content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, YAMLError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise DataError(f"{path} holds {type(content).__name__}, expected a mapping of keys")
    return content


def read_curve(path: Path) -> list[MetricsLine]:
    """Return the evaluation lines of metrics.jsonl by step; of a step seen twice, the last.

    A last line without line end is what a killed run was writing; it is left out.
    """
    if not path.is_file():
        return []
    by_step: dict[int, MetricsLine] = {}
    try:
        *lines, _torn = path.read_text(encoding="utf-8").split("\n")
    except ValueError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    for number, text in enumerate(lines, start=1):
        if '"evaluation"' not in text:
            continue
        try:
            line = _parse(text, dict[str, Any])
            if line.get("kind") == "evaluation":
                point = MetricsLine.model_validate(line)
                by_step[point.step] = point
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {_first_fault(error)}") from error
    return [by_step[step] for step in sorted(by_step)]


def read_examples(path: Path) -> Examples:
    """Return the per-sample sums of examples.npz, in the order of the sample ids."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            ids = np.asarray(stored["sample_ids"], dtype=np.int64)
            order = np.argsort(ids, kind="stable")
            sums = [
                np.asarray(stored[name], dtype=np.float64)[order]
                for name in ("loss_sum", "targets", "correct")
            ]
    except Exception as error:  # zip, header and index faults have no common class
        raise DataError(f"{path} cannot be read: {error}") from error
    return Examples(ids[order], *sums)


def _optional(path: Path, kind: Any) -> Any:
    return read_json(path, kind) if path.is_file() else None


def _parse(text: str, kind: Any) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON; a missing number is null with a reason")

    return TypeAdapter(kind).validate_python(json.loads(text, parse_constant=refuse))


def _first_fault(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    fault = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in fault["loc"]) or "the whole"
    return f"{place}: {fault['msg']} (found {fault['input']!r:.80})"


def _check_plan(plan: Plan, path: Path) -> None:
    names = [arm.name for arm in plan.arms]
    if plan.baseline not in names:
        known = ", ".join(names)
        raise DataError(f"{path}: the baseline '{plan.baseline}' is no arm (arms: {known})")
    for run in plan.runs:
        if run.arm not in names:
            known = ", ".join(names)
            raise DataError(f"{path}: the run {run.folder} has the arm '{run.arm}' (arms: {known})")
