"""Self-tests: what keeps its promises passes, what breaks one is refused before the first step."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from posattn.backends.eager import EagerBackend
from posattn.bias import Visibility
from posattn.comparison.plan import make_plan
from posattn.comparison.pool import JobEvent
from posattn.comparison.self_tests import RULE, check_arms_keep_promises
from posattn.comparison.self_tests.arm import SelfTestTask, self_test
from posattn.comparison.study import load_study
from posattn.errors import ControlError, RunFailed
from posattn.mechanisms.alibi import ALiBiConfig
from posattn.mechanisms.base import Heads
from posattn.mechanisms.rope import RotaryPositions
from posattn.recipe.schema import load_recipe
from tests.comparison.inline_pool import InlinePool

SMALL = ("encoder.hidden_size=16", "encoder.num_layers=1", "encoder.num_heads=2")
"""Small, because the shape hook of the tests makes every call slow."""
STUDY = """\
base: quick/base
shared: {encoder: {hidden_size: 16, num_layers: 1, num_heads: 2}}
arms:
  rope: {encoder.mechanism: rope}
  again: {encoder.mechanism: rope}
  none: {encoder.mechanism: none}
varies: [encoder.mechanism]
baseline: rope
seeds: [0]
evaluations: [validation]
"""


def no_rotation(self: RotaryPositions, heads: Heads, prepared: Any) -> Heads:
    return heads


def self_tested(name: str, *overrides: str) -> dict[str, Any]:
    return self_test(SelfTestTask(load_recipe(f"quick/{name}", [*SMALL, *overrides])), print)


@pytest.mark.parametrize(
    "name",
    ["none", "learned", "rope", "fire", "cape", "transformer_xl", "disentangled_emd", "grid"],
)
def test_what_ships_keeps_its_promises(name: str) -> None:
    found = self_tested(name, *(["encoder.window=null"] if name == "grid" else []))
    assert found["broken"] == []
    asked = {check["of"] for check in found["checks"]}
    assert asked >= {"permutation", "padding", "backend"}
    assert ("shift" in asked) == (name != "grid")
    assert {1, 2, 7} < {*found["gradient_lengths"]}
    kept = [check["relative"] for check in found["checks"] if check["same"]]
    changed = [check["relative"] for check in found["checks"] if not check["same"]]
    assert max(kept) < 1e-5 < 1e-4 < min(changed, default=1)


def test_a_table_that_ends_bounds_what_is_asked() -> None:
    found = self_tested("learned", "encoder.mechanism.max_positions=12", "data.max_length=8")
    assert found["broken"] == []
    assert found["gradient_lengths"] == [1, 2, 7, 12]


def test_a_rotation_without_effect_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RotaryPositions, "rotate", no_rotation)
    broken = self_tested("rope")["broken"]
    assert any("permutation (shuffled): logits must change, for 'rope' sees" in b for b in broken)


def test_traits_that_say_too_much_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ALiBiConfig.traits

    def wrong(self: ALiBiConfig) -> Any:
        return replace(right(self), knows_direction=True)

    monkeypatch.setattr(ALiBiConfig, "traits", wrong)
    (broken,) = self_tested("alibi", "encoder.mechanism.variant=symmetric")["broken"]
    assert broken.startswith("permutation (reversed): logits must change")


def test_a_backend_that_lets_padding_through_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = EagerBackend.run
    monkeypatch.setattr(
        EagerBackend, "run", lambda self, call: run(self, replace(call, visibility=Visibility(())))
    )
    broken = self_tested("rope")["broken"]
    assert {b.split(" by")[0] for b in broken} >= {"padding (right", "padding (left"}


def test_a_backend_that_is_not_the_definition_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = EagerBackend.run
    monkeypatch.setattr(EagerBackend, "run", lambda self, call: 1.1 * run(self, call))
    broken = self_tested("rope", "encoder.backend=sdpa")["broken"]
    assert [b.split(":")[0] for b in broken] == [
        "backend (padding right)",
        "backend (padding left)",
    ]


def test_gradients_that_are_not_finite_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rotate: Callable[..., Any] = RotaryPositions.rotate

    def bad(self: RotaryPositions, heads: Heads, prepared: Any) -> Heads:
        turned = rotate(self, heads, prepared)
        root = (turned.query - turned.query.detach()).abs().sqrt()  # zero, with a gradient of 0 / 0
        return turned._replace(query=turned.query + root)

    monkeypatch.setattr(RotaryPositions, "rotate", bad)
    broken = self_tested("rope")["broken"]
    assert [b.split(" are")[0] for b in broken] == [
        f"gradients at {length} tokens" for length in (1, 2, 7, 48)
    ]


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    (tmp_path / "s.yaml").write_text(STUDY)
    return make_plan(load_study(tmp_path / "s.yaml"))


def test_every_architecture_is_asked_once_and_what_held_not_again(
    plan: Any, tmp_path: Path
) -> None:
    first, second = InlinePool(), InlinePool()
    finding = check_arms_keep_promises(plan, tmp_path, first)
    assert (finding.rule, finding.held, finding.broken) == (RULE, True, False)
    assert "on 3 arms; gradients finite in rows of 1, 2, 7 and 48 tokens" in finding.detail
    assert first.keys == ["self-test of rope", "self-test of none"]
    assert check_arms_keep_promises(plan, tmp_path, second) == finding
    assert second.keys == []
    (tmp_path / "self_test.json").write_text("{")
    assert check_arms_keep_promises(plan, tmp_path, second) == finding


def test_a_broken_promise_is_refused_by_name_and_asked_again_once_mended(
    plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(RotaryPositions, "rotate", no_rotation)
        with pytest.raises(ControlError) as error:
            check_arms_keep_promises(plan, tmp_path, InlinePool())
    for words in ("rope: permutation (shuffled)", "again: permutation", "posattn check-mechanism"):
        assert words in str(error.value)
    assert "none:" not in str(error.value)
    stored = json.loads((tmp_path / "self_test.json").read_text())
    assert stored["arms"]["rope"] == stored["arms"]["again"] != stored["arms"]["none"]
    again = InlinePool()
    assert check_arms_keep_promises(plan, tmp_path, again).held
    assert again.keys == ["self-test of rope"]


def test_an_arm_that_cannot_be_asked_is_an_error_with_its_name(plan: Any, tmp_path: Path) -> None:
    class Dying(InlinePool):
        def run(self, jobs: Any, on_event: Any) -> None:
            on_event(JobEvent(next(iter(jobs)).key, "killed", "was ended by SIGKILL"))

    with pytest.raises(RunFailed, match="the self-test of rope failed: was ended by SIGKILL"):
        check_arms_keep_promises(plan, tmp_path, Dying())
