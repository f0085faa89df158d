import pytest
from pydantic import ValidationError

from posattn.encoder.config import EncoderConfig, NormConfig, WindowConfig
from posattn.mechanisms import registry

from .small_models import CLIPPED, MECHANISMS, config


def test_every_registered_mechanism_is_among_the_tested_ones() -> None:
    assert {options["name"] for options in MECHANISMS.values()} == set(registry.names())


def test_a_head_count_that_does_not_divide_is_refused_with_numbers_and_alternatives() -> None:
    with pytest.raises(
        ValidationError, match=r"num_heads 5 does not divide hidden_size 16.*1, 2, 4, 8"
    ):
        EncoderConfig(hidden_size=16, num_heads=5)


def test_one_mechanism_may_be_a_name_a_mapping_or_a_list() -> None:
    for written in ("rope", {"name": "rope"}, ["rope"], [{"name": "rope"}]):
        assert [part.name for part in config(written).mechanism] == ["rope"]


def test_an_empty_list_of_mechanisms_is_refused() -> None:
    with pytest.raises(ValidationError, match="empty list"):
        config([])


def test_a_misspelt_mechanism_gets_the_nearest_name() -> None:
    with pytest.raises(ValidationError, match="unknown mechanism 'rop'; did you mean 'rope'"):
        config("rop")


def test_a_misspelt_backend_gets_the_nearest_name() -> None:
    with pytest.raises(ValidationError, match="unknown backend 'eagr'; did you mean 'eager'"):
        config(backend="eagr")


def test_unknown_options_are_refused_in_the_encoder_and_in_a_mechanism() -> None:
    with pytest.raises(ValidationError, match="num_layer\n"):
        config(num_layer=3)
    with pytest.raises(ValidationError, match="bases"):
        config({"name": "rope", "bases": 10.0})


def test_texts_are_not_numbers() -> None:
    with pytest.raises(ValidationError, match="valid integer"):
        config(num_layers="4")


@pytest.mark.parametrize(
    ("layers", "acting"),
    [
        ({}, [0, 1, 2, 3, 4]),
        ({"every": 2}, [0, 2, 4]),
        ({"every": 3, "start": 1}, [1, 4]),
        ([0, 4], [0, 4]),
    ],
    ids=str,
)
def test_a_pattern_picks_its_layers(layers: object, acting: list[int]) -> None:
    encoder = config({"name": "alibi", "layers": layers}, num_layers=5)
    assert [layer for layer in range(5) if encoder.acting_in(layer)] == acting


def test_a_pattern_that_picks_no_layer_is_refused() -> None:
    with pytest.raises(ValidationError, match="mechanism 'rope' acts in no layer of 2"):
        config({"name": "rope", "layers": {"start": 2}})


def test_layers_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"names layers \[2, 7\].*layers 0 to 1"):
        config({"name": "rope", "layers": [0, 2, 7]})


def test_layers_of_a_mechanism_that_acts_before_them_are_refused() -> None:
    for name in ("learned", "sinusoidal"):
        with pytest.raises(ValidationError, match=f"'{name}' adds to the input"):
            config({"name": name, "layers": [1]})


def test_two_scales_in_one_layer_are_refused() -> None:
    both = {"name": "disentangled", "buckets": CLIPPED}
    one = both | {"p2c": False}
    with pytest.raises(ValidationError, match="different scales in layer 0"):
        config([both, one])
    apart = config([both | {"layers": [0]}, one | {"layers": [1]}])
    assert apart.divisor(0) == pytest.approx((3 * 8) ** 0.5)
    assert apart.divisor(1) == pytest.approx((2 * 8) ** 0.5)


def test_the_divisor_is_the_root_of_head_dim_where_no_mechanism_says_otherwise() -> None:
    assert config("rope").divisor(0) == pytest.approx(8**0.5)
    mixed = config([{"name": "disentangled", "layers": [1]}, "alibi"])
    assert mixed.divisor(0) == pytest.approx(8**0.5)
    assert mixed.divisor(1) == pytest.approx(24**0.5)


def test_mechanisms_may_refuse_the_shape() -> None:
    with pytest.raises(ValidationError, match=r"'halves' needs an even number of heads, not 1"):
        config({"name": "alibi", "variant": "halves"}, num_heads=1)
    with pytest.raises(ValidationError, match=r"fraction 0\.4 of head_dim 8 is 3"):
        config({"name": "rope", "fraction": 0.4})


def test_all_problems_are_named_at_once() -> None:
    parts = [{"name": "rope", "fraction": 0.4}, {"name": "alibi", "layers": [9]}]
    with pytest.raises(ValidationError) as caught:
        config(parts)
    for text in ("fraction 0.4", "acts in no layer", "names layers [9]"):
        assert text in str(caught.value)


def test_the_longest_sequence_is_that_of_the_shortest_table() -> None:
    assert config("rope").max_length() is None
    short = {"name": "learned", "max_positions": 10, "padding_row": 1}
    long = {"name": "learned", "max_positions": 9}
    assert config([short, "rope", long]).max_length() == 8


def test_memory_is_the_longest_that_a_mechanism_asks_for() -> None:
    assert config("transformer_xl").memory_length() == 0
    both = [{"name": "transformer_xl", "memory_length": n, "layers": [n % 2]} for n in (3, 4)]
    assert config(both).memory_length() == 4


def test_a_window_acts_in_the_layers_it_names_and_must_act_somewhere() -> None:
    window = WindowConfig(size=4, layers=[0, 2])
    assert [window.acts_in(layer) for layer in range(3)] == [True, False, True]
    with pytest.raises(ValidationError, match="window acts in no layer of 2"):
        config(window={"size": 4, "layers": [3]})


def test_only_norms_before_blocks_may_leave_out_the_first() -> None:
    assert not NormConfig(placement="pre", before_first=False).before_first
    with pytest.raises(ValidationError, match="before_first: false needs placement: pre"):
        NormConfig(before_first=False)


def test_the_inner_size_defaults_to_four_times_the_hidden_size() -> None:
    assert config(intermediate_size=None).inner_size() == 64
    assert config(intermediate_size=20).inner_size() == 20


@pytest.mark.parametrize("name", MECHANISMS)
def test_dumping_and_reading_keeps_every_option(name: str) -> None:
    encoder = config([MECHANISMS[name]], window={"size": 6, "layers": [1]})
    assert EncoderConfig.model_validate(encoder.model_dump()) == encoder
    for key, value in MECHANISMS[name].items():
        dumped = encoder.model_dump()["mechanism"][0][key]
        assert dumped == value


def test_a_projected_sum_needs_a_narrower_table() -> None:
    with pytest.raises(ValidationError, match="'sum' needs an embedding_size below hidden_size"):
        config("rope", embedding_projection="sum")
