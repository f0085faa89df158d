"""`collect_suite(out)`: the results of all tasks become one `SuiteResults`, finished or not."""

from pathlib import Path

from posattn.comparison.results_schema import ArmResult, Results
from posattn.comparison.statistics import paired_difference
from posattn.comparison.suite.aggregate import aggregate_tasks
from posattn.comparison.suite.answer import suite_answer
from posattn.comparison.suite.files import StoredTask, SuiteFiles, read_suite
from posattn.comparison.suite.limits import suite_limits
from posattn.comparison.suite.schema import (
    Solved,
    SuiteInfo,
    SuiteResults,
    TaskArm,
    TaskContrast,
    TaskPrediction,
    TaskProbe,
    TaskResult,
)
from posattn.comparison.verdicts import judge
from posattn.errors import DataError


def collect_suite(out: Path) -> SuiteResults:
    """Return the results of the suite in `out`, as far as its tasks are finished.

    Raises `RecipeError` for a folder without tasks, `DataError` for one that cannot be read or whose
    tasks have different baselines.
    """
    files = read_suite(out)
    tasks = [_task(task, files.results.get(task.name)) for task in files.plan.tasks]
    baseline = _baseline(files, out)
    found = SuiteResults(
        posattn_version=next((r.posattn_version for r in files.results.values()), "unknown"),
        suite=_info(files, tasks, baseline),
        answer=[],
        tasks=tasks,
        contrasts=_contrasts(tasks, baseline),
        aggregate=aggregate_tasks(tasks, baseline),
        predictions=_predictions(files),
        limits=[],
    )
    found = found.model_copy(update={"answer": suite_answer(found)})
    return found.model_copy(update={"limits": suite_limits(found)})


def _baseline(files: SuiteFiles, out: Path) -> str:
    """Return the baseline that all tasks have."""
    found = {task: results.study.baseline for task, results in files.results.items()}
    if files.plan.baseline:
        found = {"the suite": files.plan.baseline, **found}
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{task}: {baseline}" for task, baseline in found.items())
        raise DataError(
            f"{out}: the tasks have different baselines ({listed}); compare such studies with "
            "posattn report A B --out DIR"
        )
    return next(iter(found.values()), "")


def _info(files: SuiteFiles, tasks: list[TaskResult], baseline: str) -> SuiteInfo:
    plan = files.plan
    arms = dict.fromkeys(arm.name for task in tasks for arm in task.arms)
    return SuiteInfo(
        name=plan.suite,
        title=plan.title or None,
        question=plan.question or None,
        description=plan.description or None,
        notes=plan.notes or None,
        baseline=baseline,
        arms=list(arms),
        tasks_planned=len(tasks),
        tasks_complete=sum(task.state == "complete" for task in tasks),
        runs_planned=sum(task.runs_planned for task in tasks),
        runs_finished=sum(task.runs_finished for task in tasks),
    )


def _task(task: StoredTask, results: Results | None) -> TaskResult:
    if results is None:
        return TaskResult(
            name=task.name,
            title=task.title or None,
            question=task.question or None,
            folder=task.folder,
            state="not started",
            reason="no run of it was ever planned here",
            broken=[],
            seeds=[],
            runs_planned=0,
            runs_finished=0,
            metric=None,
            left_out=task.left_out,
            arms=[],
        )
    study = results.study
    return TaskResult(
        name=task.name,
        title=study.title,
        question=study.question,
        folder=task.folder,
        state="complete" if study.complete else "incomplete",
        reason=_what_is_missing(results),
        broken=[rule.rule for rule in results.control if rule.broken],
        seeds=study.seeds,
        runs_planned=study.runs_planned,
        runs_finished=study.runs_finished,
        metric=results.primary,
        left_out=task.left_out,
        arms=[_arm(results, arm) for arm in results.arms],
        probe=_probe(results),
    )


def _what_is_missing(results: Results) -> str | None:
    missing = [run for run in results.runs if run.state != "finished"]
    if not missing:
        return None
    return "; ".join(f"{run.arm}, seed {run.seed} {run.state}" for run in missing)


def _arm(results: Results, arm: ArmResult) -> TaskArm:
    scores = arm.scores[results.study.primary]
    runs = [run for run in results.runs if run.arm == arm.name]
    return TaskArm(
        name=arm.name,
        summary=scores.summary,
        values=scores.values,
        states={run.seed: run.state for run in runs if run.state != "finished"},
        recipe_digest=arm.recipe_digest,
        solved=_solved(results, arm.name),
    )


def _solved(results: Results, arm: str) -> Solved | None:
    if results.probe is None:
        return None
    share = next((share for share in results.probe.arms if share.arm == arm), None)
    return None if share is None else Solved(**share.model_dump(exclude={"arm"}))


def _probe(results: Results) -> TaskProbe | None:
    probe = results.probe
    if probe is None:
        return None
    return TaskProbe(
        name=probe.name, question=probe.question, chance=probe.chance, solved=probe.solved
    )


def _contrasts(tasks: list[TaskResult], baseline: str) -> list[TaskContrast]:
    """Return the differences from the baseline in every task, corrected in one family."""
    places, differences = [], []
    for task in tasks:
        scores = {arm.name: _finished(arm) for arm in task.arms}
        for name in scores:
            if name != baseline:
                places.append((task, name))
                differences.append(paired_difference(scores[name], scores[baseline]))
    lower, higher = judge(differences, "lower"), judge(differences, "higher")
    return [
        TaskContrast(
            task=task.name,
            first=name,
            second=baseline,
            difference=differences[number],
            judgement=(lower if task.metric and task.metric.better == "lower" else higher)[number],
        )
        for number, (task, name) in enumerate(places)
    ]


def _finished(arm: TaskArm) -> dict[int, float]:
    return {seed: value for seed, value in arm.values.items() if value is not None}


def _predictions(files: SuiteFiles) -> list[TaskPrediction]:
    return [
        TaskPrediction(task=task, **outcome.model_dump())
        for task, results in files.results.items()
        for outcome in results.predictions
    ]
