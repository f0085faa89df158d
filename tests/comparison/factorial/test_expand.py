"""Factors become arms, and what is wrong with them is said with file and line."""

import json
from pathlib import Path

import pytest

from posattn.comparison.plan import make_plan, write_plan
from posattn.comparison.study import Study, load_study
from posattn.errors import RecipeError
from tests.comparison.factorial.conftest import STUDY, LoadText

TABLE_FOUR = """\
base: base.yaml
factors:
  c2p: {on: {encoder.mechanism.c2p: true}, off: {encoder.mechanism.c2p: false}}
  p2c: {on: {encoder.mechanism.p2c: true}, off: {encoder.mechanism.p2c: false}}
  emd: {on: {decoder: {name: emd}}, off: {decoder: {name: plain}}}
impossible:
  - when: {c2p: off, p2c: off}
    reason: without both terms the table does nothing
baseline: {c2p: on, p2c: on, emd: on}
seeds: [0]
evaluations: [validation]
"""
LEFT_OUT = TABLE_FOUR[TABLE_FOUR.index("impossible") : TABLE_FOUR.index("baseline")]
USUAL = {
    "c2p": "{on: {encoder.mechanism.0.c2p: true}, off: {encoder.mechanism.0.c2p: false}}",
    "p2c": "{on: {encoder.mechanism.0.p2c: true}, off: {encoder.mechanism.0.p2c: false}}",
    "p2p": "{off: {encoder.mechanism.0.p2p: false}, on: {encoder.mechanism.0.p2p: true}}",
    "scale": "{counted: {encoder.mechanism.0.scale_terms: null}, "
    "four: {encoder.mechanism.0.scale_terms: 4}}",
    "buckets": "{log: {encoder.mechanism.0.buckets: {name: log, num_buckets: 8, max_distance: 32}}, "
    "clipped: {encoder.mechanism.0.buckets: {name: clipped, max_distance: 32}}}",
    "projections": "{own: {encoder.mechanism.0.projections: own}, "
    "shared: {encoder.mechanism.0.projections: shared}}",
    "masked": "{15: {objective.probability: 0.15}, 30: {objective.probability: 0.3}}",
}
WITH_ABSOLUTE = """\
base: base.yaml
factors:
  absolute:
    none:
    input: {encoder.mechanism: [{name: disentangled}, {name: learned, max_positions: 64}]}
    decoder: {decoder: {name: emd}}
shared:
  encoder.mechanism: [{name: disentangled}]
seeds: [0]
evaluations: [validation]
"""


def refusal(load: LoadText, *pairs: tuple[str, str], text: str = STUDY) -> str:
    with pytest.raises(RecipeError) as error:
        make_plan(load(text, *pairs))
    return str(error.value)


def test_every_combination_is_an_arm_with_a_readable_name(load: LoadText) -> None:
    study = load()
    assert list(study.arms) == [
        "c2p-on_emd-on",
        "c2p-on_emd-off",
        "c2p-off_emd-on",
        "c2p-off_emd-off",
    ]
    assert study.baseline == "c2p-on_emd-on"
    assert study.varies == ("encoder.mechanism.c2p", "decoder")
    arms = {arm.name: arm.recipe for arm in make_plan(study).arms}
    mechanisms = {name: recipe.encoder.mechanism[0].model_dump() for name, recipe in arms.items()}
    assert [mechanisms[name]["c2p"] for name in arms] == [True, True, False, False]
    assert [recipe.decoder.name for recipe in arms.values()] == ["emd", "plain", "emd", "plain"]


def test_a_baseline_may_be_named_as_an_arm(load: LoadText) -> None:
    study = load(STUDY, ("{c2p: on, emd: on}", "c2p-off_emd-on"))
    assert study.baseline == "c2p-off_emd-on"


def test_other_arms_stand_beside_and_an_arm_of_a_combination_adds_to_it(load: LoadText) -> None:
    study = load(
        STUDY + "varies: [encoder.mechanism]\n"
        "arms:\n  rope: {encoder.mechanism: {name: rope}}\n"
        "  c2p-off_emd-on: {encoder.mechanism.table_dropout: 0.2}\n"
    )
    assert [name for name in study.arms if "-" not in name] == ["rope"]
    assert list(study.arms)[-1] == "rope"
    assert study.varies == ("encoder.mechanism", "decoder")
    found = {
        arm.name: arm.recipe.encoder.mechanism[0].model_dump() for arm in make_plan(study).arms
    }
    assert (found["c2p-off_emd-on"]["c2p"], found["c2p-off_emd-on"]["table_dropout"]) == (
        False,
        0.2,
    )


