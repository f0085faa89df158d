"""Geometry, patterns over layers, and how a mechanism is picked by name."""

import pytest
import torch
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig
from posattn.mechanisms import Geometry, LayerPattern, RotaryConfig, names


def test_the_seven_built_in_mechanisms_are_registered() -> None:
    built_in = {"none", "learned", "sinusoidal", "rope", "alibi", "transformer_xl", "disentangled"}
    assert built_in <= set(names())


def test_a_pattern_picks_every_nth_layer_from_its_start() -> None:
    pattern = LayerPattern(every=3, start=1)
    assert [layer for layer in range(9) if pattern.picks(layer)] == [1, 4, 7]
    assert all(LayerPattern().picks(layer) for layer in range(5))


def test_layers_are_a_list_or_a_pattern() -> None:
    listed = RotaryConfig.model_validate({"layers": [0, 2]})
    assert [listed.acts_in(layer) for layer in range(3)] == [True, False, True]
    pattern = RotaryConfig.model_validate({"layers": {"every": 2}})
    assert [pattern.acts_in(layer) for layer in range(3)] == [True, False, True]


def test_the_largest_distance_is_looked_up_only_if_it_is_not_given() -> None:
    query, key = torch.tensor([[4, 9]]), torch.tensor([[0, 30]])
    assert Geometry(query, key).distance.largest == 26
    assert Geometry(query, key, reach=99).distance.largest == 99
    assert Geometry(query[:, :0], key).distance.largest == 0


def test_a_misspelt_mechanism_gets_the_nearest_name() -> None:
    with pytest.raises(ValidationError, match="did you mean 'rope'"):
        EncoderConfig(mechanism={"name": "rop"})


def test_an_option_of_another_mechanism_is_refused() -> None:
    with pytest.raises(ValidationError, match="max_positions"):
        EncoderConfig(mechanism={"name": "alibi", "max_positions": 32})


@pytest.mark.parametrize("layers", [[2], [0, 5], {"start": 7}])
def test_layers_that_do_not_exist_are_refused(layers: object) -> None:
    with pytest.raises(ValidationError, match=r"encoder has layers 0 to 1|acts in no layer"):
        EncoderConfig(num_layers=2, mechanism={"name": "rope", "layers": layers})
