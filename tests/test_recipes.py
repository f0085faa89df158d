"""Every recipe that ships is whole: it loads, builds, and can run here."""

import pytest
import torch

from posattn.comparison.plan import make_plan
from posattn.comparison.study import load_study
from posattn.recipe.build import build, build_on_meta
from posattn.recipe.card import make_card
from posattn.recipe.check import check_recipe
from posattn.recipe.reader import read_file
from posattn.recipe.schema import load_recipe
from posattn.recipe.shipped import shipped_names

RECIPES = sorted(shipped_names("recipe"))
STUDIES = sorted(shipped_names("study"))
QUICK = [name for name in RECIPES if name.startswith("quick/")]
MECHANISMS = (
    "none",
    "learned",
    "sinusoidal",
    "rope",
    "alibi",
    "transformer_xl",
    "disentangled",
    "t5",
    "shaw",
    "kerple",
    "sandwich",
    "fire",
    "tupe",
    "xpos",
    "randomized",
    "cape",
    "mlp",
    "relative_logits",
    "pope",
    *("none", "learned", "sinusoidal", "rope", "alibi", "transformer_xl", "disentangled"),
    *("xpos", "randomized", "cape", "mlp", "relative_logits", "pope", "cope", "dape"),
)
PUBLISHED = {
    # parameters of the published masked language models, in millions, without what ours leave out
    "bert_base": (109.5, 110.0),
    "roberta_base": (124.6, 124.8),
    "deberta_base": (138.0, 140.0),
    "deberta_v3_base": (183.0, 186.0),
    "roformer_base": (123.0, 125.0),
    "mosaicbert_base": (137.0, 138.0),
    "transformer_xl_base": (115.0, 119.0),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_shipped_recipe_loads_builds_and_can_run(name):
    recipe = load_recipe(name)
    model = build_on_meta(recipe)
    assert check_recipe(recipe).parameters == sum(p.numel() for p in model.parameters())
    assert recipe.description
    assert "description" in read_file(shipped_names("recipe")[name]).data
    assert make_card(recipe)["parameters"]["total"] > 0


@pytest.mark.parametrize("name", STUDIES)
def test_a_shipped_study_can_be_planned(name):
    study = load_study(name)
    for one in study.task_studies().values() if study.tasks else (study,):
        for arm in make_plan(one).arms:
            check_recipe(arm.recipe)


def test_there_is_a_quick_recipe_for_every_mechanism_and_for_the_mask_decoder():
    assert {f"quick/{name}" for name in (*MECHANISMS, "disentangled_emd")} <= set(QUICK)
    for name in MECHANISMS:
        assert [part.name for part in load_recipe(f"quick/{name}").encoder.mechanism] == [name]
    assert load_recipe("quick/disentangled_emd").decoder.name == "emd"


@pytest.mark.parametrize("name", QUICK)
def test_quick_recipes_differ_in_mechanism_and_decoder_only(name):
    base, recipe = load_recipe("quick/base"), load_recipe(name)
    same = {"mechanism": base.encoder.mechanism}
    if name == "quick/grid":  # whose point is what relates two tokens
        same["relation"] = base.encoder.relation
    assert recipe.encoder.model_copy(update=same) == base.encoder
    assert (recipe.data, recipe.train, recipe.objective) == (base.data, base.train, base.objective)


@pytest.mark.parametrize("name", QUICK)
def test_quick_recipes_run_forward_and_backward(name):
    recipe = load_recipe(name)
    model = build(recipe, vocab_size=70)
    ids = torch.randint(0, 70, (2, recipe.data.max_length))
    selected = torch.zeros_like(ids, dtype=torch.bool)
    selected[:, 3:9] = True
    logits = model(ids, selected=selected).logits
    assert logits.shape == (12, 70)
    logits.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_full_recipes_have_the_published_shape(name):
    recipe = load_recipe(f"full/{name}")
    encoder = recipe.encoder
    assert (encoder.num_layers, encoder.hidden_size, encoder.num_heads) == (12, 768, 12)
    assert encoder.inner_size() == 3072
    low, high = PUBLISHED[name]
    assert low < check_recipe(recipe).parameters / 1e6 < high


def test_full_recipes_have_the_published_vocabularies_and_positions():
    sizes = {name: load_recipe(name).data.tokenizer.expected_vocab_size() for name in PUBLISHED}
    assert sizes == {
        "bert_base": 30522,
        "roberta_base": 50265,
        "deberta_base": 50265,
        "deberta_v3_base": 128100,
        "roformer_base": 50000,
        "mosaicbert_base": 30522,
        "transformer_xl_base": 32000,
    }
    bert, roberta, v1, v3 = (
        load_recipe(name).encoder
        for name in ("bert_base", "roberta_base", "deberta_base", "deberta_v3_base")
    )
    assert (bert.segments, bert.max_length()) == (2, 512)
    assert (roberta.mechanism[0].max_positions, roberta.max_length()) == (514, 512)
    assert (v1.mechanism[0].buckets.max_distance, v1.mechanism[0].projections) == (512, "own")
    log = v3.mechanism[0].buckets
    assert (log.name, log.num_buckets, log.max_distance) == ("log", 256, 512)
    assert (v3.mechanism[0].projections, v3.mechanism[0].norm_table) == ("shared", True)
    assert load_recipe("roformer_base").data.max_length == 1536
    assert load_recipe("transformer_xl_base").encoder.memory_length() == 256
    assert load_recipe("mosaicbert_base").encoder.mechanism[0].variant == "symmetric"
