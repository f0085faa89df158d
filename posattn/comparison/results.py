"""`collect(out)`: the files of a study folder become one `Results`, finished or not."""

from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from posattn.comparison import summaries
from posattn.comparison.answer import answer
from posattn.comparison.budgets.account import account
from posattn.comparison.contrasts import descriptive_contrasts, judged_contrasts
from posattn.comparison.factorial.effects import depth_controls, design_part, effects
from posattn.comparison.factorial.parts import ConfoundsPart
from posattn.comparison.inside import inside
from posattn.comparison.limits import limits
from posattn.comparison.metrics import Metric, metrics
from posattn.comparison.probes.outcomes import prediction_outcomes, probe_outcome
from posattn.comparison.results_schema import (
    ArmResult,
    Contrast,
    ControlResult,
    CurvePoint,
    MetricInfo,
    Results,
    RunResult,
    RunScore,
    SeedSummary,
    SpeedInfo,
    StudyInfo,
)
from posattn.comparison.statistics import summarize
from posattn.comparison.study_files import (
    Evaluations,
    PlannedArm,
    RunFiles,
    StudyFiles,
    read_json,
    read_study,
)
from posattn.comparison.tuning.schema import TuningInfo
from posattn.comparison.verdicts import Scores, judge_study

KNOWN_SECTIONS = {"validation", "length", "position", "size"}
ENDED = ("finished", "diverged", "failed", "killed")


def collect(out: Path) -> Results:
    """Return the results of the study folder `out`, as far as it is finished."""
    files = read_study(out)
    primary = metrics.get(files.plan.primary)
    chosen = [primary] + [m for m in map(metrics.get, metrics) if m != primary]
    runs = [_run(run, chosen) for run in files.runs]
    plan = files.plan
    scores = _scores(runs, primary.name, files)
    judged = judge_study(scores, plan.baseline, primary.better, plan.primary_contrasts)
    examples = {(run.arm, run.seed): run.examples for run in files.runs if _finished(run)}
    contrasts = judged_contrasts(judged, primary, scores, examples)
    for metric in chosen[1:]:
        others = _scores(runs, metric.name, files)
        contrasts += descriptive_contrasts(metric, others, plan.baseline)
    found = Results(
        posattn_version=_version(),
        study=_study(files, runs),
        answer=[],
        metrics=[_metric_info(metric, primary) for metric in chosen],
        arms=[_arm(arm, files, runs, chosen) for arm in files.plan.arms],
        runs=runs,
        contrasts=contrasts,
        groups=[list(group) for group in judged.groups],
        control=[ControlResult(**rule.model_dump()) for rule in files.plan.control],
        speed=_speed(files),
        data=merge_by_key({run.folder: run.data for run in files.runs if run.data}),
        environment=merge_by_key(
            {run.folder: run.environment for run in files.runs if run.environment}
        ),
        recipe=_baseline_recipe(files) or {},
        notes=_notes(files),
        limits=[],
        probe=probe_outcome(files, runs, train_length(files)),
        predictions=prediction_outcomes(files, runs, train_length(files)),
        **_factorial(files, _scores(runs, primary.name, files), contrasts, primary),
        budget=account(files),
        tuning=_tuning(out),
    )
    return found.model_copy(update={"answer": answer(found), "limits": limits(found, files)})


def _factorial(
    files: StudyFiles, scores: Scores, contrasts: list[Contrast], primary: Metric
) -> dict[str, Any]:
    """Return the parts of results.json on factors, controls of depth and what is mixed."""
    plan = files.plan
    found: dict[str, Any] = {
        "depth_controls": depth_controls(plan.depth_controls, scores, contrasts, primary.name)
    }
    if plan.confounds:
        found["confounds"] = ConfoundsPart.model_validate(plan.confounds)
    if plan.design is not None:
        part = design_part(plan.design)
        found["design"] = part
        found["effects"] = effects(part, scores, plan.seeds, primary.better)
    return found


