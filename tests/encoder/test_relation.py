"""What relates tokens, through the whole model: padding, documents, decoders, and what is refused."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.errors import IncompatibleParts

from .small_models import config, ids, largest, model

GRID = {"name": "grid", "rows": 2, "columns": 3, "outside": 1}
KINDS = {"name": "categories", "num_values": 4}
T5 = {"name": "t5", "num_buckets": 8, "max_distance": 4}


def kinds(batch: int, length: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(length)
    return torch.randint(-1, 4, (batch, length, length), generator=generator)


def test_coordinates_in_order_are_what_is_counted_without_them() -> None:
    ours, tokens = model(T5, relation=GRID), ids(2, 7)
    cells = [[-1, -1], *([row, column] for row in range(2) for column in range(3))]
    found = ours.encoder(tokens, coordinates=torch.tensor([cells]))
    assert torch.equal(found, ours.encoder(tokens))


@pytest.mark.parametrize("mechanism", [T5, "rope", "sinusoidal", "mlp", "learned"], ids=str)
def test_padding_on_a_grid_changes_nothing(mechanism: Any) -> None:
    ours, tokens = model(mechanism, relation=GRID), ids(2, 5)
    padded = torch.nn.functional.pad(tokens, (2, 0))
    visible = (torch.arange(7) >= 2).expand(2, -1)
    assert largest(ours.encoder(padded, visible=visible)[:, 2:], ours.encoder(tokens)) < 1e-5


def test_each_packed_document_is_on_a_grid_of_its_own() -> None:
    ours, tokens = model(T5, relation=GRID), ids(1, 7)
    found = ours.encoder(tokens, documents=torch.tensor([[0, 0, 0, 0, 1, 1, 1]]))
    for part in (slice(0, 4), slice(4, 7)):
        assert largest(found[:, part], ours.encoder(tokens[:, part])) < 1e-5


def test_a_given_relation_is_the_same_for_padded_rows() -> None:
    ours, tokens, relation = model(T5, relation=KINDS), ids(2, 5), kinds(2, 5)
    padded = torch.nn.functional.pad(tokens, (0, 2))
    wider = torch.nn.functional.pad(relation, (0, 2, 0, 2), value=-1)
    visible = (torch.arange(7) < 5).expand(2, -1)
    found = ours.encoder(padded, visible=visible, relation=wider)[:, :5]
    assert largest(found, ours.encoder(tokens, relation=relation)) < 1e-5


def test_one_relation_for_the_batch_is_that_relation_for_each_row() -> None:
    ours, tokens, relation = model(T5, relation=KINDS), ids(3, 5), kinds(1, 5)
    each = ours.encoder(tokens, relation=relation.expand(3, -1, -1))
    assert torch.equal(ours.encoder(tokens, relation=relation), each)


@pytest.mark.parametrize("decode", ["masked_only", "all"])
@pytest.mark.parametrize("relation", [GRID, KINDS], ids=lambda one: one["name"])
def test_the_mask_decoder_reads_the_relation_at_selected_places(
    relation: dict[str, Any], decode: str
) -> None:
    inject = {"name": "learned", "max_positions": 8} if relation is GRID else "none"
    emd = {"name": "emd", "inject": inject, "decode": decode}
    ours, tokens = model(T5, emd, relation=relation), ids(2, 6)
    inputs = {} if relation is GRID else {"relation": kinds(2, 6)}
    selected = torch.zeros(2, 6, dtype=torch.bool)
    selected[0, [1, 4]] = selected[1, 5] = True
    found = ours(tokens, selected=selected, **inputs).logits
    assert largest(found, ours(tokens, **inputs).logits[selected]) < 1e-5


@pytest.mark.parametrize("mechanism", [T5, {"name": "disentangled", "p2p": True}], ids=str)
@pytest.mark.parametrize("relation", [GRID, KINDS], ids=lambda one: one["name"])
def test_backends_agree_on_every_relation(mechanism: Any, relation: dict[str, Any]) -> None:
    inputs = {} if relation is GRID else {"relation": kinds(2, 7)}
    found = {
        name: model(mechanism, relation=relation, backend=name).encoder(ids(2, 7), **inputs)
        for name in ("eager", "sdpa", "auto")
    }
    for states in found.values():
        assert largest(states, found["eager"]) < 1e-4


def test_the_terms_of_a_grid_are_named_as_on_a_line() -> None:
    ours = model({"name": "disentangled", "p2p": True}, relation=GRID)
    terms = ours.score_terms(ids(1, 7))
    assert [list(layer) for layer in terms] == [["c2c", "c2p", "p2c", "p2p"]] * 2


@pytest.mark.parametrize(
    ("mechanism", "relation", "message"),
    [
        ("rope", KINDS, "'rope' .* reads relation line or grid, not 'categories'"),
        ("alibi", GRID, "'alibi' .* reads relation line or distances"),
        ({"name": "alibi", "variant": "halves"}, {"name": "distances"}, "reads relation line, not"),
        ({"name": "t5", "bidirectional": False}, GRID, "'t5' .* reads relation line, not"),
        ({"name": "disentangled", "p2c_index": "paper"}, KINDS, "reads relation line or distances"),
        ({"name": "randomized", "mechanism": "t5"}, GRID, "'randomized' .* reads relation line"),
        (
            {"name": "dape", "mechanism": "alibi"},
            GRID,
            "'dape' .* reads relation line or distances",
        ),
        (
            {"name": "transformer_xl", "memory_length": 3},
            {"name": "distances"},
            "reads relation line",
        ),
        (["t5", "cope"], GRID, "'cope' .* reads relation line, not 'grid'"),
        ({"name": "rope", "fraction": 0.75}, GRID, "is 6; choose a positive multiple of 4"),
        ({"name": "rope", "axes": "split"}, {"name": "line"}, "one axis only on a line"),
        ({"name": "learned", "max_positions": 6}, GRID, "7 places, .* raise max_positions to 7"),
        ({"name": "t5", "max_distance": 16}, {"name": "distances"}, "never negative; raise it"),
    ],
    ids=str,
)
def test_a_mechanism_that_does_not_read_the_relation_is_refused(
    mechanism: Any, relation: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        config(mechanism, relation=relation)


def test_a_window_counts_places_on_a_line_only() -> None:
    with pytest.raises(ValidationError, match=r"window counts places on a line, .* 'grid'"):
        config(T5, relation=GRID, window={"size": 4})


def test_the_mask_decoder_injects_only_what_reads_the_relation() -> None:
    with pytest.raises(IncompatibleParts, match=r"'learned' .* reads relation line or grid, not"):
        model(T5, "emd", relation=KINDS)


@pytest.mark.parametrize(
    ("relation", "inputs", "message"),
    [
        (GRID, {"length": 8}, "8 tokens, but relation 'grid' takes at most 7"),
        (GRID, {"positions": torch.tensor([[0, 3, 7]])}, "position 7 is past the end of the grid"),
        (
            GRID,
            {"positions": torch.tensor([[0, 3, 6]]), "coordinates": torch.zeros(1, 3, 2).long()},
            "coordinates or positions, not both",
        ),
        (GRID, {"relation": torch.zeros(1, 3, 3).long()}, "a relation was given, but"),
        (KINDS, {}, "each forward needs relation="),
        ({"name": "line"}, {"coordinates": torch.zeros(1, 3, 2).long()}, "coordinates were given"),
    ],
    ids=str,
)
def test_an_input_that_does_not_fit_the_relation_is_refused(
    relation: dict[str, Any], inputs: dict[str, Any], message: str
) -> None:
    ours = model(T5, relation=relation)
    tokens = ids(1, inputs.pop("length", 3))
    with pytest.raises(IncompatibleParts, match=message):
        ours(tokens, **inputs)


def test_a_relation_survives_the_saved_recipe() -> None:
    ours = config(T5, relation={**GRID, "offsets": "joint", "first": "column"})
    assert EncoderConfig.model_validate_json(ours.model_dump_json()) == ours
