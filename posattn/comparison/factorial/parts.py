"""What a factorial study adds to results.json: its design, its effects, its controls of depth."""

from typing import Literal

from pydantic import Field

from posattn.comparison.results_part import Part
from posattn.comparison.statistics import BootstrapInterval, PairedDifference
from posattn.comparison.verdicts import Judgement


class LeftOutPart(Part):
    """A combination that was not run: why, and what its recipe says (null if it could have run)."""

    reason: str
    refused: str | None = None


class DesignPart(Part):
    """The factors with their levels, the first being the reference, and the arm of each combination.

    For a fraction: its generators, its resolution, and what it cannot tell apart. `not_estimable` has the
    reason for each effect that the combinations run do not give.
    """

    factors: dict[str, list[str]]
    cells: dict[str, dict[str, str]]
    left_out: dict[str, LeftOutPart] = Field(default_factory=dict)
    generators: dict[str, str] = Field(default_factory=dict)
    resolution: int | None = None
    aliases: list[str] = Field(default_factory=list)
    not_estimable: dict[str, str] = Field(default_factory=dict)


class EffectPart(Part):
    """One effect on the primary score: a weighted sum of arms, seed by seed, and its statistics.

    A main effect is a level against the first, over `settings` settings of the other factors in which
    both were run; an interaction is half the difference of two such effects. `missing` has the
    seeds without a value, with the arms that lack the score.
    """

    name: str
    kind: Literal["main", "interaction"]
    levels: dict[str, str]
    references: dict[str, str]
    settings: int
    aliases: str | None
    weights: dict[str, float]
    values: dict[int, float]
    missing: dict[int, list[str]]
    difference: PairedDifference
    bootstrap: BootstrapInterval | None
    judgement: Judgement


class ConfoundsPart(Part):
    """What the arms mix: the aspects in which an arm differs, with the declared reason, and sentences.

    `mixed` names parts of the architecture that only ever differ together.
    """

    reason: str | None = None
    arms: dict[str, list[str]] = Field(default_factory=dict)
    mixed: list[str] = Field(default_factory=list)


class DepthControlPart(Part):
    """An arm with the mask decoder minus its control of depth, on the primary score."""

    arm: str
    control: str
    difference: PairedDifference
    verdict: str
    reason: str | None = None
