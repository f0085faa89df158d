from collections import Counter
from itertools import product
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from posattn.encoder.mask_decoder import MaskDecoderConfig
from posattn.encoder.model import MaskedLanguageModel
from posattn.errors import IncompatibleParts

from .by_hand import alibi_logit, embedded, norm, post_norm_layer, pre_norm_layer
from .small_models import MECHANISMS, config, decoder, ids, largest, model

LENGTH = 5
SELECTED = torch.tensor([[False, True, False, True, True], [True, False, False, False, False]])
VISIBLE = torch.tensor([[True] * 5, [True, True, True, False, False]])

SWITCHES = [
    {"query": query, "layers": layers, "share": share, "kv": kv}
    for query, layers, (share, kv) in product(
        ["h_plus_p", "p_only"],
        [1, 2, 3],
        [("last_layer", "n-1"), ("last_layer", "n"), ("own", "n")],
    )
]


def emd(**options: Any) -> dict[str, Any]:
    return {"name": "emd", "inject": {"name": "learned", "max_positions": 32}} | options


def by_hand(made: MaskedLanguageModel, tokens: Tensor, visible: Tensor) -> Tensor:
    """Return the decoded states of one sequence, step by step as the module's docstring says."""
    options = made.decoder_config
    assert isinstance(options, MaskDecoderConfig)
    is_post = made.config.norm.placement == "post"
    run = post_norm_layer if is_post else pre_norm_layer
    states = embedded(made, tokens)
    layers = list(made.encoder.layers)
    for layer in layers[:-1] if options.kv == "n-1" else layers:
        states = run(layer, states, states, visible, alibi_logit)
    count = (visible.long().cumsum(0) - 1).clamp(min=0)
    injected = made.decoder.inject.table.weight[count]
    query = states + injected if options.query == "h_plus_p" else injected
    own = list(made.decoder.layers)
    for step in range(options.layers):
        layer = own[step] if options.share == "own" else layers[-1]
        query = run(layer, query, states, visible, alibi_logit)
    return query if is_post else norm(made.encoder.final_norm, query)


