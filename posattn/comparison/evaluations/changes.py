"""`Check`: how far logits that a promise is about lie apart, and whether the promise held."""

from dataclasses import asdict, dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from posattn.comparison.evaluations.promises import Promise


@dataclass(frozen=True)
class Check:
    """One comparison of logits; `relative` is `largest` over the largest absolute logit.

    `held` says whether `relative` is within the tolerance where nothing may change, and beyond it
    where something must; None where the promise says nothing of this amount.
    """

    name: str
    amount: int | None
    same: bool
    because: str
    largest: float
    mean: float
    relative: float
    tolerance: float
    held: bool | None

    def plain(self) -> dict[str, Any]:
        """Return the check as it is stored."""
        return asdict(self)


def compare(
    name: str,
    expected: Float[Tensor, "batch length vocab"],
    found: Float[Tensor, "batch length vocab"],
    promise: Promise,
    tolerance: float,
    amount: int | None = None,
    *,
    judged: bool = True,
) -> Check:
    """Return how far `found` is from `expected`, in logits and as a share of the largest one.

    Where it is not `judged`, the promise is about more than this amount.
    """
    apart = (found - expected).abs()
    largest, scale = float(apart.max()), float(expected.abs().max())
    relative = largest / scale if scale else largest
    return Check(
        name=name,
        amount=amount,
        same=promise.same,
        because=promise.because,
        largest=largest,
        mean=float(apart.mean()),
        relative=relative,
        tolerance=tolerance,
        held=(relative <= tolerance) == promise.same if judged else None,
    )
