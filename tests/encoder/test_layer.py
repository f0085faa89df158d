import pytest
import torch
from torch import nn

from posattn.encoder.layer import FeedForward, activation, norm

from .by_hand import alibi_logit, embedded, post_norm_layer, pre_norm_layer
from .by_hand import norm as norm_by_hand
from .small_models import config, ids, model


@torch.no_grad()
@pytest.mark.parametrize("placement", ["post", "pre"])
def test_two_layers_equal_loops_in_float64(placement: str) -> None:
    made = model("alibi", norm={"placement": placement}).double()
    tokens = ids(2, 5)
    visible = torch.tensor([[True] * 5, [True, True, True, False, False]])
    layer_by_hand = post_norm_layer if placement == "post" else pre_norm_layer
    ours = made.encoder(tokens, visible=visible)
    for row in range(2):
        states = embedded(made, tokens[row])
        for layer in made.encoder.layers:
            states = layer_by_hand(layer, states, states, visible[row], alibi_logit)
        if placement == "pre":
            states = norm_by_hand(made.encoder.final_norm, states)
        torch.testing.assert_close(
            ours[row][visible[row]], states[visible[row]], rtol=1e-10, atol=1e-10
        )


@torch.no_grad()
def test_a_gated_block_multiplies_by_the_activated_gate() -> None:
    block = FeedForward(config(activation="swiglu", feed_forward_bias=False))
    hidden = torch.randn(2, 3, 16)
    gate = hidden @ block.gate_proj.weight.T
    inner = hidden @ block.inner_proj.weight.T
    expected = (inner * gate * torch.sigmoid(gate)) @ block.output_proj.weight.T
    torch.testing.assert_close(block(hidden), expected)
    assert all("bias" not in name for name, _ in block.named_parameters())


def test_a_bias_may_stand_on_the_last_projection_only() -> None:
    block = FeedForward(config(activation="geglu", feed_forward_bias="output"))
    biases = [name for name, _ in block.named_parameters() if name.endswith("bias")]
    assert biases == ["output_proj.bias"]


def test_ungated_blocks_have_no_gate() -> None:
    assert not hasattr(FeedForward(config(activation="relu")), "gate_proj")


@pytest.mark.parametrize(
    ("name", "at_one"),
    [
        ("gelu", 0.8413447460685429),
        ("gelu_tanh", 0.8411919906082768),
        ("relu", 1.0),
        ("silu", 0.7310585786300049),
        ("geglu", 0.8413447460685429),
        ("geglu_tanh", 0.8411919906082768),
        ("reglu", 1.0),
        ("swiglu", 0.7310585786300049),
    ],
)
def test_activations_have_the_values_of_their_formulas(name: str, at_one: float) -> None:
    assert float(activation(name)(torch.tensor(1.0, dtype=torch.float64))) == pytest.approx(at_one)


def test_the_norm_is_the_one_of_the_recipe() -> None:
    assert isinstance(norm(config()), nn.LayerNorm)
    assert norm(config()).eps == 1e-12
    rms = norm(config(norm={"kind": "rms_norm", "eps": 1e-6}))
    assert isinstance(rms, nn.RMSNorm)
    hidden = torch.randn(3, 16)
    expected = hidden / (hidden.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    torch.testing.assert_close(rms(hidden), expected)


@torch.no_grad()
def test_the_first_norm_before_blocks_can_be_left_out() -> None:
    without = model("alibi", norm={"placement": "pre", "before_first": False})
    first, second = without.encoder.layers
    assert isinstance(first.attention_norm, nn.Identity)
    assert isinstance(second.attention_norm, nn.LayerNorm)
    assert isinstance(first.feed_forward_norm, nn.LayerNorm)


def test_dropout_acts_in_training_only() -> None:
    made = model("alibi", hidden_dropout=0.5, attention_dropout=0.5)
    tokens = ids(2, 6)
    assert torch.equal(made(tokens).logits, made(tokens).logits)
    made.train()
    assert not torch.equal(made(tokens).logits, made(tokens).logits)


@pytest.mark.parametrize("bias", ["all", "no_key", "none"])
def test_projection_biases_are_those_asked_for(bias: str) -> None:
    attention = model(projection_bias=bias).encoder.layers[0].attention
    has = {
        part: getattr(attention, f"{part}_proj").bias is not None
        for part in ("query", "key", "value", "output")
    }
    assert has["key"] == (bias == "all")
    assert has["query"] == has["value"] == has["output"] == (bias != "none")
