"""DeBERTa v2 and v3: log buckets, shared or own position projections, LayerNorm on the table.

Past the largest bucket transformers is wrong: there Microsoft's formula, written as loops, is the
original, and transformers must differ from it.
"""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from transformers import DebertaV2Config, DebertaV2ForMaskedLM

from posattn.encoder.model import MaskedLanguageModel

from .originals import (
    HEADS,
    HIDDEN,
    LENGTHS,
    SHAPE,
    TOLERANCE,
    difference,
    imported,
    randomized,
    sample,
    shape,
)

Record = Callable[[str, object], None]
EPS = 1e-7
BUCKETS = 8


def pair(
    terms: str = "c2p p2c", shared: bool = True, norm_table: bool = True, farthest: int = 40
) -> tuple[DebertaV2ForMaskedLM, MaskedLanguageModel]:
    """Return transformers' model and ours with its weights."""
    config = DebertaV2Config(
        **{key: value for key, value in SHAPE.items() if key != "attn_implementation"},
        relative_attention=True,
        pos_att_type=terms.split(),
        share_att_key=shared,
        position_buckets=BUCKETS,
        max_relative_positions=farthest,
        norm_rel_ebd="layer_norm" if norm_table else "none",
        position_biased_input=False,
        type_vocab_size=0,
        layer_norm_eps=EPS,
        legacy=False,
    )
    original = randomized(DebertaV2ForMaskedLM(config))
    mechanism = {
        "name": "disentangled",
        "c2p": "c2p" in terms,
        "p2c": "p2c" in terms,
        "buckets": {"name": "log", "num_buckets": BUCKETS, "max_distance": farthest},
        "projections": "shared" if shared else "own",
        "key_bias": not shared and "c2p" in terms,
        "norm_table": norm_table,
    }
    ours = shape(norm={"eps": EPS}, mechanism=mechanism)
    return original, imported(original, ours)


@torch.no_grad()
@pytest.mark.parametrize("norm_table", [True, False], ids=["normed table", "plain table"])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
@pytest.mark.parametrize("terms", ["c2p p2c", "c2p", "p2c"])
def test_logits_and_states_equal(
    terms: str, shared: bool, norm_table: bool, record_property: Record
) -> None:
    original, model = pair(terms, shared, norm_table)
    gaps = []
    for length in [*LENGTHS, 40]:
        ids, visible, _ = given = sample(length)
        theirs = original(ids, attention_mask=given.attention_mask, output_hidden_states=True)
        ours = model(ids, visible=visible)
        gaps.append(difference(ours.logits, theirs.logits, visible))
        gaps.append(difference(ours.hidden, theirs.hidden_states[-1], visible))
    record_property("difference", max(gaps))
    assert max(gaps) <= TOLERANCE


@torch.no_grad()
def test_past_the_largest_distance_microsofts_formula_holds_and_transformers_differs(
    record_property: Record,
) -> None:
    farthest = 12
    original, model = pair(farthest=farthest)
    ids = sample(24).ids[:1]
    terms = model.score_terms(ids)[0]
    hidden = original.deberta.embeddings(ids)
    microsoft = _first_layer_by_loops(original, hidden[0].double(), farthest)
    gap = max(difference(terms[name][0].double(), microsoft[name]) for name in ("c2p", "p2c"))
    record_property("difference", gap)
    assert gap <= TOLERANCE
    theirs = original(ids).logits
    ours = model(ids).logits
    assert difference(ours, theirs) > 1e-2
    growing = {"beyond": "growing"}
    log = model.config.mechanism[0].buckets.model_copy(update=growing)
    part = model.config.mechanism[0].model_copy(update={"buckets": log})
    model.encoder.position.mechanisms["disentangled"].config = part  # the option for their form
    assert difference(model(ids).logits, theirs) <= TOLERANCE
    near = sample(farthest - 1).ids[:1]  # no distance beyond: the same two models agree
    assert difference(model(near).logits, original(near).logits) <= TOLERANCE


def test_the_published_buckets_of_v3_equal_microsofts_formula() -> None:
    _, model = pair()
    log = model.config.mechanism[0].buckets.model_copy(
        update={"num_buckets": 256, "max_distance": 512}
    )
    distance = torch.arange(-1000, 1001)[None, None]
    expected = [microsoft_bucket(d, 256, 512) for d in range(-1000, 1001)]
    assert log.signed(distance)[0, 0].tolist() == expected
    assert microsoft_bucket(300, 256, 512) == 207
    assert microsoft_bucket(1000, 256, 512) == 255


def microsoft_bucket(distance: int, num_buckets: int, max_distance: int) -> int:
    """Return the signed bucket of da_utils.py (2023-03-25), which clamps the distance first."""
    held = max(1 - max_distance, min(max_distance - 1, distance))
    middle = num_buckets // 2
    if abs(held) <= middle:
        return held
    share = math.log(abs(held) / middle) / math.log((max_distance - 1) / middle)
    far = math.ceil(share * (middle - 1)) + middle
    return far if held > 0 else -far


def _first_layer_by_loops(
    original: DebertaV2ForMaskedLM, hidden: Tensor, farthest: int
) -> dict[str, Tensor]:
    """Return c2p and p2c of the first layer in float64, one logit at a time."""
    attention = original.deberta.encoder.layer[0].attention.self
    table = original.deberta.encoder.get_rel_embedding().double()

    def projected(states: Tensor, name: str) -> Tensor:
        projection = getattr(attention, name)
        flat = states @ projection.weight.double().T + projection.bias.double()
        return flat.unflatten(-1, (HEADS, -1))

    query, key = projected(hidden, "query_proj"), projected(hidden, "key_proj")
    table_query, table_key = projected(table, "query_proj"), projected(table, "key_proj")
    length = hidden.shape[0]
    divisor = math.sqrt(3 * HIDDEN / HEADS)
    found = {name: torch.zeros(HEADS, length, length).double() for name in ("c2p", "p2c")}
    for i in range(length):
        for j in range(length):
            row = min(max(microsoft_bucket(i - j, BUCKETS, farthest) + BUCKETS, 0), 2 * BUCKETS - 1)
            for head in range(HEADS):
                c2p = query[i, head] @ table_key[row, head]
                p2c = table_query[row, head] @ key[j, head]
                found["c2p"][head, i, j] = c2p / divisor
                found["p2c"][head, i, j] = p2c / divisor
    return found
