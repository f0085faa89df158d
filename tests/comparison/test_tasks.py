"""Tasks of a study file: the ordinary study that each makes, and what is refused with its line."""

from pathlib import Path

import pytest

from posattn.comparison.plan import make_plan
from posattn.comparison.study import Study, load_study
from posattn.errors import RecipeError

SUITE = """\
title: Two tasks
description: The same arms twice.
base: base.yaml
varies: [encoder.mechanism]
shared:
  train.steps: 8
  data: {max_length: 32}
arms:
  learned: {encoder.mechanism: {name: learned, max_positions: 64}}
  rope: {encoder.mechanism: {name: rope, base: 900}}
  none: {encoder.mechanism: none}
baseline: learned
seeds: [0, 1]
evaluations: [validation, size]
tasks:
  short:
    title: Short texts
    question: Does it help in short texts?
    shared: {data.max_length: 16}
    evaluations: [{name: validation, tokens: 64}]
    primary: validation_accuracy
  fast:
    shared:
      train.learning_rate: 2.0e-3
    arms:
      rope: {encoder.mechanism.base: 500}
      alibi: {encoder.mechanism: {name: alibi, variant: symmetric}}
    leave_out:
      none: it has no positions to lose
  plain:
"""
BASE = """\
encoder: {hidden_size: 32, num_layers: 1, num_heads: 2, mechanism: {name: none}}
data: {corpus: {name: pydoc}, tokenizer: {name: characters}, max_length: 24}
train: {steps: 20, batch_size: 8}
"""


def write(folder: Path, text: str = SUITE) -> Path:
    (folder / "base.yaml").write_text(BASE)
    (folder / "two.yaml").write_text(text)
    return folder / "two.yaml"


def refusal(folder: Path, old: str, new: str) -> str:
    assert old in SUITE
    with pytest.raises(RecipeError) as error:
        load_study(write(folder, SUITE.replace(old, new)))
    return str(error.value)


@pytest.fixture
def tasks(tmp_path: Path) -> dict[str, Study]:
    return load_study(write(tmp_path)).task_studies()


def test_each_task_is_a_study_of_its_own(tasks: dict[str, Study]) -> None:
    assert list(tasks) == ["short", "fast", "plain"]
    for name, study in tasks.items():
        assert study.name == name
        assert study.tasks == {}
        assert (study.seeds, study.baseline) == ((0, 1), "learned")


def test_words_scores_and_evaluations_of_a_task_stand_for_those_of_the_study(
    tasks: dict[str, Study],
) -> None:
    short, fast = tasks["short"], tasks["fast"]
    assert (short.title, short.question) == ("Short texts", "Does it help in short texts?")
    assert short.primary == "validation_accuracy"
    assert [item.model_dump() for item in short.evaluations] == [
        {"name": "validation", "tokens": 64}
    ]
    assert (fast.title, fast.primary) == ("Two tasks: fast", "validation_loss")
    assert [item.name for item in fast.evaluations] == ["validation", "size"]


def test_overrides_merge_over_those_of_the_study(tasks: dict[str, Study]) -> None:
    assert tasks["short"].shared == {"train": {"steps": 8}, "data": {"max_length": 16}}
    assert tasks["plain"].shared == {"train": {"steps": 8}, "data": {"max_length": 32}}
    rope = tasks["fast"].arms["rope"]["encoder"]["mechanism"]
    assert rope == {"name": "rope", "base": 500}
    lengths = [plan.arms[0].recipe.data.max_length for plan in map(make_plan, tasks.values())]
    assert lengths == [16, 32, 32]


def test_arms_are_added_and_left_out_with_the_reason(tasks: dict[str, Study]) -> None:
    assert list(tasks["fast"].arms) == ["learned", "rope", "alibi"]
    assert list(tasks["plain"].arms) == ["learned", "rope", "none"]
    told = "The same arms twice. Left out of this task: none (it has no positions to lose)."
    assert tasks["fast"].description == told


