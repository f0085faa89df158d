"""The architecture contract."""

import json

import pytest

from posattn.recipe.card import make_card
from posattn.recipe.schema import load_recipe


def test_the_card_of_deberta_says_what_it_computes():
    card = make_card(load_recipe("full/deberta_base"))
    mechanism = card["mechanism"]
    assert mechanism["name"] == "disentangled"
    assert "clipped at -512 and 511" in mechanism["positions"]
    assert mechanism["terms"] == "c2c, c2p, p2c"
    assert "sqrt(3 x 64)" in mechanism["scale"]
    assert "sqrt(3 x 64)" in card["encoder"]["scale"]
    assert card["absolute position"] == {
        "in the encoder": "no",
        "returns in the decoder": "learned",
    }
    assert "query H + I" in card["readout"]["decoder"]
    assert card["objective"]["probability"] == "0.15"
    assert card["parameters"]["total"] > 130_000_000
    assert card["FLOPs per token, forward"]["total"] > 2 * 85_000_000


def test_the_card_of_bert_has_absolute_positions_in_the_input():
    card = make_card(load_recipe("bert_base"))
    assert card["absolute position"] == {
        "in the encoder": "learned",
        "returns in the decoder": "no",
    }
    assert card["mechanism"]["longest input"] == 512
    assert card["parameters"]["position only"] == 512 * 768


def test_the_card_tells_layers_windows_and_several_mechanisms(tiny):
    card = make_card(
        load_recipe(
            tiny,
            [
                "encoder.mechanism=[{name: rope, layers: {every: 2, start: 1}}, {name: alibi, layers: [0]}]",
                "encoder.window={size: 8, layers: [0]}",
            ],
        )
    )
    assert card["mechanism 1"]["layers"] == "every 2nd layer from 1 on"
    assert card["mechanism 2"]["layers"] == "layer 0"
    assert card["mechanism 2"]["tells left from right"] == "no"
    assert card["encoder"]["window"] == "keys up to 4 away, in layer 0"


def test_the_card_tells_what_stands_around_the_layers(tiny):
    options = [
        "encoder.token_rows=9000",
        "encoder.embedding_size=8",
        "encoder.convolution={kernel_size: 5, activation: gelu}",
        "encoder.norm.bias=false",
    ]
    lines = make_card(load_recipe(tiny, options))["encoder"]
    assert lines["token table"] == "9,000 rows, whatever the tokenizer has"
    assert lines["embeddings"].startswith("8 wide, projected to")
    assert lines["convolution"].startswith("of the embeddings, 5 wide, 1 group(s), gelu")
    assert lines["norm"].endswith("no bias")


def test_the_card_is_plain_data(tiny):
    card = make_card(load_recipe(tiny))
    assert json.loads(json.dumps(card)) == card


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], "projection, gelu, norm, output weights tied to the token table, own bias"),
        (["head.transform=false"], "output weights tied to the token table, own bias"),
        (
            ["head={bias: false, output_bias: false, activation: relu}"],
            "projection without bias, relu, norm, output weights tied to the token table, no bias",
        ),
    ],
)
def test_the_card_names_what_the_head_does(tiny, options, line):
    assert make_card(load_recipe(tiny, options))["readout"]["head"] == line


def test_the_card_says_what_is_projected_with_a_narrow_table_and_that_segments_count(tiny):
    options = [
        "encoder.embedding_size=8",
        "encoder.embedding_projection=sum",
        "encoder.mechanism={name: transformer_xl, segment_term: true}",
    ]
    card = make_card(load_recipe(tiny, options))
    assert card["encoder"]["embeddings"].startswith("8 wide, with segments and norm, projected to")
    assert card["mechanism"]["terms"].endswith("e (same segment or not)")
