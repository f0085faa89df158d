"""Progress: counts, the time left, and not too many events."""

import pickle

from posattn.comparison.plan import make_plan
from posattn.comparison.progress import ProgressBoard, StudyProgress, Throttle
from posattn.comparison.study import load_study


def board() -> tuple[ProgressBoard, list[StudyProgress]]:
    shown: list[StudyProgress] = []
    plan = make_plan(load_study("smoke"))
    return ProgressBoard(plan.study.name, plan.runs, shown.append), shown


def test_changes_of_state_are_shown_at_once_and_steps_now_and_then() -> None:
    progress, shown = board()
    progress.update("rope, seed 0", state="training")
    before = len(shown)
    for step in range(20):
        progress.update("rope, seed 0", step=step, loss=1.0)
    assert len(shown) - before <= 2
    progress.update("rope, seed 0", state="finished")
    assert shown[-1].finished == 1
    assert shown[-1].total == 4


def test_failed_runs_are_counted_whatever_ended_them() -> None:
    progress, shown = board()
    for key, state in (("rope, seed 0", "killed"), ("rope, seed 1", "diverged")):
        progress.update(key, state=state, reason="why")
    assert shown[-1].failed == 2
    assert shown[-1].finished == 0


def test_the_time_left_is_unknown_first_and_falls_to_zero() -> None:
    progress, shown = board()
    progress.enter("runs")
    assert shown[-1].eta_seconds is None
    progress.update("rope, seed 0", state="training")
    progress.update("rope, seed 0", state="evaluating", step=20)
    eta = shown[-1].eta_seconds
    assert eta is not None
    assert eta > 0
    for run in shown[-1].runs:
        progress.update(f"{run.arm}, seed {run.seed}", state="finished")
    assert shown[-1].eta_seconds == 0


def test_progress_can_be_sent_to_another_process() -> None:
    progress, shown = board()
    progress.enter("data", "reading")
    assert pickle.loads(pickle.dumps(shown[-1])) == shown[-1]


def test_a_throttle_lets_the_first_call_through_and_not_the_next() -> None:
    throttle = Throttle()
    assert throttle.due()
    assert not throttle.due()
