"""From a recipe to its model."""

import torch

import posattn
from posattn.recipe.build import build, build_on_meta
from posattn.recipe.schema import load_recipe


def test_the_vocabulary_is_the_tokenizers_unless_it_is_given(tiny):
    recipe = load_recipe(tiny)
    assert build(recipe).encoder.tokens.num_embeddings == 50
    assert posattn.build(recipe, vocab_size=33).encoder.tokens.num_embeddings == 33


def test_the_weights_depend_on_the_seed_only(tiny):
    first, same = build(load_recipe(tiny)), build(load_recipe(tiny))
    other = build(load_recipe(tiny, ["train.seed=1"]))
    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), same.parameters(), strict=True)
    )
    assert not torch.equal(first.encoder.tokens.weight, other.encoder.tokens.weight)


def test_a_model_to_count_takes_no_memory_and_has_the_same_parameters(tiny):
    recipe = load_recipe(tiny)
    counted = dict(build_on_meta(recipe).named_parameters())
    real = dict(build(recipe).named_parameters())
    assert all(parameter.is_meta for parameter in counted.values())
    assert {n: p.shape for n, p in counted.items()} == {n: p.shape for n, p in real.items()}
