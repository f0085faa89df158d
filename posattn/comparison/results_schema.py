"""The schema of results.json (`posattn-results/1`), documented in docs/results_schema.md."""

import json
from typing import Any, Literal

from pydantic import Field

from posattn.comparison.budgets.schema import BudgetInfo
from posattn.comparison.factorial.parts import (
    ConfoundsPart,
    DepthControlPart,
    DesignPart,
    EffectPart,
)
from posattn.comparison.inside_schema import Inside
from posattn.comparison.results_part import Part
from posattn.comparison.statistics import PairedDifference, Summary
from posattn.comparison.tuning.schema import TuningInfo
from posattn.comparison.verdicts import Judgement

SCHEMA: Literal["posattn-results/1"] = "posattn-results/1"


class MetricInfo(Part):
    """A score: its unit, which direction is better, where it is primary."""

    name: str
    label: str
    unit: str
    unit_of_difference: str
    better: Literal["lower", "higher"]
    primary: bool
    digits: int
    factor: float


class StudyInfo(Part):
    """What was planned, and how much of it is done; complete: every run ended, well or not.

    `varies` are the factors in which arms may differ, `declared` further differences with reasons.
    `primary_contrasts` were named before the first step and alone form the first judged family.
    """

    name: str
    title: str | None
    question: str | None
    description: str | None
    notes: str | None
    baseline: str
    primary: str
    primary_contrasts: list[tuple[str, str]] = Field(default_factory=list)
    varies: list[str]
    declared: dict[str, str]
    compensations: dict[str, str] = Field(default_factory=dict)
    seeds: list[int]
    runs_planned: int
    runs_finished: int
    train_length: int | None
    complete: bool


class RunScore(Part):
    """A score of one run; null with the reason."""

    value: float | None
    reason: str | None = None


class CurvePoint(Part):
    """Validation loss of one run at one step of training."""

    step: int
    tokens: int
    loss: float | None


class RunResult(Part):
    """One arm with one seed. `state` is that of status.json, or "not started".

    `graphs` are those that torch.compile made since the run was last started; null where nothing compiles.
    """

    arm: str
    seed: int
    folder: str
    state: str
    step: int
    tokens: int
    targets: int
    seconds: float | None
    resumed: int
    graphs: int | None = None
    reason: str | None
    scores: dict[str, RunScore]
    curve: list[CurvePoint]
    other: dict[str, Any]
    files: dict[str, str]


class SeedSummary(Part):
    """A score over the seeds that finished."""

    summary: Summary
    values: dict[int, float | None]
    reason: str | None = None


class ArmCurvePoint(Part):
    """Validation loss at one step, over the finished seeds."""

    step: int
    tokens: int
    summary: Summary


class LengthPoint(Part):
    """Validation loss at one sequence length; `refused` is the reason why the arm cannot run it."""

    length: int
    multiple: float | None
    summary: Summary
    refused: str | None = None


class PositionBin(Part):
    """Validation loss of the tokens at positions `start` to `stop - 1`."""

    start: int
    stop: int
    summary: Summary


class Quartiles(Part):
    """Median and quartiles of n measurements."""

    n: int
    median: float
    lower: float
    upper: float


class SpeedSummary(Part):
    """One stage of one arm. `ratio` is time per token over the baseline's in the same round."""

    stage: str
    seconds: Quartiles
    tokens_per_second: Quartiles
    ratio: Quartiles | None


class Sizes(Part):
    """Parameters and operations of an arm; `reason` says why they are null."""

    parameters: int | None = None
    position_parameters: int | None = None
    embedding_parameters: int | None = None
    flops_per_token: float | None = None
    mechanism_flops_per_token: float | None = None
    reason: str | None = None


class ArmResult(Part):
    """One column of the comparison."""

    name: str
    is_baseline: bool
    description: str | None
    changes: dict[str, Any]
    contract: str | dict[str, Any] | None
    recipe_digest: str | None
    runs_planned: int
    runs_finished: int
    scores: dict[str, SeedSummary]
    curve: list[ArmCurvePoint]
    length: list[LengthPoint]
    position: list[PositionBin]
    speed: list[SpeedSummary]
    peak_memory_bytes: int | None
    sizes: Sizes
    inside: Inside | None = None


class SampleTest(Part):
    """Secondary: the same two trained models on the same validation samples, one seed.

    `more` and `fewer` count samples of which `first` got more or fewer tokens right; `p` is the
    exact McNemar p of these counts.
    """

    seed: int
    samples: int
    more: int
    fewer: int
    p: float


class SampleInterval(Part):
    """Secondary: a 95 % paired bootstrap interval over validation samples, seeds held."""

    seeds: int
    samples: int
    resamples: int
    low: float
    high: float


class SeedInterval(Part):
    """A 95 % bootstrap interval of the mean difference, seeds resampled; `method` names which."""

    seeds: int
    method: Literal["BCa", "percentile"]
    resamples: int
    low: float
    high: float
    reason: str | None = None


