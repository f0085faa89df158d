"""Factors, a control of depth, a probe, tasks, a matched budget and tuning in one study that runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from posattn.comparison.progress import StudyProgress
from posattn.comparison.recomputation import recompute_suite
from posattn.comparison.suite import run_suite
from posattn.comparison.suite.schema import SuiteResults
from tests.comparison.inline_pool import InlinePool

STUDY = """\
title: All at once
base: quick/base
shared:
  encoder:
    num_layers: 1
    hidden_size: 16
    num_heads: 2
    mechanism: {name: disentangled, buckets: {name: clipped, max_distance: 16}, projections: own}
  data: {corpus: {name: pydoc}, tokenizer: {name: characters}, max_length: 16}
  train: {steps: 12, batch_size: 2, log_every: 2, evaluate_every: 6, evaluation_tokens: 64}
factors:
  c2p: {on: {encoder.mechanism.c2p: true}, off: {encoder.mechanism.c2p: false}}
  emd: {on: {decoder: {name: emd}}, off: {decoder: {name: plain}}}
arms:
  deeper: {depth_control_of: c2p-on_emd-on}
baseline: {c2p: on, emd: on}
seeds: [0, 1]
evaluations: [{name: validation, tokens: 64}, {name: size}]
primary_contrasts: [[c2p-off_emd-on, c2p-on_emd-on]]
match: flops
tuning: {grid: {train.learning_rate: [1.0e-3, 3.0e-3]}, seeds: [7]}
tasks:
  order:
    shared: {encoder.num_layers: 2}
    probe: {name: order, steps: 12, length: 8}
    evaluations: [{name: validation, tokens: 64}, {name: size}]
"""
EFFECTS = {"c2p-off", "emd-off", "c2p-off*emd-off"}
ARMS = {"c2p-on_emd-on", "c2p-on_emd-off", "c2p-off_emd-on", "c2p-off_emd-off", "deeper"}


@pytest.fixture(scope="module")
def ran(
    text_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[StudyProgress]]:
    folder = tmp_path_factory.mktemp("all")
    (folder / "all.yaml").write_text(STUDY)
    shown: list[StudyProgress] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("posattn.comparison.suite.run.make_pool", lambda *_: InlinePool())
        run_suite(folder / "all.yaml", folder / "out", jobs=1, progress=shown.append)
    return folder / "out", shown


def stored(out: Path, file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / file).read_text())
    return found


def test_every_arm_of_every_task_is_tuned_and_run_under_the_matched_budget(
    ran: tuple[Path, list[StudyProgress]],
) -> None:
    plan = stored(ran[0], "tasks/order/plan.json")
    recipes = {arm["name"]: arm["recipe"] for arm in plan["arms"]}
    assert recipes.keys() == ARMS
    assert {recipe["train"]["learning_rate"] for recipe in recipes.values()} <= {1e-3, 3e-3}
    steps = {name: recipe["train"]["steps"] for name, recipe in recipes.items()}
    assert steps["c2p-on_emd-on"] == 12
    assert steps["c2p-off_emd-on"] > 12 > steps["deeper"], "cheaper arms get more steps"
    assert recipes["deeper"]["encoder"]["num_layers"] == 3, "the task has two layers"
    reasons = plan["compensations"]
    assert "match: flops" in reasons["train.steps"]
    assert "chosen by tuning from the same 2 trials" in reasons["train.learning_rate"]
    assert len(stored(ran[0], "tasks/order/tuning/results.json")["runs"]) == 10


def test_the_results_have_effects_predictions_controls_and_named_contrasts(
    ran: tuple[Path, list[StudyProgress]],
) -> None:
    suite = SuiteResults.model_validate_json((ran[0] / "suite.json").read_text())
    assert suite.complete
    found = stored(ran[0], "tasks/order/results.json")
    assert {effect["name"] for effect in found["effects"]} == EFFECTS
    assert [control["control"] for control in found["depth_controls"]] == ["deeper"]
    assert {outcome["arm"] for outcome in found["predictions"]} == {
        *("c2p-on_emd-off", "c2p-off_emd-off", "deeper")
    }, "order is promised where nothing absolute is added"
    assert found["study"]["primary"] == "validation_accuracy"
    named = [c for c in found["contrasts"] if c["named"]]
    assert [(c["first"], c["second"]) for c in named] == [("c2p-off_emd-on", "c2p-on_emd-on")]
    assert not recompute_suite(ran[0]).differences


def test_trials_are_not_counted_as_runs_of_the_suite(
    ran: tuple[Path, list[StudyProgress]],
) -> None:
    ended = [progress.suite.runs_ended for progress in ran[1] if progress.suite is not None]
    assert ended == sorted(ended)
    assert ended[-1] == 10
