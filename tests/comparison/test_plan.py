"""The plan: resolved arms, the order of runs, and what a folder of another study is told."""

import json
from pathlib import Path

import pytest

from posattn.comparison.plan import StudyPlan, check_same_study, make_plan, write_plan
from posattn.comparison.study import load_study
from posattn.errors import ControlError, RecipeError
from posattn.recipe.shipped import shipped_names


def plan(*overrides: str) -> StudyPlan:
    return make_plan(load_study("smoke", overrides))


def test_seeds_are_outer_and_arms_inner_so_that_seeds_get_complete() -> None:
    assert [run.key for run in plan().runs] == [
        "learned, seed 0",
        "rope, seed 0",
        "learned, seed 1",
        "rope, seed 1",
    ]


def test_every_run_has_its_seed_in_init_and_data() -> None:
    for run in plan().runs:
        assert run.recipe.train.seed == run.recipe.train.order_seed == run.seed


def test_an_arm_lies_over_what_all_share_and_that_over_the_base() -> None:
    changed = plan(
        "arms.rope.train.batch_size=4",
        "varies=[train]",
        "arms.rope.encoder.mechanism.base=500",
        "declared={encoder.mechanism: x}",
        "confounded=two things at once, to see both",
    )
    arms = {arm.name: arm.recipe for arm in changed.arms}
    assert arms["rope"].train.batch_size == 4
    assert arms["learned"].train.batch_size == 8
    assert arms["rope"].train.steps == 20
    assert arms["rope"].encoder.mechanism[0].model_dump()["base"] == 500


def test_options_of_another_mechanism_are_not_inherited() -> None:
    mechanisms = [arm.recipe.encoder.mechanism[0].model_dump() for arm in plan().arms]
    assert mechanisms[0]["max_positions"] == 64
    assert "max_positions" not in mechanisms[1]


def test_a_run_has_one_thread_unless_the_recipe_says_otherwise() -> None:
    assert plan("train.threads=null").threads == 1
    assert plan("train.threads=2").threads == 2


def test_an_undeclared_difference_stops_the_study_and_is_printed() -> None:
    with pytest.raises(ControlError) as error:
        plan("arms.rope.train.learning_rate=0.1")
    assert "train.learning_rate: 'learned' has 0.0015, 'rope' has 0.1" in str(error.value)


def test_a_declared_difference_passes_with_its_reason_first() -> None:
    declared = plan("arms.rope.decoder.name=emd", "declared={decoder: both at once}")
    assert declared.control[0].expected
    assert "both at once" in declared.control[0].detail


def test_a_misspelt_declaration_is_refused_with_what_there_is() -> None:
    with pytest.raises(RecipeError, match=r"no arm's recipe has it.*encoder\.mechanism"):
        plan("varies=[encoder.mechanisms]")


def test_an_unknown_key_of_an_arm_is_refused_with_its_origin(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"--set arms.rope.encoder.num_layer=3.*num_layers"):
        plan("arms.rope.encoder.num_layer=3")
    text = (
        shipped_names("study")["smoke"].read_text().replace("{name: rope}", "{name: rope, bas: 1}")
    )
    path = tmp_path / "s.yaml"
    path.write_text(text.replace("../quick/base.yaml", "base"))
    line = 1 + text[: text.index("bas: 1")].count("\n")
    with pytest.raises(RecipeError, match=rf"s\.yaml:{line}: .*unknown key 'bas'.*'base'"):
        make_plan(load_study(path))


def test_the_plan_on_disk_is_strict_and_states_everything(tmp_path: Path) -> None:
    write_plan(plan(), tmp_path)
    content = json.loads((tmp_path / "plan.json").read_text())
    assert content["study"] == "smoke"
    assert content["seeds"] == [0, 1]
    assert content["baseline"] == "learned"
    assert content["primary"] == "validation_loss"
    assert content["arms"][1]["changes"] == {"encoder.mechanism": {"name": "rope"}}
    assert content["runs"][0] == {"arm": "learned", "seed": 0, "folder": "runs/learned/seed-0"}
    assert all(rule["held"] for rule in content["control"])


def test_the_same_study_may_go_on_and_its_words_may_change(tmp_path: Path) -> None:
    write_plan(plan(), tmp_path)
    (tmp_path / "runs" / "rope" / "seed-0").mkdir(parents=True)
    check_same_study(plan("title=Another", "notes=more"), tmp_path)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ("train.steps=21", "arms.rope.train.steps: the folder has 20, the study has 21"),
        ("seeds=[0,1,2]", "seeds.2: the folder has nothing, the study has 2"),
        ("baseline=rope", "baseline: the folder has 'learned', the study has 'rope'"),
        ("evaluations=[validation]", "evaluations.1.name"),
        ("arms.alibi.encoder.mechanism=alibi", "arms.alibi.name"),
    ],
)
def test_a_changed_study_is_refused_with_the_difference(
    tmp_path: Path, change: str, shown: str
) -> None:
    write_plan(plan(), tmp_path)
    check_same_study(plan(change), tmp_path)  # no run was started: the plan binds nobody
    (tmp_path / "runs" / "rope" / "seed-0").mkdir(parents=True)
    with pytest.raises(RecipeError) as error:
        check_same_study(plan(change), tmp_path)
    assert shown in str(error.value)
    assert "never mixed" in str(error.value)


def test_a_folder_with_runs_of_unknown_origin_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs" / "rope" / "seed-0").mkdir(parents=True)
    with pytest.raises(RecipeError, match=r"holds runs but no plan\.json"):
        check_same_study(plan(), tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"arms": 3}', '{"arms": [3]}'])
def test_a_damaged_plan_is_refused_in_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "runs" / "rope" / "seed-0").mkdir(parents=True)
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(RecipeError, match=r"plan\.json is damaged"):
        check_same_study(plan(), tmp_path)
