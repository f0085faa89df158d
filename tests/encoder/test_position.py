import math

import pytest
import torch
from torch import Tensor, nn

from posattn.backends import AttentionCall, probabilities
from posattn.bias import RelativeValues
from posattn.encoder.position import LayerPosition, PositionStack, named_parts
from posattn.errors import IncompatibleParts
from posattn.mechanisms import EncoderDims, Heads, Mechanism, NoPositionConfig, Site
from posattn.positions import GivenPairs

from .small_models import CLIPPED, HEADS, HIDDEN, config, ids, model

LENGTH = 6


def calls_of(made: object, tokens: Tensor, **inputs: object) -> list[AttentionCall]:
    calls: list[AttentionCall] = []
    made(tokens, observer=lambda call, term: calls.append(call), **inputs)
    return calls


def sinusoid(position: int) -> Tensor:
    columns = []
    for column in range(HIDDEN):
        angle = position * 10000 ** (-2 * (column // 2) / HIDDEN)
        columns.append(math.sin(angle) if column % 2 == 0 else math.cos(angle))
    return torch.tensor(columns, dtype=torch.float64)


def turned(vector: Tensor, position: int) -> Tensor:
    half = len(vector) // 2
    result = torch.empty_like(vector)
    for pair in range(half):
        angle = position * 10000 ** (-2 * pair / len(vector))
        first, second = vector[pair], vector[pair + half]
        result[pair] = first * math.cos(angle) - second * math.sin(angle)
        result[pair + half] = second * math.cos(angle) + first * math.sin(angle)
    return result


@torch.no_grad()
def test_sinusoids_rotation_and_penalty_in_one_layer_equal_their_sum_by_hand() -> None:
    made = model(["sinusoidal", "rope", "alibi"], embedding_norm=False).double()
    tokens = ids(1, LENGTH)
    terms = made.score_terms(tokens)[0]
    assert list(terms) == ["content", "rotation", "distance"]
    attention = made.encoder.layers[0].attention
    table = made.encoder.tokens.weight
    states = [table[token] + sinusoid(place) for place, token in enumerate(tokens[0])]
    width = HIDDEN // HEADS
    logits = torch.zeros(HEADS, LENGTH, LENGTH, dtype=torch.float64)
    for head in range(HEADS):
        rows = slice(head * width, (head + 1) * width)
        query_proj, key_proj = attention.query_proj, attention.key_proj
        for i in range(LENGTH):
            query = query_proj.weight[rows] @ states[i] + query_proj.bias[rows]
            for j in range(LENGTH):
                key = key_proj.weight[rows] @ states[j] + key_proj.bias[rows]
                content = query @ key / math.sqrt(width)
                rotated = turned(query, i) @ turned(key, j) / math.sqrt(width)
                penalty = -(2.0 ** (-4 * (head + 1))) * abs(i - j)
                torch.testing.assert_close(
                    terms["content"][0, head, i, j], content, rtol=1e-10, atol=1e-10
                )
                rotation = terms["rotation"][0, head, i, j]
                torch.testing.assert_close(rotation, rotated - content, rtol=1e-10, atol=1e-10)
                assert float(terms["distance"][0, head, i, j]) == pytest.approx(penalty)
                logits[head, i, j] = rotated + penalty
    probs = probabilities(calls_of(made, tokens)[0])[0]
    torch.testing.assert_close(probs, logits.softmax(-1), rtol=1e-8, atol=1e-10)


@torch.no_grad()
def test_each_layer_gets_the_mechanisms_of_its_pattern() -> None:
    parts = [
        {"name": "alibi", "layers": {"every": 2}},
        {"name": "transformer_xl", "layers": [1, 2]},
        {"name": "disentangled", "layers": [3], "buckets": CLIPPED},
    ]
    made = model(parts, num_layers=4)
    terms = [list(layer) for layer in made.score_terms(ids(2, LENGTH))]
    assert terms == [
        ["content", "distance"],
        ["a", "b", "c", "d"],
        ["a", "distance", "b", "c", "d"],
        ["c2c", "c2p", "p2c"],
    ]
    scales = [layer.attention.position.scale for layer in made.encoder.layers]
    assert scales == pytest.approx([8**-0.5, 8**-0.5, 8**-0.5, 24**-0.5])


@torch.no_grad()
def test_rotation_stays_out_of_layers_outside_its_pattern() -> None:
    made = model({"name": "rope", "layers": [1]})
    tokens = ids(1, LENGTH)
    first, second = calls_of(made, tokens)
    attention = made.encoder.layers[0].attention
    states = made.encoder.embedding_norm(made.encoder.tokens(tokens))
    plain = attention.query_proj(states).unflatten(-1, (HEADS, -1)).transpose(1, 2)
    torch.testing.assert_close(first.query, plain)
    moved = calls_of(made, tokens, positions=torch.arange(LENGTH)[None] + 5)
    assert torch.equal(moved[0].query, first.query)
    assert not torch.allclose(moved[1].query, second.query)


def test_a_repeated_mechanism_is_numbered_from_two() -> None:
    twice = config(
        [
            {"name": "rope", "layers": [0]},
            "alibi",
            {"name": "rope", "base": 500.0, "layers": [1]},
            {"name": "rope", "base": 7.0, "layers": [1]},
        ]
    )
    assert list(named_parts(twice)) == ["rope", "alibi", "rope_2", "rope_3"]
    made = model(["transformer_xl", {"name": "transformer_xl", "base": 50.0}])
    names = {name for name, _ in made.named_parameters()}
    for name in ("transformer_xl", "transformer_xl_2"):
        assert f"encoder.position.mechanisms.{name}.global_biases.content.weight" in names
        layer = f"encoder.layers.1.attention.position.parts.{name}.distance_proj.weight"
        assert layer in names


@torch.no_grad()
def test_terms_of_the_same_name_are_added() -> None:
    one = model("alibi").score_terms(ids(1, LENGTH))[0]
    two = model(["alibi", "alibi"]).score_terms(ids(1, LENGTH))[0]
    assert list(two) == ["content", "distance"]
    torch.testing.assert_close(two["distance"], 2 * one["distance"])
    torch.testing.assert_close(two["content"], one["content"])


@torch.no_grad()
def test_two_field_names_for_the_content_term_fall_back_to_content() -> None:
    parts = [{"name": "disentangled", "buckets": CLIPPED}, "transformer_xl"]
    terms = model(parts).score_terms(ids(1, LENGTH))[0]
    assert list(terms) == ["content", "c2p", "p2c", "b", "c", "d"]


class Values(Mechanism[NoPositionConfig]):
    """Adds a table row per distance to the values, as Shaw et al. do."""

    def relative_values(self, site: Site) -> RelativeValues:
        """Return one row for all distances."""
        return RelativeValues(
            torch.ones(1, 8), (GivenPairs(torch.zeros(1, 2, 2, dtype=torch.long)),)
        )


def test_only_one_mechanism_of_a_layer_may_add_values() -> None:
    part = LayerPosition(config(), PositionStack(config()), 0)
    mechanism = Values(NoPositionConfig(), EncoderDims(HIDDEN, HEADS))
    heads = Heads(*(torch.zeros(1, HEADS, 2, 8) for _ in range(3)))
    site = Site(heads, 1.0, None, nn.Module(), nn.Linear(2, 2), nn.Linear(2, 2))
    assert part.relative_values([]) is None
    assert isinstance(part.relative_values([(mechanism, site)]), RelativeValues)
    with pytest.raises(IncompatibleParts, match="only one mechanism of a layer may add values"):
        part.relative_values([(mechanism, site), (mechanism, site)])
