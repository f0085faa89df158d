"""Control after the runs: whatever was tampered with is caught, with arms, seed and step."""

from dataclasses import replace
from typing import Any

from posattn.comparison.control import Finding
from posattn.comparison.control_of_runs import check_runs
from posattn.comparison.run_evidence import RunEvidence

BATCHES = "all arms see the same batches and masks"
START = "shared parameters start bit-equal"


def tensor(shape: list[int], digest: str) -> dict[str, Any]:
    return {"shape": shape, "digest": digest, "group": "decay", "position": False}


def evidence(arm: str, seed: int, **changes: Any) -> RunEvidence:
    recipe = {"encoder": {"mechanism": {"name": arm}}, "data": {"max_length": 8}}
    tensors = {"embedding": tensor([4, 2], f"e{seed}"), "head": tensor([2], f"h{seed}")}
    if arm == "learned":
        tensors["positions"] = tensor([8, 2], f"p{seed}")
    run = RunEvidence(
        arm=arm,
        seed=seed,
        planned=recipe,
        recipe=recipe,
        status={"state": "finished", "step": 20, "tokens": 640, "targets": 96},
        data={"corpus": "pydoc", "digest": "d", "tokenizer": {"digest": "t"}},
        parameters={"total": 26 if arm == "learned" else 10, "tensors": tensors},
        environment={"threads": 1, "device": "cpu", "memory_bytes": arm},
        batches={10: f"b{seed}-10", 20: f"b{seed}-20"},
        evaluations={"conditions": {"backend": "eager"}},
    )
    return replace(run, **changes)


def study(**tampered: Any) -> list[RunEvidence]:
    """Return two arms with two seeds; `tampered` changes the last run, rope with seed 1."""
    runs = [evidence(arm, seed) for seed in (0, 1) for arm in ("learned", "rope")]
    return [*runs[:-1], replace(runs[-1], **tampered)]


def finding(runs: list[RunEvidence], rule: str) -> Finding:
    return next(found for found in check_runs(runs, "learned") if found.rule == rule)


def test_an_honest_study_holds_every_rule() -> None:
    assert [found.rule for found in check_runs(study(), "learned") if not found.held] == []


def test_what_is_compared_is_counted() -> None:
    assert finding(study(), BATCHES).detail == "2 pairs of runs of 2 seed(s), 4 values each equal"


def test_another_batch_is_named_with_arms_seed_and_step() -> None:
    found = finding(study(batches={10: "b1-10", 20: "other"}), BATCHES)
    assert found.broken
    assert found.detail == "arms learned and rope, seed 1: the batches up to step 20 differ"


def test_arms_that_start_from_one_folder_must_start_equal_and_from_two_need_not() -> None:
    def started(arm: str, path: str, digest: str) -> RunEvidence:
        start = {"path": path, "accept_new": [f"*.{arm}.*"]}
        recipe = {"encoder": {"mechanism": {"name": arm}}, "train": {"start": start}}
        tensors = {"embedding": tensor([4, 2], digest)}
        return evidence(arm, 0, planned=recipe, recipe=recipe, parameters={"tensors": tensors})

    one = started("learned", "a", "e")
    assert finding([one, started("rope", "a", "e")], START).held
    assert finding([one, started("rope", "a", "other")], START).broken
    assert not finding([one, started("rope", "b", "other")], START).broken


def test_batches_of_a_run_that_stopped_early_are_compared_as_far_as_they_go() -> None:
    stopped = {"state": "failed", "step": 10}
    assert finding(study(batches={10: "b1-10"}, status=stopped), BATCHES).held
    assert finding(study(batches={10: "other"}, status=stopped), BATCHES).broken


def test_a_finished_run_that_logged_fewer_steps_is_caught() -> None:
    assert finding(study(batches={10: "b1-10"}), BATCHES).broken