def test_an_override_on_the_command_line_wins_over_every_task(tmp_path: Path) -> None:
    path = write(tmp_path)
    overrides = ["data.max_length=12", "seeds=[7]", "tasks.fast.shared.train.steps=5"]
    tasks = load_study(path, overrides).task_studies()
    assert [study.shared["data"]["max_length"] for study in tasks.values()] == [12, 12, 12]
    assert [study.shared["train"]["steps"] for study in tasks.values()] == [8, 5, 8]
    assert {study.seeds for study in tasks.values()} == {(7,)}


def test_a_study_with_tasks_reads_back_from_what_it_is_stored_as(tmp_path: Path) -> None:
    study = load_study(write(tmp_path))
    again = Study.model_validate(study.model_dump(mode="json"))
    for name, task in study.task_studies().items():
        assert again.task_studies()[name].model_dump() == task.model_dump()


def test_a_study_with_tasks_has_no_plan_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"has tasks \(short, fast, plain\)"):
        make_plan(load_study(write(tmp_path)))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("    primary: validation_acc", "    primry: validation_acc", "two.yaml:21: tasks.short.primry"),
        ("    primary: validation_acc", "    primry: validation_acc", "did you mean 'primary'?"),
        ("{data.max_length: 16}", "{dta.max_length: 16}", "two.yaml:19: 'dta.max_length' is no part"),
        ("tokens: 64}", "token: 64}", "two.yaml:20: tasks.short.evaluations.0.token"),
        ("      none: it", "      rope_2: it", "two.yaml:29: leave_out: 'rope_2' is no arm"),
        ("      none: it", "      learned: it", "two.yaml:29: leave_out: 'learned' is the baseline"),
        ("  plain:", "  Fast:", "the tasks 'fast' and 'Fast' differ in capitals only"),
        ("  plain:", "  'a b':", "cannot be used as a folder name"),
        ("    primary: validation_acc", "    primary: validation_ac", "(in the task 'short')"),
        ("{name: validation, tokens: 64}", "size", "two.yaml:16: the primary score"),
        ("      none: it has no positions to lose", "      none: ' '", "two.yaml:29: leave_out: give"),
    ],
)  # fmt: skip
def test_faults_of_a_task_are_told_with_their_line(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert told in refusal(tmp_path, old, new)


def test_a_wrong_value_in_a_task_is_traced_to_its_line(tmp_path: Path) -> None:
    text = SUITE.replace("train.learning_rate: 2.0e-3", "train.learning_rate: quick")
    tasks = load_study(write(tmp_path, text)).task_studies()
    with pytest.raises(RecipeError, match=r"two\.yaml:24: train\.learning_rate: must be a number"):
        make_plan(tasks["fast"])


def test_a_study_whose_tasks_all_have_evaluations_needs_none_itself(tmp_path: Path) -> None:
    text = SUITE.replace("evaluations: [validation, size]\n", "")
    text = text.replace("  plain:\n", "").replace(
        "    leave_out:", "    evaluations: [validation]\n    leave_out:"
    )
    assert list(load_study(write(tmp_path, text)).task_studies()) == ["short", "fast"]
    with pytest.raises(RecipeError, match=r"\(it runs: none\) \(in the task 'fast'\)"):
        load_study(write(tmp_path, SUITE.replace("evaluations: [validation, size]\n", "")))


def test_a_probe_of_a_task_brings_data_question_and_scores(tmp_path: Path) -> None:
    text = SUITE.replace(
        "  plain:\n",
        "  plain:\n    probe: {name: reverse, steps: 9}\n    shared: {train.batch_size: 3}\n",
    )
    text = text.replace("title: Two tasks", "title: Two tasks\nquestion: Who wins?")
    study = load_study(write(tmp_path, text))
    for tasks in (
        study.task_studies(),
        Study.model_validate(study.model_dump(mode="json")).task_studies(),
    ):
        plain = tasks["plain"]
        assert plain.primary == "validation_accuracy"
        assert plain.question not in ("", "Who wins?")
        assert [item.name for item in plain.evaluations] == [
            item.name for item in plain.asks().evaluations()
        ]
        assert tasks["fast"].question == "Who wins?"
        assert tasks["fast"].probe is None
    recipe = make_plan(study.task_studies()["plain"]).arms[0].recipe
    assert recipe.data.corpus.name == "symbols"
    assert (recipe.train.steps, recipe.train.batch_size) == (8, 3)


def test_contrasts_named_beforehand_hold_for_the_tasks_that_have_both_arms(tmp_path: Path) -> None:
    text = SUITE.replace("tasks:", "primary_contrasts: [[rope, learned], [none, learned]]\ntasks:")
    text = text.replace("  plain:\n", "  plain: {primary_contrasts: [[rope, none]]}\n")
    tasks = load_study(write(tmp_path, text)).task_studies()
    assert tasks["short"].primary_contrasts == (("rope", "learned"), ("none", "learned"))
    assert tasks["fast"].primary_contrasts == (("rope", "learned"),), "none is left out there"
    assert tasks["plain"].primary_contrasts == (("rope", "none"),)
    assert "named beforehand: none - learned." in tasks["fast"].description
    assert "beforehand" not in tasks["short"].description


def test_a_contrast_that_a_task_names_needs_arms_that_it_has(tmp_path: Path) -> None:
    own = "  fast:\n    primary_contrasts: [[none, rope]]\n"
    said = refusal(tmp_path, "  fast:\n", own)
    for words in ("two.yaml", "'none' is no arm", "task 'fast'"):
        assert words in said


def test_the_control_of_depth_is_made_anew_for_the_depth_of_each_task(tmp_path: Path) -> None:
    arms = (
        "  emd: {decoder: {name: emd}}\n  deeper: {depth_control_of: emd}\n"
        "  deepest: {encoder.num_layers: 7}\nbaseline:"
    )
    text = SUITE.replace("baseline:", arms, 1)
    text = text.replace("varies: [", "varies: [encoder.num_layers, decoder, ")
    text = text.replace("  plain:\n", "  plain: {shared: {encoder.num_layers: 4}}\n")
    study = load_study(write(tmp_path, text))
    layers = {
        task: {arm.name: arm.recipe.encoder.num_layers for arm in make_plan(part).arms}
        for task, part in study.task_studies().items()
    }
    assert [layers[task]["emd"] for task in ("short", "fast", "plain")] == [1, 1, 4]
    assert [layers[task]["deeper"] for task in ("short", "fast", "plain")] == [2, 2, 5]
    assert layers["plain"]["deepest"] == 7
    control = next(
        arm for arm in make_plan(study.task_studies()["plain"]).arms if arm.name == "deeper"
    )
    assert control.recipe.decoder.name == "plain"


def test_a_control_of_depth_is_declared_in_every_task(tmp_path: Path) -> None:
    text = SUITE.replace(
        "  none:", "  emd: {decoder: {name: emd}}\n  deeper: {depth_control_of: emd}\n  none:", 1
    )
    text = text.replace("varies: [", "varies: [decoder, ")
    for part in load_study(write(tmp_path, text)).task_studies().values():
        assert "depth control of 'emd'" in part.declared["encoder.num_layers"]
        assert make_plan(part).study.depth_controls() == {"deeper": "emd"}


def test_an_expected_number_is_of_a_task_and_refused_for_all(tmp_path: Path) -> None:
    item = "{arm: rope, score: validation_accuracy, value: 0.9, tolerance: 0.1, source: a paper}"
    text = SUITE.replace("    primary: validation_accuracy\n", f"    expect: [{item}]\n")
    tasks = load_study(write(tmp_path, text)).task_studies()
    assert tasks["short"].expect[0].value == 0.9
    assert tasks["plain"].expect == ()
    said = refusal(tmp_path, "tasks:", f"expect: [{item}]\ntasks:")
    assert "expect: a study with tasks has no number of its own" in said
