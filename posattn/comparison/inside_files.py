"""What evaluations that look inside a model leave in evaluations.json."""

from pydantic import Field

from posattn.comparison.stored import StoredModel


class StoredCheck(StoredModel):
    """One check of what the maths says; `relative` is a share of the largest logit."""

    name: str
    amount: int | None = None
    same: bool
    because: str = ""
    relative: float
    tolerance: float
    held: bool | None = None


class StoredChecks(StoredModel):
    """The checks of one evaluation; `reason` says why there are none."""

    length: int | None = None
    checks: list[StoredCheck] = Field(default_factory=list)
    reason: str | None = None


class StoredHeads(StoredModel):
    """What one attention layer does, a number for each head."""

    name: str
    distance: list[float]
    uniform_distance: list[float]
    entropy: list[float]
    uniform_entropy: list[float]
    first: list[float]
    last: list[float]
    cls: list[float | None]


class StoredAttention(StoredModel):
    """How far each head of each layer looks."""

    length: int | None = None
    layers: list[StoredHeads] = Field(default_factory=list)
    reason: str | None = None


class StoredBins(StoredModel):
    """Loss and number of targets in each bin of distances."""

    loss: list[float | None] = Field(default_factory=list)
    targets: list[int] = Field(default_factory=list)


class StoredEvidence(StoredModel):
    """Loss by distance to evidence; `masks` is a digest of what was masked."""

    edges: list[int] = Field(default_factory=list)
    masks: str = ""
    nearest: StoredBins = StoredBins()
    left: StoredBins = StoredBins()
    right: StoredBins = StoredBins()
    reason: str | None = None
