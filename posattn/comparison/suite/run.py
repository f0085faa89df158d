"""`run_suite`: the study of every task, one after the other, in the same worker processes."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from posattn.comparison.plan import StudyPlan
from posattn.comparison.pool import WorkerPool
from posattn.comparison.progress import ShowProgress
from posattn.comparison.run import StudyResult, default_jobs, make_pool, run_study
from posattn.comparison.study import Study, load_study
from posattn.comparison.suite.plan import SuitePlan, make_suite_plan, write_suite_plan
from posattn.comparison.suite.progress import SuiteBoard
from posattn.errors import PosattnError, RecipeError, SuiteIncomplete
from posattn.training.durable import on_disk, writing
from posattn.training.run_folder import check_out

if TYPE_CHECKING:
    from posattn.comparison.overview import OverviewPaths

EXIT_CODES = (2, 3, 4, 1, 5)
"""Of several tasks that ended differently, the first of these is the suite's."""


@dataclass(frozen=True)
class TaskOutcome:
    """How the study of one task ended: its result, or the error that it raised."""

    task: str
    folder: Path
    result: StudyResult | None = None
    error: PosattnError | None = None


@dataclass(frozen=True)
class SuiteResult:
    """A suite that is done: where it is, how its tasks ended, and its report."""

    folder: Path
    tasks: tuple[TaskOutcome, ...]
    report: "OverviewPaths"
    seconds: float


def run_suite(
    study: Study | str | Path,
    out: str | Path,
    *,
    jobs: int | None = None,
    progress: ShowProgress | None = None,
    only: Sequence[str] = (),
) -> SuiteResult:
    """Run every task of a study into `out`/tasks/TASK, going on where an earlier call was stopped.

    `only` names the tasks to run, by default all. A task that fails stops no other: `SuiteIncomplete`
    is raised at the end, with the exit code of the worst. Raises `RecipeError` and `ControlError`
    before the first step if an arm of any task cannot run or differs in more than is declared.
    """
    started = time.monotonic()
    study = study if isinstance(study, Study) else load_study(study)
    plan = make_suite_plan(study)
    chosen = _chosen(plan, only)
    folder = Path(out).absolute()
    check_out(folder)
    with on_disk(folder):
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        write_suite_plan(plan, folder)
        outcomes = _run_tasks(plan, chosen, folder, jobs, progress)
        from posattn.comparison.suite.report import write_suite_report

        report = write_suite_report(folder)
    raise_if_tasks_failed(outcomes, folder)
    return SuiteResult(folder, tuple(outcomes), report, time.monotonic() - started)


def _chosen(plan: SuitePlan, only: Sequence[str]) -> list[str]:
    for name in only:
        if name not in plan.plans:
            raise RecipeError(
                f"'{name}' is no task of the study '{plan.study.name}' "
                f"(tasks: {', '.join(plan.plans)})"
            )
    return [name for name in plan.plans if not only or name in only]


def _run_tasks(
    plan: SuitePlan, chosen: list[str], out: Path, jobs: int | None, show: ShowProgress | None
) -> list[TaskOutcome]:
    folders = {name: out / "tasks" / name for name in chosen}
    plans = {name: plan.plans[name] for name in chosen}
    board = SuiteBoard(plan.study.name, plans, folders, show) if show is not None else None
    outcomes = []
    with ExitStack() as stack:
        pools: dict[tuple[int, int], WorkerPool] = {}
        for name in chosen:
            pool = _pool(pools, stack, plans[name], jobs, out)
            showing = board.showing(name) if board is not None else None
            try:
                study = plan.studies[name]
                result = run_study(study, folders[name], jobs=jobs, progress=showing, pool=pool)
                outcomes.append(TaskOutcome(name, folders[name], result))
            except PosattnError as error:
                outcomes.append(TaskOutcome(name, folders[name], error=error))
    return outcomes


def _pool(
    pools: dict[tuple[int, int], WorkerPool],
    stack: ExitStack,
    plan: StudyPlan,
    jobs: int | None,
    out: Path,
) -> WorkerPool:
    """Return the processes for a task; tasks with as many threads and jobs share them."""
    key = (default_jobs(plan) if jobs is None else jobs, plan.threads)
    if key not in pools:
        pools[key] = stack.enter_context(make_pool(*key, out))
    return pools[key]


def raise_if_tasks_failed(outcomes: Sequence[TaskOutcome], out: Path) -> None:
    """Raise `SuiteIncomplete` with what each task that did not succeed says, if there are any."""
    failed = [(outcome.task, outcome.error) for outcome in outcomes if outcome.error is not None]
    if not failed:
        return
    listed = "\n".join(f"  {task}: {_indented(str(error))}" for task, error in failed)
    codes = {error.exit_code for _, error in failed}
    code = next((code for code in EXIT_CODES if code in codes), min(codes))
    raise SuiteIncomplete(
        f"{len(outcomes) - len(failed)} of {len(outcomes)} tasks are complete; these are not:\n"
        f"{listed}\nThe report in {out} shows every task. Running the same command again goes on "
        "with what is unfinished",
        code,
    )


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")
