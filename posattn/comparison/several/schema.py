"""The schema of compared.json (`posattn-compared/1`), documented in docs/results_schema.md."""

import json
from typing import Any, Literal

from pydantic import Field

from posattn.comparison.results_part import Part
from posattn.comparison.results_schema import MetricInfo, Statement
from posattn.comparison.statistics import PairedDifference, Summary

COMPARED_SCHEMA: Literal["posattn-compared/1"] = "posattn-compared/1"

Sameness = Literal["same recipe", "other recipe", "only here", "unknown"]


class ComparedArm(Part):
    """One arm of one study: its primary score, and its difference from the study's own baseline.

    `verdict` is that of its own study. `reason` says why a number is null.
    """

    name: str
    is_baseline: bool
    recipe_digest: str | None
    summary: Summary
    values: dict[int, float | None]
    difference: PairedDifference | None
    verdict: str


class ComparedStudy(Part):
    """One study; `label` tells it from the others, `broken` are rules of control."""

    label: str
    folder: str
    name: str
    title: str | None
    baseline: str
    metric: MetricInfo
    seeds: list[int]
    runs_planned: int
    runs_finished: int
    complete: bool
    broken: list[str]
    arms: list[ComparedArm]


class ArmMatch(Part):
    """An arm's name over the studies: whether it is one recipe, else the paths that differ.

    `also` are arms of other names with the same recipe, as `study: arm`.
    """

    name: str
    studies: list[str]
    sameness: Sameness
    differs: list[str]
    also: list[str]


class Condition(Part):
    """A value that all arms of a study share and that is not the same in all studies, by label."""

    kind: Literal["recipe", "evaluation", "data", "environment", "seeds", "score"]
    path: str
    values: dict[str, Any]


class Compared(Part):
    """All that is said of several studies together; the content of compared.json."""

    format: Literal["posattn-compared/1"] = Field(default=COMPARED_SCHEMA, alias="schema")
    posattn_version: str
    answer: list[Statement]
    studies: list[ComparedStudy]
    arms: list[ArmMatch]
    conditions: list[Condition]
    limits: list[str]

    def to_json(self) -> str:
        """Return strict JSON; a number that is not finite raises ValueError."""
        return json.dumps(
            self.model_dump(mode="json"), allow_nan=False, ensure_ascii=False, indent=1
        )
