"""Y-3 and the other faults of a recipe: each with file, line, path, value, what is allowed, nearest name."""

import pytest

from posattn.errors import RecipeError
from posattn.recipe.schema import load_recipe


def test_a_fault_names_file_line_path_value_and_what_is_allowed(tiny, refused):
    tiny.write_text(tiny.read_text().replace("num_layers: 2", "num_layers: two"))
    assert refused() == (
        f"{tiny}:3: encoder.num_layers: must be a whole number, not the text 'two'"
    )


def test_all_faults_are_told_at_once_each_with_its_own_place(tiny, refused):
    tiny.write_text(tiny.read_text() + "  seed: -1\nextra: 1\n")
    message = refused("train.learning_rate=fast")
    assert "this recipe has 3 faults" in message
    assert f"{tiny}:15: train.seed: must be at least 0, not the number -1" in message
    assert f"{tiny}:16: extra: unknown key 'extra'" in message
    assert "--set train.learning_rate=fast: train.learning_rate: must be a number" in message


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("train.learning-rate=1", ["train.learning-rate", "did you mean 'learning_rate'?"]),
        ("lr=1", ["lr:", "it belongs to another section: train.learning_rate"]),
        ("learning_rate=1", ["it belongs to another section: train.learning_rate"]),
        ("encoder.learning_rate=1", ["another section: train.learning_rate"]),
        ("train.lrr=1", ["train.lrr", "did you mean 'learning_rate'?"]),
        ("encoder.norm.epss=1", ["encoder.norm.epss", "did you mean 'eps'?"]),
        ("data.tokenizer.vocab=9", ["data.tokenizer.vocab", "did you mean 'vocab_size'?"]),
        (
            "data.corpus.paths=[x]",
            ["data.corpus.paths", "'paths' is an option of the corpus 'files'"],
        ),
        ("objective.probabilty=0.1", ["did you mean 'probability'?"]),
        ("decoder.inject=learned", ["'inject' is an option of the decoder 'emd'"]),
        (
            "encoder.mechanism={name: alibi, max_positions: 8}",
            [
                "'max_positions' is an option of the mechanism 'learned'",
                "known keys of the mechanism 'alibi'",
            ],
        ),
        (
            "encoder.mechanism={name: disentangled, buckets: {name: log, num_bucket: 3}}",
            ["encoder.mechanism.buckets.num_bucket", "did you mean 'num_buckets'?"],
        ),
        (
            "encoder.mechanism={name: alibi, num_buckets: 32}",
            ["'num_buckets' is an option of the mechanism 't5'"],
        ),
        (
            "encoder.num_buckets=32",
            ["encoder.mechanism.buckets.num_buckets (mechanism 'disentangled', choice 'log')"],
        ),
        ("encoder.mechanism=[{name: rope, bas: 1}]", ["encoder.mechanism.0.bas", "'base'"]),
        ("xyzzy=1", ["unknown key 'xyzzy' (known keys: name, description, encoder"]),
    ],
)
def test_an_unknown_key_names_the_near_one_or_the_section_it_belongs_to(refused, override, parts):
    message = refused(override)
    assert message.startswith(f"--set {override}: ")
    assert all(part in message for part in parts), message


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("train.steps=1e5", "not the number 1e5; write 100000"),
        ("train.steps=1_000", "not the text '1_000'; write 1000"),
        ("train.steps=1:30", "must be a whole number, not the text '1:30'"),
        ("train.learning_rate=nan", "not the text 'nan'; it must be finite"),
        ("train.learning_rate=.nan", "must be a finite number, not the number .nan"),
        ("train.learning_rate=-.inf", "train.learning_rate: must be"),
        ("train.learning_rate='1e-4'", "must be a number, not the text '1e-4'"),
        ("train.learning_rate=0", "must be greater than 0.0, not the number 0"),
        ("data.cls=no", "not the text 'no'; YAML 1.2 reads 'no' as text, write false"),
        ("data.cls=1", "must be true or false, not the number 1"),
        ("name=true", 'must be text, not the boolean true; for the text write "true"'),
        ("name=null", "must be text, not null"),
        ("train=3", "train: must be a section"),
        ("encoder=[1]", "encoder: must be a section (a mapping of keys to values), not a list"),
        ("data.corpus=null", "the corpus needs a name"),
        (
            "encoder.mechanism={name: disentangled, buckets: {name: logs}}",
            "not 'logs'; did you mean 'log'?",
        ),
        ("encoder.activation=gleu", "did you mean 'gelu'?"),
        ("encoder.backend=sdp", "unknown backend 'sdp'; did you mean 'sdpa'?"),
        ("encoder.mechanism=ropee", "unknown mechanism 'ropee'; did you mean 'rope'?"),
        (
            "encoder.num_heads=3",
            "num_heads 3 does not divide hidden_size 32; choose one of 1, 2, 4",
        ),
        ("encoder.mechanism.layers=[5]", "the encoder has layers 0 to 1"),
        ("train.epochs=x", "train.epochs: must be a whole number"),
        (
            "train.warmup_fraction=10%",
            "train.warmup_fraction: must be a number, not the text '10%'",
        ),
        ("train.steps.x=1", "train.steps: must be a whole number, not a mapping"),
    ],
)
def test_a_wrong_value_says_what_it_must_be(refused, override, part):
    message = refused(override)
    assert part in message, message
    assert message.startswith(f"--set {override}")


def test_a_missing_section_is_named(tmp_path):
    path = tmp_path / "r.yaml"
    path.write_text("encoder: {num_layers: 1}\n")
    with pytest.raises(RecipeError, match=r"r\.yaml:1: data: is missing, and it has no default"):
        load_recipe(path)


@pytest.mark.parametrize(
    ("overrides", "parts"),
    [
        (
            ["encoder.mechanism={name: learned, max_positions: 8}"],
            [
                "data.max_length",
                "16 tokens",
                "'learned' takes at most 8",
                "lower data.max_length to 8",
            ],
        ),
        (
            ["decoder={name: emd, inject: {name: learned, max_positions: 8}}"],
            ["16 tokens", "decoder 'emd' injects positions for at most 8"],
        ),
        (
            ["encoder.mechanism={name: transformer_xl, memory_length: 8}"],
            ["data.order", "'shuffled'", "8 states", "write 'streams'"],
        ),
    ],
)
def test_sections_that_do_not_fit_are_refused_with_both_numbers(refused, overrides, parts):
    message = refused(*overrides)
    assert all(part in message for part in parts), message


def test_sections_that_fit_at_the_limit_are_accepted(tiny):
    load_recipe(tiny, ["encoder.mechanism={name: learned, max_positions: 16}"])
    load_recipe(
        tiny, ["encoder.mechanism={name: transformer_xl, memory_length: 8}", "data.order=streams"]
    )