def test_an_expanded_study_reads_back_as_itself(load: LoadText, tmp_path: Path) -> None:
    plan = make_plan(load(STUDY + "arms: {deeper: {depth_control_of: c2p-on_emd-on}}\n"))
    write_plan(plan, tmp_path)
    again = load_study(tmp_path / "study.yaml")
    assert again.model_dump(mode="json") == plan.study.model_dump(mode="json")
    assert make_plan(again).to_json() == plan.to_json()


@pytest.mark.parametrize("factor", USUAL)
def test_every_usual_factor_crosses_with_absolute_positions_in_either_place(
    load: LoadText, factor: str
) -> None:
    first = USUAL[factor][1:].split(":")[0]
    shared = (
        f"  {factor}: {USUAL[factor]}\nbaseline: {{absolute: none, {factor}: {first}}}\nshared:"
    )
    plan = make_plan(load(WITH_ABSOLUTE, ("shared:", shared)))
    assert len(plan.arms) == 6
    assert plan.design is not None
    inputs = [arm for arm in plan.arms if plan.design.cells[arm.name]["absolute"] == "input"]
    assert {len(arm.recipe.encoder.mechanism) for arm in inputs} == {2}


def test_objectives_and_numbers_are_levels_too(load: LoadText) -> None:
    text = STUDY.replace(
        "  emd: {on: {decoder: {name: emd}}, off: {decoder: {name: plain}}}",
        "  masked: {15: {objective.probability: 0.15}, 30: {objective.probability: 0.3}}\n"
        "  p2p: {false: {encoder.mechanism.p2p: false}, true: {encoder.mechanism.p2p: true}}",
    )
    study = load(text.replace("{c2p: on, emd: on}", "{c2p: on, masked: 30, p2p: true}"))
    assert study.baseline == "c2p-on_masked-30_p2p-true"
    assert study.varies == (
        "encoder.mechanism.c2p",
        "objective.probability",
        "encoder.mechanism.p2p",
    )


def test_combinations_that_cannot_be_are_named_and_may_be_left_out_with_a_reason(
    load: LoadText,
) -> None:
    said = refusal(load, (LEFT_OUT, ""), text=TABLE_FOUR)
    assert "the combination c2p-off_p2c-off_emd-on refuses itself: " in said
    assert "s.yaml:4: encoder.mechanism: c2p, p2c and p2p are all off" in said
    assert "impossible: [{when: {c2p: off, p2c: off, emd: on}, reason: ...}]" in said
    design = make_plan(load(TABLE_FOUR)).to_json()["design"]
    assert len(design["cells"]) == 6
    left_out = design["left_out"]["c2p-off_p2c-off_emd-on"]
    assert left_out["reason"] == "without both terms the table does nothing"
    assert "c2p, p2c and p2p are all off" in left_out["refused"]


def test_a_combination_left_out_that_could_be_is_told_apart(load: LoadText) -> None:
    possible = ("c2p: false}", "c2p: false, encoder.mechanism.p2p: true}")
    plan = make_plan(load(TABLE_FOUR, possible))
    assert plan.to_json()["design"]["left_out"]["c2p-off_p2c-off_emd-on"]["refused"] is None


def test_a_factor_that_does_nothing_somewhere_is_refused(load: LoadText) -> None:
    said = refusal(
        load,
        ("on: {decoder: {name: emd}}", "on: {encoder.mechanism: {name: rope}}"),
        ("off: {decoder: {name: plain}}", "off: {encoder.mechanism.p2p: true}"),
    )
    assert "c2p-on_emd-on and c2p-off_emd-on are the same recipe, so c2p does nothing there" in said


