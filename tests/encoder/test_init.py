from itertools import combinations

import pytest
import torch
from torch import Tensor

from posattn.encoder.init import initialize, named_generator
from posattn.encoder.model import MaskedLanguageModel

from .small_models import MECHANISMS, VOCAB, config, decoder


def values(
    mechanism: object, seed: int = 0, decode: object = "plain", **options: object
) -> dict[str, Tensor]:
    made = MaskedLanguageModel(config(mechanism, **options), decoder(decode), VOCAB)
    initialize(made, seed)
    return {name: tensor.detach() for name, tensor in made.named_parameters()}


def random_names(tensors: dict[str, Tensor]) -> set[str]:
    return {name for name, tensor in tensors.items() if tensor.unique().numel() > 2}


def test_parameters_that_two_mechanisms_share_start_equal_for_all_pairs() -> None:
    models = {name: values(options) for name, options in MECHANISMS.items()}
    for first, second in combinations(models.values(), 2):
        shared = {n for n in first.keys() & second.keys() if first[n].shape == second[n].shape}
        body = {n for n in first if "position" not in n}
        assert body <= shared
        assert random_names(first) & shared
        for name in shared:
            assert torch.equal(first[name], second[name]), name


def test_one_more_mechanism_or_decoder_shifts_nobody() -> None:
    alone = values("rope")
    with_more = values(["rope", "transformer_xl", "disentangled"], decode="emd", segments=2)
    assert alone.keys() < with_more.keys()
    for name, tensor in alone.items():
        assert torch.equal(tensor, with_more[name]), name


def test_more_layers_leave_the_first_ones_as_they_were() -> None:
    few, many = values("disentangled", num_layers=2), values("disentangled", num_layers=4)
    assert all(torch.equal(tensor, many[name]) for name, tensor in few.items())


def test_the_same_seed_repeats_and_another_differs_in_every_random_parameter() -> None:
    first, again, other = (values("disentangled", seed=seed) for seed in (0, 0, 1))
    assert random_names(first)
    for name in first:
        assert torch.equal(first[name], again[name])
        if name in random_names(first):
            assert not torch.equal(first[name], other[name])


def test_no_two_parameters_of_a_model_start_equal_by_chance_of_the_same_generator() -> None:
    tensors = values("disentangled")
    for first, second in combinations(sorted(random_names(tensors)), 2):
        size = min(tensors[first].numel(), tensors[second].numel())
        assert not torch.equal(tensors[first].flatten()[:size], tensors[second].flatten()[:size])


def test_nothing_depends_on_the_global_generator() -> None:
    torch.manual_seed(1)
    first = values("transformer_xl")
    torch.manual_seed(2)
    second = values("transformer_xl")
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("name", MECHANISMS)
def test_biases_are_zero_norms_are_one_and_tables_have_the_range_asked_for(name: str) -> None:
    for full, tensor in values(MECHANISMS[name], hidden_size=64, initializer_range=0.5).items():
        if "fire.linears" in full or "network.linears" in full:
            continue  # a small network: its own rule is tested below
        if full.endswith("bias"):
            assert not tensor.any(), full
        elif "norm" in full:
            assert bool((tensor == 1).all()), full
        elif full.endswith("weight") and tensor.numel() > 500:
            assert abs(float(tensor.std()) - 0.5) < 0.05, full


def test_values_that_a_constructor_chose_are_kept() -> None:
    alibi = values({"name": "alibi", "learned_slopes": True})
    slopes = alibi["encoder.position.mechanisms.alibi.log_slopes"].exp()
    torch.testing.assert_close(slopes, torch.tensor([2.0**-4, 2.0**-8]))
    scale = values({"name": "sinusoidal", "learned_scale": True, "scale": 0.25})
    assert float(scale["encoder.position.mechanisms.sinusoidal.scale"]) == 0.25


def test_a_tied_table_starts_with_the_values_of_its_first_name() -> None:
    made = MaskedLanguageModel(config("rope", initializer_range=0.5), decoder(), VOCAB)
    initialize(made, 3)
    table = made.encoder.tokens.weight
    noise = torch.randn(table.shape, generator=named_generator(3, "encoder.tokens.weight"))
    assert torch.equal(table, noise * 0.5)
    assert made.head.output.weight is table


def test_a_generator_depends_on_seed_and_name() -> None:
    def draw(seed: int, name: str) -> float:
        return float(torch.rand(1, generator=named_generator(seed, name)))

    assert draw(0, "a") == draw(0, "a")
    assert len({draw(0, "a"), draw(1, "a"), draw(0, "b"), draw(10, "a")}) == 4


def test_small_networks_of_mechanisms_start_as_pytorch_starts_them() -> None:
    mechanism = {"name": "fire", "hidden_width": 400}
    model = MaskedLanguageModel(config(mechanism), decoder("plain"), VOCAB)
    initialize(model, 0)
    part = "encoder.layers.0.attention.position.parts.fire.linears"
    parameters = dict(model.named_parameters())
    for index, width in ((0, 1), (1, 400), (2, 400)):
        for kind in ("weight", "bias"):
            value = parameters[f"{part}.{index}.{kind}"].detach()
            assert value.abs().max() <= width**-0.5
            if value.numel() > 100:
                assert value.std().item() == pytest.approx((3 * width) ** -0.5, rel=0.15)
                assert value.abs().max() > 0.9 * width**-0.5
