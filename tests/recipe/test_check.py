"""Whether a recipe can run, without running it."""

import pytest

from posattn.backends import AttentionBackend
from posattn.backends import registry as backends
from posattn.encoder.model import position_parameters
from posattn.errors import BackendRefusal, CheckpointError, IncompatibleParts, RecipeError
from posattn.recipe.build import build
from posattn.recipe.check import check_recipe
from posattn.recipe.run import training_job
from posattn.recipe.schema import load_recipe
from posattn.training.weights import save_weights


class Unwilling(AttentionBackend):
    """Refuses what has a bias, or dropout."""

    name = "unwilling"

    def refusals(self, call):
        """Return its two reasons."""
        reasons = ["it takes no bias"] if call.bias is not None else []
        return reasons + (["it has no dropout"] if call.dropout else [])

    def run(self, call):
        """Return the queries, which have the right shape."""
        return call.query


def test_a_graph_for_all_batches_is_refused_where_the_layout_follows_each_batch(tiny):
    options = ["train.compile=true", "encoder.unpad=true"]
    with pytest.raises(RecipeError, match=r"train\.compile: is true, but encoder\.unpad"):
        load_recipe(tiny, options)


def test_a_convolution_is_refused_where_texts_of_a_row_must_not_see_each_other(tiny):
    options = ["encoder.convolution={}", "data.layout=packed", "data.across_documents=false"]
    with pytest.raises(RecipeError, match=r"across_documents: is false.*reads neighbours"):
        load_recipe(tiny, options)
    load_recipe(tiny, [options[0], "data.layout=padded"])


def test_a_start_that_does_not_fit_is_found_without_training(tiny, tmp_path):
    save_weights(build(load_recipe(tiny), 9), tmp_path / "model.safetensors")
    recipe = load_recipe(tiny, [f"train.start={tmp_path}"])
    with pytest.raises(CheckpointError, match=r"new in the model: encoder\.tokens\.weight"):
        check_recipe(recipe)
    check_recipe(recipe, vocab_size=9)


def test_the_counts_are_those_of_the_real_model(tiny):
    recipe = load_recipe(tiny, ["encoder.mechanism=disentangled"])
    checked, model = check_recipe(recipe), build(recipe)
    ours = position_parameters(model)
    assert checked.parameters == sum(p.numel() for p in model.parameters())
    assert checked.position_parameters == sum(
        p.numel() for name, p in model.named_parameters() if name in ours
    )
    assert checked.embedding_parameters == 50 * 32


@pytest.mark.parametrize("backend", ["eager", "sdpa"])
def test_a_named_backend_is_the_one_that_runs(tiny, backend):
    recipe = load_recipe(tiny, [f"encoder.backend={backend}"])
    assert check_recipe(recipe).backend == backend


def test_auto_says_what_it_chose(tiny):
    assert set(check_recipe(load_recipe(tiny)).backends) <= {"eager", "sdpa"}


def test_a_backend_is_asked_about_the_call_that_training_makes(tiny, monkeypatch):
    monkeypatch.setitem(backends._entries, "unwilling", Unwilling)
    named = ["encoder.backend=unwilling"]
    assert check_recipe(load_recipe(tiny, named)).backend == "unwilling"
    with pytest.raises(
        BackendRefusal, match="'unwilling' cannot run this attention: it takes no bias"
    ):
        check_recipe(load_recipe(tiny, [*named, "encoder.mechanism=alibi"]))
    with pytest.raises(BackendRefusal, match="it has no dropout"):
        check_recipe(load_recipe(tiny, [*named, "encoder.attention_dropout=0.1"]))


@pytest.mark.parametrize(
    "overrides",
    [
        ["data.layout=padded"],
        ["data.across_documents=false"],
        ["encoder.segments=2"],
        ["train.precision=bf16"],
        ["decoder=emd"],
        ["encoder.mechanism={name: transformer_xl, memory_length: 4}", "data.order=streams"],
        ["encoder.window={size: 4}"],
        ["data.max_length=4"],
    ],
)
def test_every_layout_can_be_checked(tiny, overrides):
    assert check_recipe(load_recipe(tiny, overrides)).parameters > 0


def test_flex_on_the_cpu_is_refused_before_any_data_is_read(tiny):
    with pytest.raises(BackendRefusal, match=r"'flex'.*device cpu.*inference only"):
        check_recipe(load_recipe(tiny, ["encoder.backend=flex", "train.device=cpu"]))


def test_asking_computes_no_attention(tiny, monkeypatch):
    monkeypatch.setattr("posattn.backends.SDPABackend.run", lambda *_: pytest.fail("it ran"))
    assert check_recipe(load_recipe(tiny, ["encoder.backend=sdpa"])).backends == ("sdpa",)


def test_a_recipe_that_names_it_without_the_package_is_told_the_extra(tiny, monkeypatch):
    monkeypatch.setattr("posattn.backends.xformers.find_spec", lambda name: None)
    with pytest.raises(BackendRefusal, match=r"posattn\[xformers\]"):
        check_recipe(load_recipe(tiny, ["encoder.backend=xformers", "encoder.mechanism=rope"]))


@pytest.mark.parametrize("check", [check_recipe, training_job])
def test_a_relation_that_text_does_not_come_with_is_refused_before_a_run(check):
    relation = "encoder.relation={name: categories, num_values: 3}"
    recipe = load_recipe("quick/t5", [relation])
    with pytest.raises(IncompatibleParts, match=r"'categories' is given with every forward"):
        check(recipe)