def merge_by_key(contents: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return `{"common": ..., "differs": ...}` over these files, by dotted key.

    `common` has the values that all share, `differs` the others by file.
    """
    flat = {name: dict(_flatten(content)) for name, content in contents.items()}
    common: dict[str, Any] = {}
    differs: dict[str, dict[str, Any]] = {}
    for key in dict.fromkeys(key for content in flat.values() for key in content):
        values = {name: content.get(key) for name, content in flat.items()}
        first = next(iter(values.values()))
        if all(value == first for value in values.values()):
            common[key] = first
        else:
            differs[key] = values
    return {"common": common, "differs": differs}


def _flatten(content: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _finished(run: RunFiles) -> bool:
    return run.status is not None and run.status.state == "finished"


def _run(run: RunFiles, chosen: list[Metric]) -> RunResult:
    status = run.status
    evaluated = run.evaluations or Evaluations()
    names = ("recipe.yaml", "metrics.jsonl", "evaluations.json", "examples.npz", "environment.json")
    present = {
        "recipe.yaml": run.recipe,
        "metrics.jsonl": run.has_metrics or None,
        "evaluations.json": run.evaluations,
        "examples.npz": run.examples,
        "environment.json": run.environment,
    }
    return RunResult(
        arm=run.arm,
        seed=run.seed,
        folder=run.folder,
        state=status.state if status else "not started",
        step=status.step if status else 0,
        tokens=status.tokens if status else 0,
        targets=status.targets if status else 0,
        seconds=status.seconds if status else None,
        resumed=status.resumed if status else 0,
        graphs=status.graphs if status else None,
        reason=status.reason if status else None,
        scores={metric.name: _score(run, metric) for metric in chosen},
        curve=[CurvePoint(step=p.step, tokens=p.tokens, loss=p.loss) for p in run.curve],
        other=dict(evaluated.model_extra or {}),
        files={name: f"{run.folder}/{name}" for name in names if present[name] is not None},
    )


def _score(run: RunFiles, metric: Metric) -> RunScore:
    """Return the score of a finished run; of any other, null and what happened to it."""
    if not _finished(run):
        state = run.status.state if run.status else "not started"
        detail = f": {run.status.reason}" if run.status and run.status.reason else ""
        return RunScore(value=None, reason=f"the run is {state}{detail}")
    section = getattr(run.evaluations, metric.section, None)
    if section is None:
        return RunScore(value=None, reason=f"the evaluation '{metric.section}' has not run")
    content = section if isinstance(section, dict) else section.model_dump()
    value = content.get(metric.key)
    if value is None:
        reason = content.get("reason") or f"'{metric.section}' gave no {metric.key}"
        return RunScore(value=None, reason=str(reason))
    return RunScore(value=float(value))


def _scores(runs: list[RunResult], metric: str, files: StudyFiles) -> Scores:
    return {
        arm.name: {
            run.seed: run.scores[metric].value or 0.0
            for run in runs
            if run.arm == arm.name and run.scores[metric].value is not None
        }
        for arm in files.plan.arms
    }


def _arm(
    arm: PlannedArm, files: StudyFiles, runs: list[RunResult], chosen: list[Metric]
) -> ArmResult:
    mine = [run for run in files.runs if run.arm == arm.name]
    finished = [run for run in mine if _finished(run)]
    evaluated = [run.evaluations for run in finished if run.evaluations is not None]
    results = [run for run in runs if run.arm == arm.name]
    memory = files.speed.peak_memory_bytes if files.speed else {}
    return ArmResult(
        name=arm.name,
        is_baseline=arm.name == files.plan.baseline,
        description=arm.description,
        changes=arm.changes,
        contract=arm.contract,
        recipe_digest=arm.recipe_digest,
        runs_planned=len(mine),
        runs_finished=len(finished),
        scores={metric.name: _over_seeds(results, metric.name) for metric in chosen},
        curve=summaries.curve(finished),
        length=summaries.by_length(evaluated, train_length(files)),
        position=summaries.by_position(evaluated),
        speed=summaries.speed(arm.name, files.plan.baseline, files.speed),
        peak_memory_bytes=memory.get(arm.name),
        sizes=summaries.sizes(evaluated),
        inside=inside(
            _by_seed(files, arm.name),
            None if arm.name == files.plan.baseline else _by_seed(files, files.plan.baseline),
        ),
    )


def _by_seed(files: StudyFiles, arm: str) -> dict[int, Evaluations]:
    """Return the evaluations of an arm's finished runs."""
    mine = [run for run in files.runs if run.arm == arm and _finished(run)]
    return {run.seed: run.evaluations for run in mine if run.evaluations is not None}


def _over_seeds(runs: list[RunResult], metric: str) -> SeedSummary:
    values = {run.seed: run.scores[metric].value for run in runs}
    summary = summarize([value for value in values.values() if value is not None])
    if summary.n == 0:
        return SeedSummary(summary=summary, values=values, reason="no finished run has this score")
    reason = "one seed has no spread" if summary.n == 1 else None
    return SeedSummary(summary=summary, values=values, reason=reason)


def _study(files: StudyFiles, runs: list[RunResult]) -> StudyInfo:
    plan = files.plan
    return StudyInfo(
        name=plan.study,
        title=plan.title or None,
        question=plan.question or None,
        description=plan.description or None,
        notes=plan.notes or None,
        baseline=plan.baseline,
        primary=plan.primary,
        primary_contrasts=plan.primary_contrasts,
        varies=plan.varies,
        declared=plan.declared,
        compensations=plan.compensations,
        seeds=plan.seeds,
        runs_planned=len(runs),
        runs_finished=sum(run.state == "finished" for run in runs),
        train_length=train_length(files),
        complete=all(run.state in ENDED for run in runs),
    )


def train_length(files: StudyFiles) -> int | None:
    """Return the sequence length in training, from the first recipe that says it."""
    for run in files.runs:
        length = ((run.recipe or {}).get("data") or {}).get("max_length")
        if isinstance(length, int):
            return length
    return None


def _baseline_recipe(files: StudyFiles) -> dict[str, Any] | None:
    recipes = [run for run in files.runs if run.recipe is not None]
    recipes.sort(key=lambda run: run.arm != files.plan.baseline)
    return recipes[0].recipe if recipes else None


def _metric_info(metric: Metric, primary: Metric) -> MetricInfo:
    return MetricInfo(
        name=metric.name,
        label=metric.label,
        unit=metric.unit,
        unit_of_difference=metric.unit_of_difference,
        better=metric.better,
        primary=metric == primary,
        digits=metric.digits,
        factor=metric.factor,
    )


def _speed(files: StudyFiles) -> SpeedInfo | None:
    if files.speed is None or not files.speed.rounds:
        return None
    return SpeedInfo(
        conditions=files.speed.conditions,
        rounds=len({item.round for item in files.speed.rounds}),
        refused=files.speed.refused,
        file="speed.json",
    )


def _tuning(out: Path) -> TuningInfo | None:
    path = out / "tuning.json"
    if not path.is_file():
        return None
    found: TuningInfo = read_json(path, TuningInfo)
    return found


def _notes(files: StudyFiles) -> list[str]:
    notes = []
    for run in files.runs:
        if run.status and run.status.resumed:
            notes.append(f"{run.folder} was continued {run.status.resumed} times after a stop")
        if _finished(run) and run.evaluations is None:
            notes.append(f"{run.folder} is finished and not yet evaluated")
    if files.speed is None:
        notes.append("speed was not measured, or not yet: there is no speed.json")
    return notes


def _version() -> str:
    try:
        return version("posattn")
    except PackageNotFoundError:
        return "not installed as a package"
