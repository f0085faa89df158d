"""Confounds: what a study may not mix without saying so, and how the report says it."""

import json
from pathlib import Path
from typing import Any

import pytest

from posattn.comparison.confounds import Confounds, Rules, find_confounds
from posattn.comparison.plan import make_plan
from posattn.comparison.report import write_report
from posattn.comparison.study import load_study
from posattn.errors import ControlError
from tests.comparison.study_folders import EIGHT_ARMS, write_json, write_study

BERT, DEBERTA = {"name": "learned"}, {"name": "disentangled"}
WORDS, SPANS = {"name": "mlm", "longest": 1}, {"name": "mlm", "longest": 3}
EMD = {"name": "emd"}


def recipe(mechanism: dict[str, Any] = BERT, **sections: Any) -> dict[str, Any]:
    given = {
        "decoder": {"name": "plain"},
        "objective": WORDS,
        "data": {"max_length": 64},
        "train": {"steps": 10, "learning_rate": 1e-3, "seed": 0},
    }
    return {
        "name": "x",
        "encoder": {"mechanism": [mechanism], "num_layers": 4},
        **given,
        **sections,
    }


def found(
    arms: dict[str, dict[str, Any]],
    varies: tuple[str, ...] = ("encoder.mechanism",),
    confounded: str = "",
    **compensations: str,
) -> Confounds:
    paths = {path.replace("__", "."): why for path, why in compensations.items()}
    return find_confounds(arms, Rules(next(iter(arms)), varies, paths, confounded))


def refusal(arms: dict[str, dict[str, Any]], **options: Any) -> str:
    with pytest.raises(ControlError) as error:
        found(arms, **options)
    return str(error.value)


def test_the_well_known_script_that_changes_masking_with_the_model_is_refused() -> None:
    said = refusal({"bert-base": recipe(), "deberta-base": recipe(DEBERTA, objective=SPANS)})
    assert "'deberta-base' differs from 'bert-base' in architecture and objective at once" in said
    assert "no arm has the architecture of 'deberta-base' with the objective of 'bert-base'" in said
    assert "no arm has the objective of 'deberta-base' with the architecture of 'bert-base'" in said
    assert "add the crossing arms" in said
    assert "confounded: REASON" in said


def test_it_may_be_declared_and_is_then_recorded() -> None:
    arms = {"bert-base": recipe(), "deberta-base": recipe(DEBERTA, objective=SPANS)}
    declared = found(arms, confounded="the script as published")
    assert declared.arms == {"deberta-base": ("architecture", "objective")}
    finding = declared.finding()
    assert (finding.held, finding.expected) == (False, True)
    assert (
        "deberta-base in architecture and objective; declared: the script as pub" in finding.detail
    )


def test_arms_that_cross_separate_what_they_mix() -> None:
    arms = {
        "bert": recipe(),
        "bert-spans": recipe(objective=SPANS),
        "deberta": recipe(DEBERTA),
        "deberta-spans": recipe(DEBERTA, objective=SPANS),
    }
    crossed = found(arms, varies=("encoder.mechanism", "objective"))
    assert crossed.arms == {}
    assert crossed.finding().held
    assert found(arms).arms == {}, "also where only the mechanism varies"
    del arms["deberta"]
    said = refusal(arms)
    assert "no arm has the architecture of 'deberta-spans' with the objective of 'bert'" in said


def test_one_arm_in_an_aspect_that_does_not_vary_must_be_crossed_too() -> None:
    arms = {"bert": recipe(), "deberta": recipe(DEBERTA), "long": recipe(data={"max_length": 128})}
    said = refusal(arms)
    assert "'long' differs in data, which is not what varies" in said
    assert found(arms, varies=("encoder.mechanism", "data")).arms == {}
    arms["deberta-long"] = recipe(DEBERTA, data={"max_length": 128})
    assert found(arms).arms == {}


def test_compensations_are_no_confounds() -> None:
    tuned = recipe(DEBERTA, train={"steps": 10, "learning_rate": 3e-3, "seed": 0})
    arms = {"bert": recipe(), "deberta": tuned}
    assert "architecture and training" in refusal(arms)
    assert found(arms, train__learning_rate="tuned on one grid").arms == {}


def test_seeds_and_names_are_no_difference() -> None:
    other = recipe(DEBERTA, train={"steps": 10, "learning_rate": 1e-3, "seed": 7}) | {"name": "y"}
    assert found({"bert": recipe(), "deberta": other}).arms == {}


def test_a_declaration_that_nothing_needs_is_said() -> None:
    finding = found({"a": recipe(), "b": recipe(DEBERTA)}, confounded="just in case").finding()
    assert finding.held
    assert finding.detail.endswith("declared as confounded, but no arm is")


def test_parts_of_the_architecture_that_only_differ_together_are_named() -> None:
    arms = {"bert": recipe(), "deberta": recipe(DEBERTA, decoder=EMD)}
    (sentence,) = found(arms).mixed
    assert (
        sentence == "The difference between deberta and bert mixes encoder.mechanism and decoder."
    )
    arms["no-emd"] = recipe(DEBERTA)
    assert found(arms).mixed == ()


FACTORS = """\
base: quick/base
shared: {encoder: {num_layers: 2, hidden_size: 16, num_heads: 2}}
factors:
  mechanism: {none: {encoder.mechanism: none}, rope: {encoder.mechanism: rope}}
  masked: {15: {objective.probability: 0.15}, 30: {objective.probability: 0.3}}
baseline: {mechanism: none, masked: 15}
seeds: [0]
evaluations: [validation]
"""


def test_factors_of_one_aspect_each_separate_them(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(FACTORS)
    plan = make_plan(load_study(path))
    assert "confounds" not in plan.to_json()
    path.write_text(
        FACTORS.replace(
            "rope: {encoder", "rope: {objective.mask: 0.7, objective.random: 0.2, encoder"
        )
    )
    with pytest.raises(ControlError, match="the factor mechanism changes several; split it"):
        make_plan(load_study(path))
    path.write_text(
        FACTORS + "arms: {mechanism-rope_masked-15: {train.learning_rate: 0.1}}\nvaries: [train]\n"
    )
    with pytest.raises(ControlError, match="architecture and training at once"):
        make_plan(load_study(path))


def test_the_report_opens_with_what_is_mixed(tmp_path: Path) -> None:
    out = write_study(tmp_path, EIGHT_ARMS[:2], speed=False)
    plan = json.loads((out / "plan.json").read_text())
    arms = {"none": ["architecture", "objective"]}
    mixed = ["The difference between none and learned mixes encoder.mechanism and decoder."]
    plan["confounds"] = {"reason": "as published", "arms": arms, "mixed": mixed}
    write_json(out / "plan.json", plan)
    text = write_report(out).markdown.read_text(encoding="utf-8")
    opening = (
        "**This study mixes architecture with objective: no difference of none from other arms"
    )
    assert opening in text
    assert text.index(opening) < text.index("By validation loss")
    assert "Declared because: as published." in text
    assert "- **Mixed.** No two arms differ in one of these alone" in text
    assert f"  - {mixed[0]}" in text
