"""The study file: what is refused, with file and line, and what it becomes."""

from pathlib import Path
from typing import Any

import pytest

from posattn.comparison.commitments import expectation_problems
from posattn.comparison.study import Study, load_study
from posattn.errors import RecipeError, UnknownName
from posattn.recipe.merge import merge
from posattn.recipe.reader import Document, read_text
from posattn.recipe.shipped import shipped_names
from posattn.recipe.writer import write_yaml

STUDY = """\
base: base.yaml
varies: [encoder.mechanism]
arms:
  learned: {encoder.mechanism: {name: learned, max_positions: 64}}
  rope:
    encoder: {mechanism: {name: rope}}
baseline: learned
seeds: [0, 1]
evaluations: [validation, {name: length, multiples: [1, 2]}]
"""
BASE = """\
description: the base
encoder: {hidden_size: 32, num_layers: 2, num_heads: 2, mechanism: {name: none}}
objective: {name: mlm}
data: {corpus: {name: pydoc}, tokenizer: {name: characters}, max_length: 32}
train: {steps: 20, batch_size: 8}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    return tmp_path


def write(folder: Path, text: str = STUDY, **changes: Any) -> Path:
    """Write a study with top-level keys replaced; a value of None takes the key away."""
    data = merge(read_text(text, "test"), Document(changes)).data
    kept = {key: value for key, value in data.items() if value is not None}
    (folder / "tiny.yaml").write_text(write_yaml(kept))
    return folder / "tiny.yaml"


def refusal(folder: Path, **changes: Any) -> str:
    with pytest.raises(RecipeError) as error:
        load_study(write(folder, **changes))
    return str(error.value)


def test_a_study_is_read_with_defaults_and_its_base_found(folder: Path) -> None:
    study = load_study(write(folder))
    assert study.name == "tiny"
    assert study.base == str(folder / "base.yaml")
    assert study.primary == "validation_loss"
    assert [evaluation.name for evaluation in study.evaluations] == ["validation", "length"]


def test_dotted_and_nested_overrides_are_the_same(folder: Path) -> None:
    study = load_study(write(folder))
    assert study.arms["learned"] == {
        "encoder": {"mechanism": {"name": "learned", "max_positions": 64}}
    }
    assert study.arms["rope"] == {"encoder": {"mechanism": {"name": "rope"}}}


def test_an_arm_may_be_the_base_itself(folder: Path) -> None:
    (folder / "s.yaml").write_text(STUDY.replace("arms:\n", "arms:\n  base:\n  empty: {}\n"))
    study = load_study(folder / "s.yaml")
    assert study.arms["base"] == study.arms["empty"] == {}


def test_a_study_is_frozen(folder: Path) -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_study(write(folder)).seeds = (1,)  # type: ignore[misc]


def test_unknown_keys_are_refused_with_file_and_line(folder: Path) -> None:
    path = folder / "s.yaml"
    path.write_text(STUDY + "sedes: [3]\n")
    with pytest.raises(
        RecipeError, match=r"s\.yaml:10: .*unknown key 'sedes'.*did you mean 'seeds'"
    ):
        load_study(path)


def test_an_unknown_part_of_an_arm_is_refused_with_file_and_line(folder: Path) -> None:
    path = folder / "s.yaml"
    path.write_text(STUDY.replace("    encoder: {mech", "    encodr: {mech"))
    with pytest.raises(RecipeError, match=r"s\.yaml:6: 'encodr' is no part of a recipe"):
        load_study(path)


def test_a_baseline_that_is_no_arm_is_refused(folder: Path) -> None:
    assert "the baseline 'alibi' is no arm (arms: learned, rope)" in refusal(
        folder, baseline="alibi"
    )


def test_repeated_seeds_are_refused(folder: Path) -> None:
    assert "given more than once: 1" in refusal(folder, seeds=[1, 0, 1])


def test_negative_or_no_seeds_are_refused(folder: Path) -> None:
    assert "at least 0" in refusal(folder, seeds=[-1])
    assert "seeds" in refusal(folder, seeds=[])


@pytest.mark.parametrize("name", ["a b", "a/b", "a:b", "CON", "dot.", "x" * 300, "ä"])
def test_names_that_some_system_cannot_use_are_refused(folder: Path, name: str) -> None:
    assert "cannot be used as a folder name" in refusal(folder, arms={name: {}})
    assert "cannot be used as a folder name" in refusal(folder, name=name)


def test_arms_that_differ_in_capitals_only_are_refused(folder: Path) -> None:
    assert "'rope' and 'RoPE' differ in capitals only" in refusal(folder, arms={"RoPE": {}})


def test_an_unknown_primary_score_is_refused_before_anything_runs(folder: Path) -> None:
    message = refusal(folder, primary="f2")
    assert "unknown metric 'f2'" in message
    assert "validation_loss" in message


def test_a_primary_score_that_no_evaluation_gives_is_refused(folder: Path) -> None:
    message = refusal(folder, evaluations=["length"])
    assert "comes from the evaluation 'validation', which this study does not run" in message


def test_unknown_and_repeated_evaluations_are_refused(folder: Path) -> None:
    assert "did you mean 'validation'" in refusal(folder, evaluations=["validaton"])
    twice = ["validation", {"name": "validation", "tokens": 5}]
    assert "each evaluation is given once" in refusal(folder, evaluations=twice)


EXPECTED = {
    "arm": "rope",
    "score": "validation_loss",
    "value": 2.1,
    "tolerance": 0.1,
    "source": "a paper",
}


def test_contrasts_and_numbers_named_beforehand_are_read(folder: Path) -> None:
    path = write(folder, primary_contrasts=[["rope", "learned"]], expect=[EXPECTED])
    study = load_study(path)
    assert study.primary_contrasts == (("rope", "learned"),)
    assert study.expect[0].model_dump() == EXPECTED
    again = Study.model_validate(study.model_dump(mode="json"))
    assert (again.primary_contrasts, again.expect) == (study.primary_contrasts, study.expect)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([["rope", "lerned"]], "primary_contrasts.0.1: 'lerned' is no arm; did you mean 'learned'"),
        ([["rope", "rope"]], "primary_contrasts.0: 'rope' is compared with itself"),
        ([["rope", "learned"], ["learned", "rope"]], "contrast of 'learned' and 'rope' is named"),
        ([["rope"]], "primary_contrasts.0"),
    ],
)
def test_contrasts_that_cannot_be_judged_are_refused(
    folder: Path, pairs: list[list[str]], said: str
) -> None:
    assert said in refusal(folder, primary_contrasts=pairs)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"arm": "rop"},
            "expect.0.arm: 'rop' is no arm; did you mean 'rope'? (arms: learned, rope)",
        ),
        ({"score": "f2"}, "expect.0.score: unknown metric 'f2'"),
        ({"score": "validation_accuracy", "value": 84.7}, "write 0.847 for 84.7 %"),
        ({"tolerance": -1}, "expect.0.tolerance: must be at least 0"),
    ],
)
def test_numbers_that_cannot_be_checked_are_refused(
    folder: Path, change: dict[str, Any], said: str
) -> None:
    assert said in refusal(folder, expect=[EXPECTED | change])


def test_faults_in_what_is_named_beforehand_have_their_line(folder: Path) -> None:
    text = STUDY + "primary_contrasts:\n  - [rope, learned]\n  - [rope, alibi]\n"
    text += "expect:\n  - {arm: rope, score: f2, value: 1, tolerance: 0, source: x}\n"
    (folder / "s.yaml").write_text(text)
    with pytest.raises(RecipeError) as error:
        load_study(folder / "s.yaml")
    assert "s.yaml:12: primary_contrasts.1.1: 'alibi' is no arm" in str(error.value)
    assert "s.yaml:14: expect.0.score: unknown metric 'f2'" in str(error.value)


def test_a_number_of_an_evaluation_that_does_not_run_is_refused(folder: Path) -> None:
    study = load_study(write(folder, expect=[EXPECTED]))
    ran = expectation_problems(study.expect, study.arms, ["length"])
    assert "which this study does not run (it runs: length)" in ran[0][1]


def test_options_of_an_evaluation_are_checked(folder: Path) -> None:
    wrong = ["validation", {"name": "length", "multiples": [2, 1]}]
    assert "multiples must ascend" in refusal(folder, evaluations=wrong)


def test_declared_paths_must_lead_into_a_recipe(folder: Path) -> None:
    assert "'mechanism' is no dotted path" in refusal(folder, varies=["mechanism"])
    declared = {"encoder.mechanism.base": "why not"}
    assert "both in 'varies' and 'declared'" in refusal(folder, declared=declared)


def test_a_path_is_declared_or_a_compensation_and_not_both(folder: Path) -> None:
    both = {"declared": {"train": "x"}, "compensations": {"train.steps": "matched tokens"}}
    assert "both declared and a compensation: train.steps" in refusal(folder, **both)


def test_an_arm_cannot_choose_its_seed(folder: Path) -> None:
    assert "the arm 'a' sets train.seed" in refusal(folder, arms={"a": {"train.seed": 3}})


def test_a_missing_base_is_named_with_its_line(folder: Path) -> None:
    message = refusal(folder, base="nothing.yaml")
    assert "tiny.yaml:1: base: there is no recipe 'nothing.yaml'" in message


def test_an_override_of_a_recipe_holds_for_all_arms_and_one_of_the_study_for_it(
    folder: Path,
) -> None:
    path = write(folder)
    study = load_study(path, ["train.steps=7", "seeds=[5]", "arms.rope.train.batch_size=4"])
    assert study.shared == {"train": {"steps": 7}}
    assert study.seeds == (5,)
    assert study.arms["rope"]["train"] == {"batch_size": 4}


def test_an_unknown_study_gets_a_hint() -> None:
    with pytest.raises(UnknownName, match="did you mean 'quick'"):
        load_study("quik")


@pytest.mark.parametrize("name", sorted(shipped_names("study")))
def test_every_shipped_study_is_valid_and_reads_back_from_what_it_is_stored_as(name: str) -> None:
    study = load_study(name)
    stored = study.model_dump(mode="json")
    assert Study.model_validate(stored).model_dump(mode="json") == stored