def test_a_fraction_is_run_and_stated_in_the_plan(load: LoadText, tmp_path: Path) -> None:
    p2p = "  p2p: {off: {encoder.mechanism.p2p: false}, on: {encoder.mechanism.p2p: true}}\n"
    where = "baseline: {c2p: on, emd: on}"
    plan = make_plan(load(STUDY, (where, f"{p2p}fraction: half\nbaseline: {{c2p: off, emd: off}}")))
    write_plan(plan, tmp_path)
    design = json.loads((tmp_path / "plan.json").read_text())["design"]
    assert list(design["cells"]) == [
        "c2p-on_emd-on_p2p-off",
        "c2p-on_emd-off_p2p-on",
        "c2p-off_emd-on_p2p-on",
        "c2p-off_emd-off_p2p-off",
    ]
    assert plan.study.baseline == "c2p-off_emd-off_p2p-off"
    assert design["resolution"] == 3
    assert design["generators"] == {"p2p": "-c2p*emd"}
    assert design["aliases"] == ["c2p = -emd*p2p", "emd = -c2p*p2p", "p2p = -c2p*emd"]


C2P = "  c2p: {on: {encoder.mechanism.c2p: true}, off: {encoder.mechanism.c2p: false}}"
NO_FACTORS = STUDY[STUDY.index("factors") : STUDY.index("seeds")]
ARMS = "arms: {a: {}}\nvaries: []\nbaseline: a\nfraction: half\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (C2P, "  c2p: {on: {}}", "3: factors.c2p: a factor has two levels or more, not 1"),
        (C2P, "  c-p: {on: {}, off: {train.steps: 1}}", "3: factors.c-p: the name of a factor"),
        (C2P, "  c2p: {a b: {}, off: {train.steps: 1}}", "3: factors.c2p.a b: the name of a"),
        (
            C2P,
            "  c2p: {on: {}, off: {}}",
            "3: factors.c2p.off: overrides the same as the level 'on'",
        ),
        (C2P, "  c2p: {on: {}, off: 3}", "3: factors.c2p.off: must be a mapping"),
        (C2P, "  c2p: {on: {}, off: {encodr.x: 1}}", "3: 'encodr.x' is no part of a recipe"),
        (C2P, "  c2p: {on: {}, off: {encoder.num_layer: 1}}", "3: encoder.num_layer: unknown key"),
        ("seeds:", "fraction: quarter\nseeds:", "6: fraction: must be 'half'"),
        ("seeds:", "fraction: half\nseeds:", "6: fraction: this fraction cannot tell main effects"),
        ("seeds:", "fraction: {emd: c2q}\nseeds:", "6: fraction: 'c2q' is no factor"),
        (
            "seeds:",
            "impossible: [{when: {c2p: of}, reason: x}]\nseeds:",
            "6: impossible.0.when.c2p: 'c2p' has no level 'of' (levels: on, off)",
        ),
        (
            "seeds:",
            "impossible: [{when: {c2p: off}, reason: x}]\nseeds:",
            "3: factors.c2p.off: no two combinations that are run differ in c2p (off against on) alone",
        ),
        (
            "{c2p: on, emd: on}",
            "{c2p: on}",
            "5: baseline: these levels are those of 2 combinations",
        ),
        ("{c2p: on, emd: on}", "{c2p: no}", "5: baseline: there is no level 'no' of 'c2p'"),
        (NO_FACTORS, "arms: {a: {}}\nbaseline: {a: on}\n", "3: baseline: names levels, but the"),
        (NO_FACTORS, ARMS, "5: fraction: belongs to a study with factors"),
    ],
)
def test_faults_are_named_with_file_and_line(load: LoadText, old: str, new: str, said: str) -> None:
    assert f"s.yaml:{said}" in refusal(load, (old, new))


def test_a_fraction_needs_factors_of_two_levels(load: LoadText) -> None:
    three = (
        "off: {encoder.mechanism.c2p: false}",
        "off: {encoder.mechanism.c2p: false}, x: {train.steps: 2}",
    )
    said = refusal(load, three, ("seeds:", "fraction: half\nseeds:"))
    assert "fraction: is for factors of two levels; c2p has more" in said


def test_too_many_combinations_are_refused_before_they_are_made(load: LoadText) -> None:
    many = "\n".join(f"  f{i}: {{a: {{}}, b: {{train.steps: {i + 5}}}}}" for i in range(8))
    assert "512 combinations are more than 256" in refusal(load, (C2P, many))


def test_the_stored_study_is_one_that_the_class_reads(load: LoadText) -> None:
    stored = load().model_dump(mode="json")
    assert Study.model_validate(stored).model_dump(mode="json") == stored