@torch.no_grad()
@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize(
    "switches", SWITCHES, ids=lambda switches: " ".join(map(str, switches.values()))
)
def test_every_combination_of_switches_equals_the_steps_by_hand(
    switches: dict[str, Any], placement: str
) -> None:
    made = model("alibi", emd(**switches), norm={"placement": placement}).double()
    tokens = ids(2, LENGTH)
    expected = [by_hand(made, row, seen) for row, seen in zip(tokens, VISIBLE, strict=True)]
    everywhere = made(tokens, visible=VISIBLE)
    some = made(tokens, visible=VISIBLE, selected=SELECTED)
    for row in range(2):
        ours = everywhere.hidden[row][VISIBLE[row]]
        torch.testing.assert_close(ours, expected[row][VISIBLE[row]], rtol=1e-9, atol=1e-9)
    chosen = torch.cat([states[picked] for states, picked in zip(expected, SELECTED, strict=True)])
    torch.testing.assert_close(some.hidden, chosen, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(some.logits, made.head(chosen), rtol=1e-9, atol=1e-9)


@torch.no_grad()
@pytest.mark.parametrize("kv", ["n-1", "n"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_decoding_selected_places_equals_decoding_all_over_every_mechanism(
    name: str, kv: str
) -> None:
    some = model(MECHANISMS[name], emd(kv=kv, decode="masked_only"))
    everything = model(MECHANISMS[name], emd(kv=kv, decode="all"))
    tokens = ids(2, LENGTH)
    chosen = some(tokens, visible=VISIBLE, selected=SELECTED).logits
    assert chosen.shape[0] == 4
    full = everything(tokens, visible=VISIBLE, selected=SELECTED).logits
    assert largest(chosen, full) < 5e-5
    assert largest(chosen, some(tokens, visible=VISIBLE).logits[SELECTED]) < 5e-5


@torch.no_grad()
@pytest.mark.parametrize("decode", ["masked_only", "all"])
@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_nothing_injected_and_one_layer_is_the_plain_decoder_bit_for_bit(
    name: str, placement: str, decode: str
) -> None:
    shape: dict[str, Any] = {"norm": {"placement": placement}}
    control = model(
        MECHANISMS[name],
        {"name": "emd", "inject": "none", "layers": 1, "decode": decode},
        **shape,
    )
    plain = model(MECHANISMS[name], {"name": "plain", "decode": decode}, **shape)
    assert control.state_dict().keys() == plain.state_dict().keys()
    tokens = ids(2, LENGTH)
    for selected in (None, SELECTED):
        ours = control(tokens, visible=VISIBLE, selected=selected).logits
        assert torch.equal(ours, plain(tokens, visible=VISIBLE, selected=selected).logits)


@torch.no_grad()
def test_what_is_injected_enters_the_output_and_only_after_the_last_layer_but_one() -> None:
    with_table = model("alibi", emd())
    tokens = ids(1, LENGTH)
    before = with_table(tokens).logits
    states = with_table.encoder.run(
        with_table.encoder.embed(tokens, None, context := with_table.encoder.begin(tokens)), context
    )
    with_table.decoder.inject.table.weight.mul_(2.0)
    assert largest(with_table(tokens).logits, before) > 1e-2
    again = with_table.encoder.run(with_table.encoder.embed(tokens, None, context), context)
    assert all(torch.equal(one, other) for one, other in zip(states, again, strict=True))


@torch.no_grad()
def test_sinusoids_can_be_injected() -> None:
    made = model("rope", {"name": "emd", "inject": {"name": "sinusoidal", "scale": 0.5}})
    tokens = ids(1, LENGTH)
    ours = made(tokens).logits
    plain = made.decoder.inject.embed(torch.zeros(1, LENGTH, 16), torch.arange(LENGTH)[None])
    learned = model("rope", emd())
    learned.load_state_dict(made.state_dict(), strict=False)
    learned.decoder.inject.table.weight[:LENGTH] = plain[0]
    assert largest(ours, learned(tokens).logits) < 1e-5


RUNS = [
    ({"kv": "n-1", "layers": 2}, [1, 1, 2], []),
    ({"kv": "n-1", "layers": 1}, [1, 1, 1], []),
    ({"kv": "n", "layers": 2}, [1, 1, 3], []),
    ({"kv": "n", "layers": 3, "share": "own"}, [1, 1, 1], [1, 1, 1]),
]


@torch.no_grad()
@pytest.mark.parametrize("selected", [False, True], ids=["all places", "selected places"])
@pytest.mark.parametrize(("switches", "shared", "own"), RUNS, ids=str)
def test_each_layer_runs_as_often_as_it_must(
    switches: dict[str, Any], shared: list[int], own: list[int], selected: bool
) -> None:
    made = model("disentangled", emd(**switches), num_layers=3)
    runs: Counter[int] = Counter()
    for layer in [*made.encoder.layers, *made.decoder.layers]:
        layer.register_forward_hook(lambda module, given, result: runs.update([id(module)]))
    made(ids(2, LENGTH), selected=SELECTED if selected else None)
    assert [runs[id(layer)] for layer in made.encoder.layers] == shared
    assert [runs[id(layer)] for layer in made.decoder.layers] == own
    everywhere, at_places = made.decoder_config.layer_runs(made.config)
    assert everywhere + at_places == sum(shared) + sum(own)


@torch.no_grad()
def test_relative_terms_stay_active_in_the_decoder() -> None:
    made = model("disentangled", emd())
    terms = made.score_terms(ids(1, LENGTH))
    assert [list(layer) for layer in terms] == [["c2c", "c2p", "p2c"]] * 3
    assert terms[1]["p2c"].shape == (1, 2, LENGTH, LENGTH)
    torch.testing.assert_close(terms[1]["p2c"], terms[2]["p2c"])  # the same keys
    assert largest(terms[1]["c2p"], terms[2]["c2p"]) > 1e-3  # other queries


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"inject": "rope"}, "'rope' adds nothing to states"),
        ({"inject": "alibi"}, "'alibi' adds nothing to states"),
        ({"inject": "none", "query": "p_only"}, "leaves the queries empty"),
        ({"share": "own"}, "would leave the encoder's last layer untrained"),
        ({"layers": 0}, "greater than 0"),
        ({"inject": {"name": "learned", "layers": [1]}}, "takes no layers option"),
        ({"query": "h"}, "h_plus_p"),
        ({"kv": "all"}, "n-1"),
        ({"depth": 2}, "Extra inputs are not permitted"),
    ],
    ids=str,
)
def test_combinations_that_mean_nothing_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        decoder({"name": "emd"} | options)


def test_memory_has_nothing_for_keys_of_the_last_layer() -> None:
    encoder = config({"name": "transformer_xl", "memory_length": 3})
    refused = decoder(emd(kv="n"))
    with pytest.raises(IncompatibleParts, match="kv: n has no memory to read"):
        MaskedLanguageModel(encoder, refused, 11)
    MaskedLanguageModel(encoder, decoder(emd()), 11)


def test_a_longer_input_than_the_injected_table_is_refused_with_both_numbers() -> None:
    made = model("rope", {"name": "emd", "inject": {"name": "learned", "max_positions": 4}})
    assert made.max_length() == 4
    assert made(ids(1, 4)).logits.shape == (1, 4, 13)
    with pytest.raises(IncompatibleParts, match=r"5 tokens.*at most 4"):
        made(ids(1, 5))


def test_defaults_are_those_of_microsofts_code() -> None:
    options = decoder("emd")
    assert isinstance(options, MaskDecoderConfig)
    assert options.inject.name == "learned"
    assert (options.query, options.layers, options.share) == ("h_plus_p", 2, "last_layer")
    assert (options.kv, options.decode) == ("n-1", "masked_only")
    assert options.layer_runs(config(num_layers=12)) == (11, 2)
    every = decoder({"name": "emd", "decode": "all"})
    assert every.layer_runs(config(num_layers=12)) == (13, 0)


def test_gradients_reach_the_table_and_every_layer() -> None:
    made = model("disentangled", emd(), num_layers=3)
    made(ids(2, LENGTH), selected=SELECTED).logits.pow(2).sum().backward()
    table = made.decoder.inject.table.weight
    assert table.grad is not None
    assert bool(table.grad[:LENGTH].any(dim=1)[[0, 1, 3, 4]].all())
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None, name
        assert bool(torch.isfinite(parameter.grad).all()), name
