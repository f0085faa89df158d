"""The part of results.json that is about models' insides: checks, heads, loss by distance to evidence."""

from pydantic import Field

from posattn.comparison.results_part import Part
from posattn.comparison.statistics import PairedDifference, Summary


class CheckSummary(Part):
    """One check over the runs of an arm: `same` says that nothing may change, else something must.

    `relative` is the change nearest to breaking it, as a share of the largest logit; `judged` and `held`
    count runs, `judged` 0 where the check alone says nothing.
    """

    evaluation: str
    name: str
    amount: int | None
    same: bool
    because: str
    relative: float
    tolerance: float
    judged: int
    held: int

    @property
    def broken(self) -> bool:
        """Return whether it failed in a run."""
        return self.held < self.judged


class HeadSummary(Part):
    """One head, numbered from 1 in a layer: means over runs of distances, nats and shares."""

    layer: str
    head: int
    runs: int
    distance: float
    uniform_distance: float
    entropy: float
    uniform_entropy: float
    first: float
    last: float
    cls: float | None


class EvidenceBin(Part):
    """Loss of masked tokens whose evidence on a side is `start` to `stop - 1` tokens away.

    `stop` is null for all beyond. `difference` is from the baseline, over seeds with the same masks.
    """

    side: str
    start: int
    stop: int | None
    targets: int
    summary: Summary
    difference: PairedDifference | None


class Inside(Part):
    """What evaluations that look inside found in the finished runs of an arm; `notes` say what is missing."""

    checks: list[CheckSummary] = Field(default_factory=list)
    heads: list[HeadSummary] = Field(default_factory=list)
    evidence: list[EvidenceBin] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
