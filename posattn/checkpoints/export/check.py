"""Whether a model of transformers and ours give the same, on random tokens with padding."""

from typing import Any

import torch
from torch import Tensor

from posattn.checkpoints.pretrained import Pretrained

TOLERANCE = 1e-5
"""The largest difference allowed, as a share of the largest output where that is above 1."""
_USUAL_LENGTH = 512


def largest_difference(theirs: Any, made: Pretrained, padding: int) -> dict[int, float]:
    """Return by length the largest difference of states, logits or vectors of real tokens.

    Lengths are a short odd one and the longest that the recipe trains with, at most 512.
    """
    limits = [made.recipe.data.max_length, made.encoder.config.max_length(), _USUAL_LENGTH]
    longest = min(limit for limit in limits if limit is not None)
    return {length: _difference(theirs, made, padding, length) for length in {min(7, longest), longest}}


@torch.no_grad()
def _difference(theirs: Any, made: Pretrained, padding: int, length: int) -> float:
    generator = torch.Generator().manual_seed(length)
    rows, segments = made.encoder.tokens.num_embeddings, made.encoder.config.segments
    ids = torch.randint(rows, (2, length), generator=generator)
    ids = ids.masked_fill(ids == padding, (padding + 1) % rows)
    visible = torch.ones(2, length, dtype=torch.bool)
    visible[1, (length + 1) // 2 :] = False
    ids = ids.masked_fill(~visible, padding)
    kinds = torch.randint(max(segments, 1), (2, length), generator=generator)
    expected = _ours(made, ids, visible, kinds if segments else None)
    given: dict[str, Tensor] = {"input_ids": ids, "attention_mask": visible.long()}
    if segments:
        given["token_type_ids"] = kinds
    if "choice" in made.tasks.tasks:
        given = {name: tensor[None] for name, tensor in given.items()}
    found = theirs(**given)
    outputs = _theirs(found, expected)
    worst = 0.0
    for one, other in zip(outputs, expected, strict=True):
        one, other = (item[visible] if item.dim() > 2 else item for item in (one, other))
        size = max(1.0, float(other.abs().max()))
        worst = max(worst, float((one - other).abs().max()) / size)
    return worst


def _ours(made: Pretrained, ids: Tensor, visible: Tensor, segments: Tensor | None) -> list[Tensor]:
    if made.masked_lm is not None:
        return [made.masked_lm(ids, visible=visible, segments=segments).logits]
    heads = [name for name in made.tasks.tasks if list(made.tasks.tasks[name].parameters())]
    if not heads or heads == ["pooled"]:
        return [made.encoder(ids, visible=visible, segments=segments)]
    if heads == ["choice"]:
        ids, visible = ids[None], visible[None]
        segments = None if segments is None else segments[None]
    logits = made.tasks(heads[0], ids, visible=visible, segments=segments).logits
    assert logits is not None
    return list(logits.unbind(-1)) if heads == ["span"] else [logits]


def _theirs(found: Any, expected: list[Tensor]) -> list[Tensor]:
    for name in ("prediction_logits", "logits", "last_hidden_state"):
        if hasattr(found, name):
            return [getattr(found, name)]
    return [found.start_logits, found.end_logits]
