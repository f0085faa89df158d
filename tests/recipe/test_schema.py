"""Recipes in and out: types, round trip, digest, JSON Schema."""

from typing import Literal

import pytest
from pydantic import Field

from posattn.errors import RecipeError
from posattn.mechanisms import Mechanism, MechanismConfig, registry
from posattn.recipe.build import build
from posattn.recipe.schema import (
    Recipe,
    dump_recipe,
    json_schema,
    load_recipe,
    recipe_data,
    recipe_digest,
)
from posattn.recipe.shipped import shipped_names


class LoudConfig(MechanismConfig):
    """Options of a plug-in, some of them free-form."""

    name: Literal["loud"] = "loud"
    loudness: float = 1.0
    anything: dict[str, object] = Field(default_factory=dict)


class Loud(Mechanism[LoudConfig]):
    """A plug-in that adds nothing."""

    Config = LoudConfig


@pytest.fixture
def loud(monkeypatch):
    """The plug-in, registered for one test."""
    monkeypatch.setitem(registry._entries, "loud", Loud)


def test_the_name_is_the_files_stem_unless_it_is_given(tiny):
    assert load_recipe(tiny).name == "tiny"
    assert load_recipe(tiny, ["name=other"]).name == "other"
    assert load_recipe(str(tiny), folder=tiny.parent / "elsewhere").name == "tiny"


@pytest.mark.parametrize("text", ["12e3", "off", "no", "1_000", "2024-01-01", "1:30", "0x10"])
def test_a_text_field_keeps_what_was_written(tiny, text):
    recipe = load_recipe(tiny, [f"name={text}"])
    assert recipe.name == text
    tiny.write_text(dump_recipe(recipe))
    assert load_recipe(tiny).name == text


@pytest.mark.parametrize(
    ("text", "number"), [("1e-4", 1e-4), ("1E5", 1e5), ("12e3", 12e3), ("1.0e4", 1e4), ("1", 1.0)]
)
def test_a_float_field_takes_every_spelling_of_a_number(tiny, text, number):
    rate = load_recipe(tiny, [f"train.learning_rate={text}"]).train.learning_rate
    assert rate == number
    assert type(rate) is float


def test_free_options_of_a_plug_in_never_hold_a_number_as_text(tiny, loud):
    recipe = load_recipe(tiny, ["encoder.mechanism={name: loud, anything: {a: 1e-4, b: [12e3]}}"])
    data = recipe_data(recipe)["encoder"]["mechanism"][0]
    assert data["anything"] == {"a": 1e-4, "b": [12e3]}
    assert [type(v) for v in (data["anything"]["a"], *data["anything"]["b"])] == [float, float]


@pytest.mark.parametrize(
    ("override", "fraction", "steps"),
    [
        ("train.warmup_fraction=1e-1", 0.1, None),
        ("train.warmup_fraction=1", 1.0, None),
        ("train.warmup_fraction=1.0", 1.0, None),
        ("train.warmup_steps=1", None, 1),
    ],
)
def test_warm_up_has_one_field_for_a_fraction_and_one_for_steps(tiny, override, fraction, steps):
    recipe = load_recipe(tiny, [override])
    assert (recipe.train.warmup_fraction, recipe.train.warmup_steps) == (fraction, steps)
    tiny.write_text(dump_recipe(recipe))
    assert load_recipe(tiny) == recipe


@pytest.mark.parametrize("name", shipped_names("recipe"))
def test_load_dump_load_gives_an_equal_recipe(tmp_path, name):
    recipe = load_recipe(name)
    path = tmp_path / "again.yaml"
    path.write_text(dump_recipe(recipe), encoding="utf-8")
    again = load_recipe(path)
    assert again == recipe
    assert dump_recipe(again) == dump_recipe(recipe)
    assert recipe_digest(again) == recipe_digest(recipe)


def test_the_options_of_a_plug_in_survive_the_round_trip(tiny, loud):
    override = "encoder.mechanism=[{name: loud, loudness: 1e-3, anything: {x: off}}, {name: rope}]"
    recipe = load_recipe(tiny, [override])
    tiny.write_text(dump_recipe(recipe))
    again = load_recipe(tiny)
    assert again == recipe
    assert again.encoder.mechanism[0].loudness == 1e-3
    assert again.encoder.mechanism[0].anything == {"x": "off"}


def test_a_saved_recipe_takes_overrides_like_the_file_it_came_from(tiny):
    tiny.write_text(dump_recipe(load_recipe(tiny)))
    recipe = load_recipe(tiny, ["encoder.mechanism.base=5"])
    assert (recipe.encoder.mechanism[0].name, recipe.encoder.mechanism[0].base) == ("rope", 5.0)


def test_a_recipe_is_frozen_and_can_be_made_in_python(tiny):
    recipe = load_recipe(tiny)
    with pytest.raises(ValueError, match="frozen"):
        recipe.name = "x"
    assert Recipe.model_validate(recipe_data(recipe)) == recipe


def test_the_digest_is_of_all_that_decides_the_run(tiny):
    digest = recipe_digest(load_recipe(tiny))
    assert recipe_digest(load_recipe(tiny, ["name=x", "description=y"])) == digest
    for override in ("train.seed=1", "encoder.mechanism.base=9", "data.max_length=32"):
        assert recipe_digest(load_recipe(tiny, [override])) != digest


def test_the_json_schema_offers_the_options_of_every_part(loud):
    schema = json_schema()
    assert "required" not in schema
    assert schema["properties"]["extends"]["type"] == "string"
    assert schema["additionalProperties"] is False
    encoder = schema["$defs"]["EncoderConfig"]["properties"]
    offered = {option.get("title") for option in _choices(encoder["mechanism"])}
    assert {"rope", "alibi", "loud"} <= offered
    loud_option = next(o for o in _choices(encoder["mechanism"]) if o.get("title") == "loud")
    assert loud_option["properties"]["loudness"]["type"] == "number"


def _choices(part):
    """Return every choice of a part, however deep it lies in lists and unions."""
    found = list(part.get("oneOf", []))
    for key in ("items", "anyOf", "prefixItems"):
        inner = part.get(key, [])
        for item in inner if isinstance(inner, list) else [inner]:
            found.extend(_choices(item))
    return found


def test_a_head_that_does_not_fit_the_encoder_is_named_in_its_own_section(tiny):
    with pytest.raises(RecipeError, match=r"head.*token table is 8 wide"):
        load_recipe(tiny, ["encoder.embedding_size=8", "head.transform=false"])


def test_the_head_is_part_of_the_recipe_and_of_its_model(tiny):
    recipe = load_recipe(tiny, ["head.transform=false"])
    assert recipe_data(recipe)["head"]["transform"] is False
    assert recipe_digest(recipe) != recipe_digest(load_recipe(tiny))
    assert not hasattr(build(recipe).head, "proj")
