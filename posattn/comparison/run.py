"""`run_study`: plan, data, runs in a process pool, control, measurements on all arms, report."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from posattn.comparison.control import Finding, raise_if_broken
from posattn.comparison.control_of_runs import check_runs
from posattn.comparison.evaluations import StudyEvaluation, evaluations
from posattn.comparison.evaluations.arena import Arena
from posattn.comparison.execute import RunTask, execute_run, is_done, mark_ended
from posattn.comparison.expectations import check_expectations
from posattn.comparison.locks import locked
from posattn.comparison.plan import (
    PlannedRun,
    StudyPlan,
    check_same_study,
    make_plan,
    write_plan,
)
from posattn.comparison.pool import JobEvent, WorkerPool
from posattn.comparison.progress import ProgressBoard, ShowProgress
from posattn.comparison.run_evidence import RunEvidence, read_evidence
from posattn.comparison.self_tests import check_arms_keep_promises
from posattn.comparison.settle import Workshop, is_settled, settled
from posattn.comparison.study import Study, load_study
from posattn.comparison.tuning.tune import RunStudy
from posattn.comparison.worker import Job
from posattn.errors import StudyIncomplete
from posattn.recipe.check import check_recipe
from posattn.recipe.schema import recipe_data
from posattn.training.durable import on_disk
from posattn.training.run_folder import RunFolder, State, Status, check_out
from posattn.training.text.prepare import prepare

if TYPE_CHECKING:
    from posattn.comparison.report import ReportPaths

PRELOAD = ("posattn.comparison.execute", "posattn.comparison.evaluations.timing", "torch._dynamo")
"""What workers import while the text is prepared; the last is what the first optimizer step imports."""


@dataclass(frozen=True)
class RunOutcome:
    """How one run of a study ended; `folder` is relative to the study's."""

    arm: str
    seed: int
    folder: str
    state: str
    step: int
    reason: str | None

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.arm}, seed {self.seed}: {self.state} at step {self.step}{reason}"


@dataclass(frozen=True)
class StudyResult:
    """A study that is done: where it is, how its runs ended, and its report."""

    folder: Path
    runs: tuple[RunOutcome, ...]
    control: tuple[Finding, ...]
    report: "ReportPaths"
    seconds: float


def run_study(
    study: Study | str | Path,
    out: str | Path,
    *,
    jobs: int | None = None,
    progress: ShowProgress | None = None,
    pool: WorkerPool | None = None,
) -> StudyResult:
    """Run a study into the folder `out`, going on where an earlier call was stopped.

    `jobs` is the number of runs at a time, by default the cores divided by the threads of a run;
    `pool` lends worker processes that live on after this study (its size and threads hold then).
    Raises `ControlError` if arms differ in more than is declared, an arm breaks what its parts promise
    or the runs prove not comparable, and `StudyIncomplete` if runs did not finish; where runs have
    ended, the report is written before.
    """
    study = study if isinstance(study, Study) else load_study(study)
    plan = make_plan(study)
    folder = Path(out).absolute()
    check_out(folder)
    _check(plan, folder, is_final=is_settled(study))
    with on_disk(folder), locked(folder, "this study"), _workers(plan, folder, jobs, pool) as lent:
        if not is_settled(study):
            plan = settled(plan, Workshop(folder, progress), _runner(lent))
            _check(plan, folder, is_final=True)
        return _StudyRun(plan, folder, jobs, progress, lent).execute()


def _workers(
    plan: StudyPlan, folder: Path, jobs: int | None, lent: WorkerPool | None
) -> AbstractContextManager[WorkerPool | None]:
    """Return the workers lent, or those that the trials and the runs of a tuned study share."""
    if lent is not None or plan.study.tuning is None:
        return nullcontext(lent)
    size = default_jobs(plan) if jobs is None else jobs
    return WorkerPool(size, threads=plan.threads, logs=folder / "workers", preload=PRELOAD)


def _runner(pool: WorkerPool | None) -> RunStudy:
    """Return how the study of a tuning's trials is run: as any study, by these workers."""

    def run(study: Study, out: Path, show: ShowProgress | None) -> StudyResult:
        return run_study(study, out, progress=show, pool=pool)

    return run


def _check(plan: StudyPlan, folder: Path, *, is_final: bool) -> None:
    """Raise if the plan is another than the folder's, once it is final, or an arm cannot run here."""
    if is_final:
        check_same_study(plan, folder)
    for arm in plan.arms:
        check_recipe(arm.recipe)


