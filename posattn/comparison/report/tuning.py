"""The section on tuning: what was chosen for each arm, every trial, and what the search cost."""

from posattn.comparison import wording
from posattn.comparison.metrics import metrics
from posattn.comparison.report.tuning_figures import figure_name
from posattn.comparison.results_schema import Results
from posattn.comparison.tuning.schema import ArmTuning, Trial, TuningInfo
from posattn.figures import Figure
from posattn.figures.blocks import Block, Picture, Section, Table, Text, numbers, words


def tuning_sections(results: Results, figures: dict[str, Figure]) -> list[Section]:
    """Return the section on tuning, if the study was tuned."""
    tuning = results.tuning
    if tuning is None:
        return []
    names = [figure_name(path) for path in tuning.grid]
    blocks: list[Block] = [
        _intro(results, tuning),
        _chosen(tuning),
        *(Picture(figures[name]) for name in names if name in figures),
        _all_trials(tuning),
        *_expected(tuning),
    ]
    return [Section("tuning", "Tuning", blocks)]


def _intro(results: Results, tuning: TuningInfo) -> Text:
    runs = [run for arm in tuning.arms for trial in arm.trials for run in trial.runs]
    reported = sum(run.seconds or 0.0 for run in results.runs)
    steps = f" of {wording.count(tuning.steps)} steps" if tuning.steps else ""
    per_trial = tuning.seconds / max(1, len(runs))
    return Text(
        f"Every arm had the same grid: {wording.plural(tuning.trials_per_arm, 'trial')}{steps}, each "
        f"with the tuning {_seeds(tuning.seeds)}; results are reported for the "
        f"{_seeds(results.study.seeds)}. The best mean {tuning.select_by} ({tuning.better} is better) "
        "on the validation split decides; a trial with a run that did not finish is never chosen. "
        f"Cost, failed runs too: {wording.plural(len(runs), 'trial run')} trained for "
        f"{wording.count(tuning.seconds)} seconds ({wording.number(per_trial, 1)} each), the runs "
        f"reported for {wording.count(reported)}, together "
        f"{wording.count(tuning.seconds + reported)}. The trials are a study of their own, with its "
        f"report, in the folder {tuning.folder}."
    )


def _seeds(seeds: list[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {wording.listed([str(s) for s in seeds])}"


def _chosen(tuning: TuningInfo) -> Table:
    paths = list(tuning.grid)
    rows = []
    for arm in tuning.arms:
        best = arm.trials[arm.chosen - 1]
        values = [str(arm.values[path]) for path in paths]
        row = [arm.arm, *values, _score(tuning, best.mean), _outcome(arm)]
        rows.append([*row, f"{len(arm.failed)} of {len(arm.trials)}"])
    marked = {i: "bad" for i, arm in enumerate(tuning.arms) if not arm.tuned}
    note = "A value at the edge of its grid: the best may lie outside. Widen the grid for all arms."
    columns = [*words("arm"), *numbers(*paths, tuning.select_by)]
    return Table(
        "Chosen for each arm",
        [*columns, *words("outcome"), *numbers("trials failed")],
        rows,
        note if marked else "",
        marked=marked,
    )


def _outcome(arm: ArmTuning) -> str:
    if arm.tuned:
        return "tuned"
    return "not tuned: " + ", ".join(f"{path} at its {end}" for path, end in arm.edges.items())


def _all_trials(tuning: TuningInfo) -> Table:
    rows = [
        [arm.arm, *_trial_cells(tuning, trial), "chosen" if trial.number == arm.chosen else ""]
        for arm in tuning.arms
        for trial in arm.trials
    ]
    seeds = [f"seed {seed}" for seed in tuning.seeds]
    title = f"Every trial ({len(rows)})"
    columns = [*words("arm"), *numbers("trial", *tuning.grid, *seeds, "mean", "seconds")]
    return Table(title, [*columns, *words("")], rows, folded=title)


def _trial_cells(tuning: TuningInfo, trial: Trial) -> list[str]:
    values = [str(trial.values[path]) for path in tuning.grid]
    by_seed = {run.seed: run for run in trial.runs}
    scores = []
    for seed in tuning.seeds:
        run = by_seed.get(seed)
        known = run is not None and run.score is not None
        scores.append(_score(tuning, run.score) if run and known else run.state if run else "")
    mean = _score(tuning, trial.mean) if trial.mean is not None else trial.state
    seconds = sum(run.seconds or 0.0 for run in trial.runs)
    return [str(trial.number), *values, *scores, mean, wording.number(seconds, 0)]


def _expected(tuning: TuningInfo) -> list[Block]:
    most = max(len(arm.expected) for arm in tuning.arms)
    if most < 2:
        return []
    rows = [
        [arm.arm, *(_score(tuning, v) for v in arm.expected), *[""] * (most - len(arm.expected))]
        for arm in tuning.arms
    ]
    note = (
        "The best score to be expected of so many trials, drawn with replacement from those that "
        "finished (Dodge et al. 2019): how much an arm owes to the size of the search."
    )
    title = f"Expected best {tuning.select_by} by number of trials"
    columns = [*words("arm"), *numbers(*(str(n) for n in range(1, most + 1)))]
    return [Table(title, columns, rows, note, folded=title)]


def _score(tuning: TuningInfo, value: float | None) -> str:
    metric = metrics.get(tuning.select_by)
    return wording.number(None if value is None else value * metric.factor, metric.digits + 1)
