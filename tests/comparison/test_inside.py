"""What the runs of an arm say together of their models' insides, and how the report shows it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from posattn.comparison.inside import inside
from posattn.comparison.report import write_report
from posattn.comparison.results import collect
from posattn.comparison.study_files import Evaluations
from tests.comparison.study_folders import FakeArm, write_study

ARMS = (FakeArm("learned", 2.4), FakeArm("rope", 1.3))


def check(name: str, *, same: bool, relative: float, held: bool | None) -> dict[str, Any]:
    facts = {"name": name, "amount": 8, "same": same, "because": "a part sees positions"}
    return {**facts, "relative": relative, "tolerance": 1e-6, "held": held, "largest": 0.1}


def heads(name: str, distance: float) -> dict[str, Any]:
    shares = {key: [0.25, 0.5] for key in ("first", "last", "cls")}
    even = {"uniform_distance": [4.0, 4.0], "uniform_entropy": [2.0, 2.0]}
    return {"name": name, "distance": [distance, 1.0], "entropy": [1.0, 0.5], **even, **shares}


def evidence(losses: list[float | None], masks: str = "a") -> dict[str, Any]:
    targets = [0 if loss is None else 7 for loss in losses]
    bins = {"loss": losses, "targets": targets}
    return {"edges": [1, 2, 4], "masks": masks, "nearest": bins, "left": bins, "right": bins}


def stored(**sections: Any) -> Evaluations:
    return Evaluations.model_validate(sections)


def test_without_such_evaluations_there_is_nothing() -> None:
    assert inside({0: stored(), 1: stored()}, None) is None


@pytest.mark.parametrize(("same", "worst"), [(True, 0.3), (False, 0.1)])
def test_the_check_nearest_to_breaking_is_kept_and_runs_are_counted(
    same: bool, worst: float
) -> None:
    runs = {
        seed: stored(shift={"checks": [check("filler", same=same, relative=change, held=held)]})
        for seed, change, held in ((0, 0.1, True), (1, 0.3, False), (2, 0.2, None))
    }
    found = inside(runs, None)
    assert found is not None
    (summary,) = found.checks
    assert (summary.relative, summary.judged, summary.held) == (worst, 2, 1)
    assert summary.broken


def test_heads_are_means_over_runs() -> None:
    runs = {
        seed: stored(attention_distance={"layers": [heads("layer 1", distance)]})
        for seed, distance in ((0, 2.0), (1, 4.0))
    }
    found = inside(runs, None)
    assert found is not None
    assert [(head.layer, head.head, head.distance) for head in found.heads] == [
        ("layer 1", 1, 3.0),
        ("layer 1", 2, 1.0),
    ]
    assert found.heads[0].runs == 2


def test_losses_are_compared_where_the_masks_were_the_same() -> None:
    mine = {
        0: stored(evidence_distance=evidence([2.0, 3.0, None])),
        1: stored(evidence_distance=evidence([2.2, 3.5, None])),
        2: stored(evidence_distance=evidence([9.0, 9.0, None], masks="b")),
    }
    theirs = {seed: stored(evidence_distance=evidence([2.5, 3.0, None])) for seed in (0, 1, 2)}
    found = inside(mine, theirs)
    assert found is not None
    first, second, last = (one for one in found.evidence if one.side == "left")
    assert (first.start, first.stop, last.start, last.stop) == (1, 2, 4, None)
    assert first.summary.n == 3
    assert first.difference is not None
    assert (first.difference.n, first.difference.mean) == (2, pytest.approx(-0.4))
    assert second.difference is not None
    assert second.difference.mean == pytest.approx(0.25)
    assert (last.summary.n, last.summary.mean, last.targets) == (0, None, 0)


def test_a_reason_becomes_a_note() -> None:
    found = inside({0: stored(shift={"reason": "no room"})}, None)
    assert found is not None
    assert found.notes == ["no room"]


@pytest.fixture
def looked_into(tmp_path: Path) -> Path:
    out = write_study(tmp_path / "study", ARMS, (0, 1), diverged=frozenset(), speed=False)
    for path in out.glob("runs/*/*/evaluations.json"):
        is_rope = "rope" in path.parts
        moved = check("filler", same=is_rope, relative=0.01, held=not is_rope)
        sections = {
            "shift": {"checks": [moved]},
            "attention_distance": {"layers": [heads("layer 1", 2.0), heads("decoder pass 1", 1.0)]},
            "evidence_distance": evidence([2.0, 3.0, None] if is_rope else [2.5, 3.0, None]),
        }
        path.write_text(json.dumps(json.loads(path.read_text()) | sections))
    return out


def test_the_report_marks_a_broken_check_and_draws_heads_and_evidence(looked_into: Path) -> None:
    results = collect(looked_into)
    assert all(run.other == {} for run in results.runs)
    paths = write_report(looked_into)
    text = paths.markdown.read_text()
    assert "NOT HELD: must stay, 1.0e-02" in text
    assert "changes, 1.0e-02" in text
    assert (
        "| rope | \u22120.500 [\u22120.500, \u22120.500] | 0.000 [0.000, 0.000] | \u2013 |" in text
    )
    bad = r'<tr class="bad"[^>]*>\s*<th scope="row"[^>]*>(<a [^>]*>)?rope'
    assert re.search(bad, paths.html.read_text(encoding="utf-8"))
    table = (paths.figures / "attention_distance.csv").read_text().splitlines()
    assert table[0].startswith("arm,layer,head,runs,distance")
    assert table[3].startswith("learned,decoder pass 1,1,2,1.0")
    assert (paths.figures / "evidence_distance.svg").is_file()
