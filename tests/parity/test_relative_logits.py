"""Relative logits as in transformers' Inkling."""

from collections.abc import Callable

import pytest
import torch
from transformers.models.inkling.modeling_inkling import InklingRelativeLogits

from posattn.testing.mechanism_case import MechanismCase

from .originals import TOLERANCE

Record = Callable[[str, object], None]


@torch.no_grad()
@pytest.mark.parametrize(("extent", "lengths"), [(4, (9, 9)), (16, (9, 9)), (5, (3, 9))])
def test_the_bias_equals_that_of_inkling(
    extent: int, lengths: tuple[int, int], record_property: Record
) -> None:
    num_queries, num_keys = lengths
    case = MechanismCase("relative_logits", {"causal": True, "rank": 3, "extent": extent}, 24, 4)
    attention = case.attention(torch.float32)
    layer = attention.attention.position.parts["relative_logits"]
    original = InklingRelativeLogits(3, extent)
    original.proj.copy_(layer.profiles.weight.T)
    keys = torch.arange(num_keys)
    queries = keys[-num_queries:]
    hidden = case.hidden(2, num_queries, torch.float32)
    states = layer.mixture_proj(hidden).view(2, num_queries, 4, 3)
    theirs = original(states, queries, keys)
    prepared = attention.prepared(queries[None], keys[None])
    call = attention.call(hidden, case.hidden(2, num_keys, torch.float32), prepared)
    gap = float((call.bias.materialize() - theirs).abs().max())
    record_property("difference", gap)
    assert gap <= TOLERANCE
