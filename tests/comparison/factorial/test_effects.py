"""Effects in results.json and in the report: by seed, with failures counted, as one family."""

import json
from pathlib import Path
from typing import Any

import pytest

from posattn.comparison.factorial.effects import design_of, effects
from posattn.comparison.factorial.parts import DesignPart, EffectPart
from posattn.comparison.report import write_report
from posattn.comparison.results import collect
from posattn.comparison.results_schema import Results
from posattn.comparison.statistics import bootstrap_seeds, paired_difference
from posattn.comparison.verdicts import judge
from tests.comparison.study_folders import FakeArm, write_json, write_study

FACTORS = {"c2p": ["on", "off"], "emd": ["on", "off"]}
ARMS = (
    FakeArm("c2p-on_emd-on", 1.30),
    FakeArm("c2p-on_emd-off", 1.32),
    FakeArm("c2p-off_emd-on", 1.50),
    FakeArm("c2p-off_emd-off", 1.53),
    FakeArm("deeper", 1.29),
)
CELLS = {
    arm.name: {"c2p": arm.name.split("_")[0][4:], "emd": arm.name.split("_")[1][4:]}
    for arm in ARMS[:4]
}
PART = DesignPart(factors=FACTORS, cells=CELLS)


def write_factorial(out: Path, **design: Any) -> Path:
    """Write a study of two factors and a control of depth, in which one run diverged."""
    diverged = frozenset({("c2p-off_emd-on", 1)})
    write_study(out, ARMS, seeds=(0, 1, 2, 3, 4, 5), diverged=diverged)
    plan = json.loads((out / "plan.json").read_text())
    plan["design"] = {"factors": FACTORS, "cells": CELLS, **design}
    plan["depth_controls"] = {"deeper": "c2p-on_emd-on"}
    write_json(out / "plan.json", plan)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_factorial(tmp_path_factory.mktemp("factorial"))


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    return collect(folder)


def effect(results: Results, name: str) -> EffectPart:
    return next(effect for effect in results.effects if effect.name == name)


def test_effects_are_taken_seed_by_seed_and_a_failed_run_leaves_its_seed_out(
    results: Results,
) -> None:
    scores = {
        (run.arm, run.seed): run.scores["validation_loss"].value
        for run in results.runs
        if run.scores["validation_loss"].value is not None
    }
    found = effect(results, "c2p-off")
    expected = {
        seed: 0.5 * (scores["c2p-off_emd-on", seed] - scores["c2p-on_emd-on", seed])
        + 0.5 * (scores["c2p-off_emd-off", seed] - scores["c2p-on_emd-off", seed])
        for seed in (0, 2, 3, 4, 5)
    }
    assert found.values == pytest.approx(expected)
    assert found.missing == {1: ["c2p-off_emd-on"]}
    assert found.difference == paired_difference(found.values, dict.fromkeys(found.values, 0.0))
    assert found.bootstrap == bootstrap_seeds(list(found.values.values()))


def test_all_effects_are_one_family(results: Results) -> None:
    assert [found.name for found in results.effects] == ["c2p-off", "emd-off", "c2p-off*emd-off"]
    differences = [found.difference for found in results.effects]
    assert [found.judgement for found in results.effects] == judge(differences, "lower")
    assert {found.judgement.family_size for found in results.effects} == {3}
    assert effect(results, "c2p-off").judgement.verdict == "worse"


def test_the_results_come_back_from_their_file(results: Results) -> None:
    again = Results.model_validate(json.loads(results.to_json()))
    assert again == results
    assert design_of(again.design or PART).cells == CELLS


def test_an_effect_without_any_seed_says_why() -> None:
    scores = {arm: {0: 1.0} for arm in CELLS} | {"c2p-on_emd-on": {}}
    found = effects(PART, scores, (0,), "lower")[0]
    assert found.judgement.verdict == "not tested"
    assert found.difference.reason == "no seed finished in all 4 arms of this effect"
    assert found.missing == {0: ["c2p-on_emd-on"]}
    assert found.bootstrap is None


def test_the_control_of_depth_is_compared_with_the_verdict_of_its_pair(results: Results) -> None:
    (found,) = results.depth_controls
    (contrast,) = [c for c in results.family("baseline") if c.first == "deeper"]
    assert (found.arm, found.control) == ("c2p-on_emd-on", "deeper")
    assert found.difference.mean == pytest.approx(-(contrast.difference.mean or 0.0))
    turned = {"better": "worse", "worse": "better"}
    judged = contrast.judgement.verdict if contrast.judgement else ""
    assert found.verdict == turned.get(judged, judged)


def test_the_answer_says_what_is_told_from_zero_and_what_could_have_been_seen(
    results: Results,
) -> None:
    by_heading = {statement.heading: statement for statement in results.answer}
    told = by_heading["Effects told from zero"].items
    assert told[0].startswith("c2p-off: +0.")
    assert told[0].endswith("n = 5, 1 missing (off is worse than on)")
    ties = by_heading["Effects not told from zero"]
    assert any(item.startswith("c2p-off*emd-off: ") for item in ties.items)
    assert all("; smallest visible 0.0" in item for item in ties.items)
    assert by_heading["Depth"].items[0].startswith("c2p-on_emd-on minus deeper: ")


def test_the_report_shows_every_effect_with_figures_and_their_data(folder: Path) -> None:
    paths = write_report(folder)
    text = paths.markdown.read_text(encoding="utf-8")
    section = text[text.index("## Effects of the factors") : text.index("## Scores")]
    assert "| c2p-off | off is worse than on | 2 | 5 | 1 | +0." in section
    assert "| c2p-off\\*emd-off |" in section
    assert "With the mask decoder minus its control of depth" in section
    assert (paths.figures / "effects.csv").read_text().count("\n") == 4
    cells = (paths.figures / "cells.csv").read_text().splitlines()
    assert cells[0] == "arm,others,emd,n,mean,sd"
    assert cells[1].startswith("c2p-on_emd-on,c2p on,on,6,1.2")


def test_a_fraction_and_what_was_left_out_are_said_in_the_report(tmp_path: Path) -> None:
    names = {"a-n_b-n_c-n": "nnn", "a-n_b-y_c-y": "nyy", "a-y_b-n_c-y": "yny", "a-y_b-y_c-n": "yyn"}
    arms = tuple(FakeArm(name, 1.3 + 0.2 * (levels[0] == "y")) for name, levels in names.items())
    write_study(tmp_path, arms, seeds=(0, 1, 2, 3), diverged=frozenset(), speed=False)
    plan = json.loads((tmp_path / "plan.json").read_text())
    plan["design"] = {
        "factors": {name: ["n", "y"] for name in "abc"},
        "cells": {name: dict(zip("abc", levels, strict=True)) for name, levels in names.items()},
        "generators": {"c": "-a*b"},
        "resolution": 3,
        "aliases": ["a = -b*c", "b = -a*c", "c = -a*b"],
        "left_out": {"a-x": {"reason": "too dear", "refused": None}},
    }
    write_json(tmp_path / "plan.json", plan)
    text = write_report(tmp_path).markdown.read_text(encoding="utf-8")
    assert "of resolution 3: main effects cannot be told from interactions of two factors" in text
    assert "- a = -b\\*c" in text
    assert "| a-x | too dear | it could run |" in text
    assert "**What the fraction cannot tell apart.**" in text
    assert "a-y: a = -b\\*c" in text