class MultiInterval(Part):
    """A 95 % multi-bootstrap interval: seeds, the same for both arms, and samples resampled."""

    seeds: int
    samples: int
    resamples: int
    low: float
    high: float
    reason: str | None = None


class Contrast(Part):
    """`first - second` on one score, with the verdict on `first`.

    The families "baseline" and "pairs" are judged; "descriptive" (other scores) has intervals only.
    `named`: the study named this contrast before its first step.
    """

    metric: str
    family: Literal["baseline", "pairs", "descriptive"]
    first: str
    second: str
    difference: PairedDifference
    judgement: Judgement | None
    named: bool = False
    seed_interval: SeedInterval | None = None
    multi_interval: MultiInterval | None = None
    sample_interval: SampleInterval | None = None
    sample_tests: list[SampleTest] = Field(default_factory=list)


class ControlResult(Part):
    """One rule of control; null where it was not checked.

    `expected` marks a rule that cannot hold because of a difference which the study declares.
    """

    rule: str
    held: bool | None
    detail: str
    expected: bool

    @property
    def broken(self) -> bool:
        """Return whether the rule failed without the study having declared why."""
        return self.held is False and not self.expected


class PredictionOutcome(Part):
    """A prediction from the maths, written before the first step, and what the runs did.

    "held": all finished seeds are within the bounds, "broken": none is, "mixed": some are.
    """

    arm: str
    score: str
    at_least: float | None
    at_most: float | None
    because: str
    values: dict[int, float | None]
    in_range: int
    n: int
    verdict: Literal["held", "mixed", "broken", "not tested"]


class SolvedShare(Part):
    """How many of the `n` runs with a score, of all `runs`, solved the probe; exact 95 % interval."""

    arm: str
    solved: int
    n: int
    runs: int
    low: float
    high: float


class AccuracyAtLength(Part):
    """Accuracy of one arm at one length, `multiple` of that in training, by seed; null: not measured."""

    arm: str
    length: int
    multiple: int
    values: dict[int, float | None]


class ProbeInfo(Part):
    """What the study's probe asks; a run with at least `solved` on `score` counts as solved."""

    name: str
    question: str
    chance: float
    solved: float
    score: str
    arms: list[SolvedShare]
    lengths: list[AccuracyAtLength] = Field(default_factory=list)


class SpeedInfo(Part):
    """Under what conditions the arms were timed, one after the other in each round."""

    conditions: dict[str, Any]
    rounds: int
    refused: dict[str, str]
    file: str


class Statement(Part):
    """One plain sentence or two of the answer under a short heading, with its list."""

    heading: str
    text: str = ""
    items: list[str] = Field(default_factory=list)


class Results(Part):
    """All that a study found; the content of results.json."""

    format: Literal["posattn-results/1"] = Field(default=SCHEMA, alias="schema")
    posattn_version: str
    study: StudyInfo
    answer: list[Statement]
    metrics: list[MetricInfo]
    arms: list[ArmResult]
    runs: list[RunResult]
    contrasts: list[Contrast]
    groups: list[list[str]]
    control: list[ControlResult]
    speed: SpeedInfo | None
    data: dict[str, Any]
    environment: dict[str, Any]
    recipe: dict[str, Any]
    notes: list[str]
    limits: list[str]
    confounds: ConfoundsPart | None = None
    probe: ProbeInfo | None = None
    predictions: list[PredictionOutcome] = Field(default_factory=list)
    design: DesignPart | None = None
    effects: list[EffectPart] = Field(default_factory=list)
    depth_controls: list[DepthControlPart] = Field(default_factory=list)
    budget: BudgetInfo | None = None
    tuning: TuningInfo | None = None

    def arm(self, name: str) -> ArmResult:
        """Return the arm of this name."""
        return next(arm for arm in self.arms if arm.name == name)

    @property
    def baseline(self) -> ArmResult:
        """Return the arm that the others are compared with."""
        return self.arm(self.study.baseline)

    @property
    def primary(self) -> MetricInfo:
        """Return the score that the verdicts are about."""
        return next(metric for metric in self.metrics if metric.primary)

    def family(self, family: str) -> list[Contrast]:
        """Return the contrasts of one family on the primary score."""
        return [c for c in self.contrasts if c.family == family and c.metric == self.study.primary]

    @property
    def named(self) -> list[Contrast]:
        """Return the contrasts that the study named beforehand, in its order."""
        order = [frozenset(pair) for pair in self.study.primary_contrasts]
        found = [c for c in self.family("baseline") + self.family("pairs") if c.named]
        return sorted(found, key=lambda c: order.index(frozenset((c.first, c.second))))

    def to_json(self) -> str:
        """Return strict JSON; a number that is not finite raises ValueError."""
        return json.dumps(
            self.model_dump(mode="json"), allow_nan=False, ensure_ascii=False, indent=1
        )
