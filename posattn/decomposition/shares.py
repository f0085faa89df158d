"""How much each term of the logits decides, and how it goes with distance.

    share of term t = sum of t~ l~ / sum of l~ l~  =  Cov(t, l) / Var(l),   l = sum of all terms

over all pairs of a query and a key that it sees, one head at a time; t~ and l~ are term and logits less each
query's mean over its keys. Shares sum to 1. A share is negative where a term works against the others, and
above 1 where the others work against it. `size` is the root mean square of t~, in logits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from posattn.decomposition.terms import Pairs, Terms

SMALLEST = 1e-18
"""A variance of logits below this is rounding, of which there are no shares."""


@dataclass(frozen=True)
class Share:
    """One term in one layer, a number for each head; a share is None where all logits are alike."""

    share: list[float | None]
    size: list[float]


@dataclass(frozen=True)
class Profile:
    """The mean of a centred term by distance (query minus key), in logits: one row for each head.

    A mean is None where no query sees a key at the distance.
    """

    distances: list[int]
    means: list[list[float | None]]


def shares(layer: Terms) -> dict[str, Share]:
    """Return the share and the size of every term, by name."""
    total = layer.centred(layer.logits)
    variance = _by_head(total, total)
    pairs = layer.visible.sum(dim=(1, 2)).clamp(min=1)
    found = {}
    for name, values in layer.terms.items():
        term = layer.centred(values)
        together, own = _by_head(term, total), _by_head(term, term)
        found[name] = Share(
            share=[
                part / whole if whole / count > SMALLEST else None
                for part, whole, count in zip(
                    together.tolist(), variance.tolist(), pairs.tolist(), strict=True
                )
            ],
            size=(own / pairs).sqrt().tolist(),
        )
    return found


def profiles(layer: Terms, reach: int) -> Mapping[str, Profile]:
    """Return the profile of every term, and of `logits`, up to `reach` tokens to either side."""
    length = layer.logits.shape[-1]
    reach = min(reach, length - 1)
    distances = list(range(-reach, reach + 1))
    named = {**layer.terms, "logits": layer.logits}
    return {
        name: Profile(distances, _means(layer, layer.centred(values), distances))
        for name, values in named.items()
    }


def _means(layer: Terms, term: Pairs, distances: list[int]) -> list[list[float | None]]:
    by_distance = []
    for distance in distances:  # query - key = distance is the diagonal -distance
        seen = layer.visible.diagonal(-distance, 1, 2)
        sums, counts = (term.diagonal(-distance, 1, 2) * seen).sum(-1), seen.sum(-1)
        pairs = zip(sums.tolist(), counts.tolist(), strict=True)
        by_distance.append([total / count if count else None for total, count in pairs])
    return [list(row) for row in zip(*by_distance, strict=True)]


def _by_head(one: Pairs, other: Pairs) -> Float[Tensor, " heads"]:
    return (one * other).sum(dim=(1, 2))
