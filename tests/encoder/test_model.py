import pytest
import torch

from posattn.backends import AttentionCall, probabilities
from posattn.encoder.model import position_parameters
from posattn.errors import IncompatibleParts

from .small_models import MECHANISMS, VOCAB, ids, largest, model

LENGTH = 6


def test_logits_without_selection_are_for_all_places() -> None:
    output = model("rope")(ids(3, LENGTH))
    assert output.logits.shape == (3, LENGTH, VOCAB)
    assert output.hidden.shape == (3, LENGTH, 16)
    assert output.memory is None


@torch.no_grad()
def test_logits_of_a_selection_are_row_by_row() -> None:
    made = model("rope")
    selected = torch.tensor([[False, True] * 3, [False] * 6, [True] * 6])
    output = made(ids(3, LENGTH), selected=selected)
    assert output.logits.shape == (9, VOCAB)
    assert largest(output.logits, made(ids(3, LENGTH)).logits[selected]) < 1e-5


@pytest.mark.parametrize("padding_row", [None, 1])
def test_a_longer_input_than_the_learned_table_is_refused_with_both_numbers(
    padding_row: int | None,
) -> None:
    rows = 10 if padding_row is None else 12
    made = model({"name": "learned", "max_positions": rows, "padding_row": padding_row})
    assert made.max_length() == 10
    assert made(ids(1, 10)).logits.shape[1] == 10
    with pytest.raises(IncompatibleParts, match=r"11 tokens.*'learned' takes at most 10"):
        made(ids(1, 11))


def test_given_positions_past_the_table_are_refused_with_both_numbers() -> None:
    made = model({"name": "learned", "max_positions": 10})
    with pytest.raises(IncompatibleParts, match=r"position 10 is past the end.*0 to 9"):
        made(ids(1, 3), positions=torch.tensor([[8, 9, 10]]))


def test_the_longest_sequence_is_the_shorter_of_encoder_and_decoder() -> None:
    inject = {"name": "emd", "inject": {"name": "learned", "max_positions": 7}}
    assert model("rope").max_length() is None
    assert model("rope", inject).max_length() == 7
    assert model({"name": "learned", "max_positions": 5}, inject).max_length() == 5


@torch.no_grad()
@pytest.mark.parametrize("decode", ["plain", "emd"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_score_terms_sum_to_the_logits_that_attention_used(name: str, decode: str) -> None:
    made = model(MECHANISMS[name], decode)
    tokens = ids(2, LENGTH)
    visible = torch.tensor([[True] * 6, [True, True, True, True, False, False]])
    calls: list[AttentionCall] = []
    made(tokens, visible=visible, observer=lambda call, term: calls.append(call))
    terms = made.score_terms(tokens, visible=visible)
    assert len(terms) == len(calls) == (2 if decode == "plain" else 3)
    for named, call in zip(terms, calls, strict=True):
        total = sum(named.values())
        hidden = call.visibility.pairs
        assert hidden is not None
        probs = total.masked_fill(~hidden, -torch.inf).softmax(-1).nan_to_num(0.0)
        assert largest(probs.expand(2, 2, -1, -1), probabilities(call)) < 1e-6
        assert all(bool(torch.isfinite(value).all()) for value in named.values())


@torch.no_grad()
def test_the_first_term_has_the_name_that_the_field_gave_it() -> None:
    first = {name: next(iter(model(name).score_terms(ids(1, 4))[0])) for name in ("rope", "alibi")}
    assert first == {"rope": "content", "alibi": "content"}
    assert list(model("disentangled").score_terms(ids(1, 4))[0]) == ["c2c", "c2p", "p2c"]
    assert list(model("transformer_xl").score_terms(ids(1, 4))[0]) == ["a", "b", "c", "d"]


OWNED = {
    "none": 0,
    "learned": 1,
    "learned, RoBERTa": 1,
    "sinusoidal": 0,
    "sinusoidal, learned scale": 1,
    "rope": 0,
    "rope, interleaved half": 0,
    "alibi": 0,
    "alibi, halves": 0,
    "alibi, separate": 2,
    "alibi, offset": 0,
    "transformer_xl": 2 + 2,  # u and v, and W_r in each of two layers
    "transformer_xl, causal": 3 * 2,  # untied: u, v and W_r in each layer
    "disentangled": 3,  # table, weight and bias of its norm
    "disentangled, v1": 1 + 2 * 3,  # table, and W_kr, W_qr and its bias in each layer
    "disentangled, p2p": 3,
    "t5": 1,
    "shaw, keys": 1 * 2,  # in each of two layers
    "shaw": 2 * 2,
    "kerple": 2,
    "sandwich": 0,
    "fire": (3 * 2 + 2) * 2,  # three linear layers, c and L, in each layer
    "fire, shared": 3 * 2 + 2,
    "tupe": 1 + 2 + 2 * 2 + 1,  # table, its norm, U_Q and U_K with biases, buckets
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_position_parameters_are_those_that_the_model_without_position_lacks(name: str) -> None:
    made = model(MECHANISMS[name])
    without = {full for full, _ in model("none").named_parameters()}
    added = {full for full, _ in made.named_parameters()} - without
    assert position_parameters(made) == added
    assert len(added) == OWNED[name]


def test_position_parameters_include_what_a_decoder_injects_and_its_layers_own() -> None:
    own = {"name": "emd", "share": "own", "kv": "n", "layers": 1}
    made = model("transformer_xl", own)
    names = position_parameters(made)
    assert "decoder.inject.table.weight" in names
    proj = "attention.position.parts.transformer_xl.distance_proj.weight"
    assert f"decoder.layers.0.{proj}" in names
    assert "decoder.layers.0.attention.query_proj.weight" not in names
    assert names <= {full for full, _ in made.named_parameters()}
    assert len(names) == 2 + 2 + 1 + 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
@pytest.mark.parametrize("name", MECHANISMS)
def test_models_run_in_other_dtypes_near_the_float64_result(name: str, dtype: torch.dtype) -> None:
    made = model(MECHANISMS[name], "emd")
    tokens = ids(2, LENGTH)
    visible = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    with torch.no_grad():
        exact = made.double()(tokens, visible=visible).hidden
        hidden = made.to(dtype)(tokens, visible=visible).hidden
    assert hidden.dtype == dtype
    bound = {torch.bfloat16: 0.25, torch.float16: 0.03, torch.float64: 1e-12}[dtype]
    assert largest(hidden.double()[visible], exact[visible]) < bound


@torch.no_grad()
@pytest.mark.parametrize("name", MECHANISMS)
def test_models_run_under_autocast(name: str) -> None:
    made = model(MECHANISMS[name], "emd")
    tokens = ids(2, LENGTH)
    exact = made(tokens).hidden
    with torch.autocast("cpu", torch.bfloat16):
        hidden = made(tokens).hidden
    assert largest(hidden.float(), exact) < 0.25
