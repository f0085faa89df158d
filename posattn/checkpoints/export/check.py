"""Whether a model of transformers and ours give the same, on random tokens with padding."""

from typing import Any

import torch
from torch import Tensor

from posattn.checkpoints.pretrained import Pretrained

TOLERANCE = 1e-5
"""The largest difference allowed, as a share of the largest output where that is above 1."""
_USUAL_LENGTH = 512


def largest_difference(theirs: Any, made: Pretrained) -> dict[int, float]:
    """Return by length the largest difference of states, logits or vectors of real tokens.

    Lengths are a short odd one and the longest that the recipe trains with, at most 512.
    """
    limits = [made.recipe.data.max_length, made.encoder.config.max_length(), _USUAL_LENGTH]
    longest = min(limit for limit in limits if limit is not None)
    return {
        length: _difference(theirs, made, length) for length in sorted({min(7, longest), longest})
    }


@torch.no_grad()
def _difference(theirs: Any, made: Pretrained, length: int) -> float:
    generator = torch.Generator().manual_seed(length)
    padding = theirs.config.pad_token_id or 0  # RoBERTa counts positions by it
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
    outputs = _output(found)
    if expected.dim() > 2:  # of every token, padding included
        outputs, expected = outputs[visible], expected[visible]
    size = max(1.0, float(expected.abs().max()))
    return float((outputs - expected).abs().max()) / size


def _ours(made: Pretrained, ids: Tensor, visible: Tensor, segments: Tensor | None) -> Tensor:
    if made.masked_lm is not None:
        logits: Tensor = made.masked_lm(ids, visible=visible, segments=segments).logits
        return logits
    heads = [name for name in made.tasks.tasks if list(made.tasks.tasks[name].parameters())]
    if not heads or heads == ["pooled"]:
        states: Tensor = made.encoder(ids, visible=visible, segments=segments)
        return states
    if heads == ["choice"]:
        ids, visible = ids[None], visible[None]
        segments = None if segments is None else segments[None]
    labels: Tensor = made.tasks(heads[0], ids, visible=visible, segments=segments).logits
    return labels


def _output(found: Any) -> Tensor:
    """Return the logits of a transformers' output, or the states of a bare encoder."""
    for name in ("prediction_logits", "logits", "last_hidden_state"):
        if hasattr(found, name):
            output: Tensor = getattr(found, name)
            return output
    return torch.stack((found.start_logits, found.end_logits), dim=-1)