def test_an_unequal_start_is_named() -> None:
    tampered = {"embedding": tensor([4, 2], "other"), "head": tensor([2], "h1")}
    found = finding(study(parameters={"total": 10, "tensors": tampered}), START)
    assert found.broken
    assert "arms learned and rope, seed 1: step 0" in found.detail
    assert "embedding" in found.detail


def test_parameters_of_another_shape_are_not_compared_but_listed() -> None:
    reshaped = {"embedding": tensor([9, 2], "other"), "head": tensor([2], "h1")}
    runs = [
        evidence("learned", 1),
        evidence("rope", 1, parameters={"total": 20, "tensors": reshaped}),
    ]
    assert finding(runs, START).held
    listed = finding(runs, "parameters that only some arms have are listed").detail
    assert "learned has 2 of its own: embedding, positions" in listed
    assert "rope has 1 of its own: embedding" in listed


def test_other_data_or_another_tokenizer_is_caught() -> None:
    other = {"corpus": "pydoc", "digest": "d", "tokenizer": {"digest": "other"}}
    found = finding(study(data=other), "all arms read the same data with the same tokenizer")
    assert found.broken
    assert "tokenizer.digest" in found.detail


def test_a_shorter_budget_is_caught() -> None:
    short = {"state": "finished", "step": 20, "tokens": 600, "targets": 96}
    found = finding(study(status=short), "all arms train for the same steps and tokens")
    assert found.broken
    assert "tokens: 640 and 600" in found.detail


def test_the_surplus_of_parameters_is_stated() -> None:
    found = finding(study(), "the surplus of parameters over the baseline is stated")
    assert found.detail == "learned has 26 parameters; rope -16 (-61.5%)"


def test_other_threads_are_caught_and_the_backend_is_stated() -> None:
    threads = {"threads": 2, "device": "cpu"}
    found = finding(
        study(environment=threads), "all runs have the same threads, machine and versions"
    )
    assert found.broken
    assert "threads" in found.detail
    backend = finding(study(), "the backend that computed attention is recorded")
    assert backend.detail == "learned: eager, rope: eager"
    compiled = [replace(run, status={**run.status, "graphs": 2}) for run in study()]
    stated = finding(compiled, "the backend that computed attention is recorded").detail
    assert stated.startswith("learned: eager in 2 compiled graph(s), rope")
    trained = study(attention={"asked": "auto", "computed": ["flex", "sdpa"]})[-1]
    assert trained.backend == "flex and sdpa (in evaluation eager)"


def test_a_run_of_another_recipe_is_caught() -> None:
    changed = {"encoder": {"mechanism": {"name": "rope"}}, "data": {"max_length": 9}}
    found = finding(study(recipe=changed), "every run trained the recipe that was planned")
    assert found.broken
    assert found.detail == "arm rope, seed 1: data.max_length"


def test_arms_whose_data_differ_as_declared_are_compared_among_themselves() -> None:
    other = {"encoder": {"mechanism": {"name": "rope"}}, "data": {"max_length": 16}}
    longer = [
        evidence("rope", 0, planned=other, recipe=other, batches={10: "x", 20: "y"}),
        evidence("alibi", 0, planned=other, recipe=other, batches={10: "x", 20: "y"}),
    ]
    found = finding([evidence("learned", 0), *longer], BATCHES)
    assert not found.held
    assert found.expected
    longer[1] = replace(longer[1], batches={10: "x", 20: "z"})
    assert "step 20" in finding([evidence("learned", 0), *longer], BATCHES).detail


def test_runs_of_other_lengths_are_compared_as_far_as_both_go() -> None:
    def planned(steps: int) -> dict[str, Any]:
        return {"data": {"max_length": 8}, "train": {"steps": steps}}

    long = evidence("learned", 0, planned=planned(20))
    short = evidence("rope", 0, planned=planned(10), batches={10: "b0-10"})
    assert finding([long, short], BATCHES).held
    other = replace(short, batches={10: "other"})
    assert finding([long, other], BATCHES).broken