class _StudyRun:
    """The state of one call of `run_study`."""

    def __init__(
        self,
        plan: StudyPlan,
        out: Path,
        jobs: int | None,
        show: ShowProgress | None,
        lent: WorkerPool | None,
    ) -> None:
        self.plan = plan
        self.out = out
        self.lent = lent
        self.jobs = lent.size if lent else default_jobs(plan) if jobs is None else jobs
        self.board = ProgressBoard(plan.study.name, plan.runs, show)

    def execute(self) -> StudyResult:
        """Do what is left of the study."""
        write_plan(self.plan, self.out)
        waiting = self._waiting()
        with self._pool() as pool:
            pool.start(min(self.jobs, len(waiting)))
            self._prepare_text()
            self.board.enter("self-test", "asking every arm what its parts promise")
            kept = check_arms_keep_promises(self.plan, self.out, pool)
            self.plan = self.plan.with_control([kept])
            write_plan(self.plan, self.out)
            self.board.enter("runs")
            pool.run([self._job(run) for run in waiting], self._note)
            self.board.enter("control", "comparing the records of all runs")
            evidence = [self._evidence(run) for run in self.plan.runs]
            findings = check_expectations(self.plan.study.expect, evidence)
            findings += check_runs(evidence, self._baseline())
            plan = self.plan.with_control(findings)
            write_plan(plan, self.out)
            self._measure(pool)
        return self._conclude(plan)

    def _pool(self) -> AbstractContextManager[WorkerPool]:
        if self.lent is not None:
            return nullcontext(self.lent)
        return make_pool(self.jobs, self.plan.threads, self.out)

    def _baseline(self) -> str:
        return self.plan.study.baseline

    def _waiting(self) -> list[PlannedRun]:
        """Return the runs that are not done, and show those that are."""
        waiting = []
        for run in self.plan.runs:
            if is_done(self.out / run.folder):
                outcome = self._outcome(run)
                self.board.update(
                    run.key, state=outcome.state, step=outcome.step, reason=outcome.reason
                )
            else:
                waiting.append(run)
        return waiting

    def _prepare_text(self) -> None:
        """Read and tokenise every arm's text, once, before the workers need it."""
        self.board.enter("data", "preparing the text")
        done = []
        for arm in self.plan.arms:
            if arm.recipe.data not in done:
                prepare(arm.recipe.data, progress=self.board.say)
                done.append(arm.recipe.data)

    def _job(self, run: PlannedRun) -> Job:
        task = RunTask(
            run.key, self.out / run.folder, run.recipe, tuple(self.plan.study.evaluations)
        )
        return Job(run.key, execute_run, task)

    def _note(self, event: JobEvent) -> None:
        """Show what a run says, and write down the end of one that could not do so itself."""
        run = next(run for run in self.plan.runs if run.key == event.key)
        if event.kind == "started":
            self.board.update(run.key, state="training")
        elif event.kind == "progress":
            self.board.update(run.key, **event.payload)
        else:
            if event.kind != "returned":
                state: State = "killed" if event.kind == "killed" else "failed"
                reason = f"the process {event.payload}" if state == "killed" else str(event.payload)
                mark_ended(self.out / run.folder, state, reason)
            outcome = self._outcome(run)
            self.board.update(
                run.key,
                state=outcome.state,
                step=outcome.step,
                reason=outcome.reason,
                process=None,
            )

    def _evidence(self, run: PlannedRun) -> RunEvidence:
        planned = recipe_data(run.recipe)
        return read_evidence(self.out / run.folder, run.arm, run.seed, planned)

    def _measure(self, pool: WorkerPool) -> None:
        """Make the measurements that need all arms together, unless they are there already."""
        if not any(self._outcome(run).state == "finished" for run in self.plan.runs):
            return
        arena = Arena(
            out=self.out,
            recipes={arm.name: arm.recipe for arm in self.plan.arms},
            threads=self.plan.threads,
            jobs=self.jobs,
            pool=pool,
            say=lambda message: self.board.enter("measurements", message),
        )
        for config in self.plan.study.evaluations:
            kind = evaluations.get(config.name)
            if issubclass(kind, StudyEvaluation) and not (self.out / kind.file).is_file():
                kind(config).measure(arena)

    def _conclude(self, plan: StudyPlan) -> StudyResult:
        from posattn.comparison.report import write_report

        self.board.enter("report", "writing the report")
        report = write_report(self.out)
        self.board.enter("done", str(report.html))
        outcomes = tuple(self._outcome(run) for run in plan.runs)
        raise_if_broken(plan.control)
        raise_if_incomplete(outcomes, self.out)
        seconds = self.board.current().seconds
        return StudyResult(self.out, outcomes, plan.control, report, seconds)

    def _outcome(self, run: PlannedRun) -> RunOutcome:
        status = RunFolder(self.out / run.folder).read_status()
        status = status or Status("failed", reason="the run never started")
        return RunOutcome(run.arm, run.seed, run.folder, status.state, status.step, status.reason)


def raise_if_incomplete(outcomes: Sequence[RunOutcome], out: Path) -> None:
    """Raise `StudyIncomplete` with the runs that did not finish, if there are any."""
    missing = [outcome for outcome in outcomes if outcome.state != "finished"]
    if not missing:
        return
    listed = "\n".join(f"  {outcome}" for outcome in missing)
    rest = "covers the others and says so" if len(missing) < len(outcomes) else "says so"
    raise StudyIncomplete(
        f"{len(outcomes) - len(missing)} of {len(outcomes)} runs finished; these did not:\n{listed}\n"
        f"The report in {out} {rest}. Running the same command again takes up runs that failed or "
        "were killed; a run that diverged would diverge again, and is kept"
    )


def make_pool(jobs: int, threads: int, out: Path) -> WorkerPool:
    """Return worker processes for the runs of studies in `out`; they start with the first jobs."""
    return WorkerPool(jobs, threads=threads, logs=out / "workers", preload=PRELOAD)


def default_jobs(plan: StudyPlan) -> int:
    """Return how many runs fit on this machine at a time: by cores, or one on a GPU."""
    import torch

    devices = {arm.recipe.train.device for arm in plan.arms}
    if torch.cuda.is_available() and devices != {"cpu"}:
        return 1
    usable = getattr(os, "sched_getaffinity", None)
    cores = len(usable(0)) if usable else os.cpu_count() or 1
    return max(1, min(cores // plan.threads, len(plan.runs)))
