"""The sections of a suite's report."""

from urllib.parse import quote

from posattn.comparison import wording
from posattn.comparison.report.links import arm_page, slug
from posattn.comparison.results_schema import MetricInfo
from posattn.comparison.suite.answer import OUTCOMES, bounds_in_words, percent, prediction_counts
from posattn.comparison.suite.schema import (
    SuiteResults,
    TaskArm,
    TaskContrast,
    TaskPrediction,
    TaskResult,
)
from posattn.figures import Figure
from posattn.figures.blocks import (
    Block,
    Bullets,
    Code,
    Picture,
    Section,
    Table,
    Text,
    numbers,
    words,
)

Figures = dict[str, Figure]


def suite_sections(results: SuiteResults, figures: Figures, folder: str) -> list[Section]:
    """Return the sections that have content; `folder` is named in the commands."""
    sections = [
        Section("predictions", "Predictions", _predictions(results)),
        Section("scores", "Scores by task", _scores(results, figures)),
        Section("solved", "Share of seeds that solved a task", _solved(results)),
        Section("differences", "Differences by task", _differences(results)),
        Section("together", "Over all tasks", _together(results, figures)),
        Section("tasks", "Tasks", _tasks(results)),
        Section("limits", "What this suite cannot show", [Bullets(results.limits)]),
        Section("reproduce", "How to reproduce this", _reproduce(folder)),
    ]
    return [section for section in sections if section.blocks]


def _predictions(results: SuiteResults) -> list[Block]:
    found = results.predictions
    if not found:
        return []
    tasks = list(dict.fromkeys(item.task for item in found))
    counts = {task: prediction_counts([p for p in found if p.task == task]) for task in tasks}
    rows = [[task, *(str(counts[task][word]) for word in OUTCOMES)] for task in tasks]
    total = prediction_counts(found)
    rows.append(["all", *(str(total[word]) for word in OUTCOMES)])
    by_task = Table(
        "Predictions by task",
        [*words("task"), *numbers(*OUTCOMES)],
        rows,
        name="predictions-by-task",
        links=_links(results, tasks),
    )
    note = (
        "Each prediction was written down before the first step. Held: every finished seed is within "
        "the bounds; broken: none is; mixed: some are; not tested: no finished seed."
    )
    every = Table(
        "Prediction from the maths and what the seeds showed",
        [
            *words("task", "arm", "predicted", "by seed"),
            *numbers("seeds within"),
            *words("verdict", "because"),
        ],
        [_prediction_row(item) for item in found],
        note,
        marked={n: "bad" for n, item in enumerate(found) if item.verdict == "broken"},
        name="predictions",
        links=_links(results, [item.task for item in found], "#scores"),
    )
    return [Text(results.answer[0].text), by_task, every]


def _prediction_row(item: TaskPrediction) -> list[str]:
    values = ", ".join(wording.number(value, 3) for value in item.values.values())
    within = f"{item.in_range} of {item.n}" if item.n else wording.NONE
    by_seed = values or wording.NONE
    return [item.task, item.arm, bounds_in_words(item), by_seed, within, item.verdict, item.because]


def _scores(results: SuiteResults, figures: Figures) -> list[Block]:
    arms = results.suite.arms
    rows = [_score_row(task, arms) for task in results.tasks]
    note = (
        "Mean \u00b1 sample standard deviation over the finished seeds, with their number; each row in "
        "the unit of its own score. A run that did not finish has no score and is counted: 4 of 5."
    )
    caption = "Primary score by task and arm"
    columns = [*words("task", "score"), *numbers("chance", *arms)]
    links = _links(results, [task.name for task in results.tasks])
    table = Table(caption, columns, rows, note, name="scores", links=links)
    return [*_pictures(figures, "accuracies"), table]


def _links(results: SuiteResults, rows: list[str], place: str = "") -> dict[tuple[int, int], str]:
    """Return the targets of a table with a task's name at the head of each row."""
    begun = {task.name: task for task in results.tasks if task.arms}
    return {
        (number, 0): f"{report_of(begun[name])}{place}"
        for number, name in enumerate(rows)
        if name in begun
    }


def report_of(task: TaskResult) -> str:
    """Return where the report of a task lies, seen from the suite's folder."""
    return f"{quote(task.folder)}/report.html"


def _pictures(figures: Figures, *names: str) -> list[Block]:
    return [Picture(figures[name], "figures") for name in names if name in figures]


def _score_row(task: TaskResult, arms: list[str]) -> list[str]:
    metric = task.metric
    if metric is None:
        return [task.name, task.state, wording.NONE, *[wording.NONE] * len(arms)]
    chance = wording.score(metric, task.probe.chance) if task.probe else wording.NONE
    found = {arm.name: arm for arm in task.arms}
    cells = [_score_cell(metric, found.get(name), name in task.left_out) for name in arms]
    return [task.name, f"{metric.label}, {metric.unit}", chance, *cells]


def _score_cell(metric: MetricInfo, arm: TaskArm | None, left_out: bool) -> str:
    if arm is None:
        return "left out" if left_out else wording.NONE
    planned = len(arm.values)
    seeds = f"{arm.summary.n}" if arm.summary.n == planned else f"{arm.summary.n} of {planned}"
    if arm.summary.mean is None:
        return f"{wording.NONE} ({seeds})"
    return f"{wording.mean_and_sd(metric, arm.summary)} ({seeds})"


def _solved(results: SuiteResults) -> list[Block]:
    tasks = [task for task in results.tasks if task.probe is not None]
    if not tasks:
        return []
    arms = results.suite.arms
    rows = [_solved_row(task, arms) for task in tasks]
    note = (
        "A run counts as solved from the threshold on; one that did not finish has no score. In "
        "brackets the exact 95 % interval (Clopper and Pearson) of the share, in %: it is wide, because "
        "seeds are few. An accuracy that is either near chance or near 100 % is told by this share, not "
        "by its mean."
    )
    caption = "Seeds that solved the task, of those with a score"
    columns = [*words("task"), *numbers("solved from", *arms)]
    links = _links(results, [task.name for task in tasks], "#scores")
    return [Table(caption, columns, rows, note, name="solved", links=links)]


def _solved_row(task: TaskResult, arms: list[str]) -> list[str]:
    assert task.probe is not None
    assert task.metric is not None
    found = {arm.name: arm for arm in task.arms}
    cells = []
    for name in arms:
        arm = found.get(name)
        if arm is None or arm.solved is None:
            cells.append("left out" if name in task.left_out else wording.NONE)
            continue
        solved = arm.solved
        low, high = 100 * solved.low, 100 * solved.high
        lost = f", {solved.runs - solved.n} without a score" if solved.runs > solved.n else ""
        cells.append(f"{solved.solved} of {solved.n} [{low:.0f}, {high:.0f}]{lost}")
    return [task.name, wording.score(task.metric, task.probe.solved), *cells]


def _differences(results: SuiteResults) -> list[Block]:
    if not results.contrasts:
        return []
    blocks: list[Block] = []
    size = max(c.judgement.family_size for c in results.contrasts)
    note = (
        f"Paired over seeds. Verdicts and the corrected interval come from paired t tests, corrected by "
        f"Holm's method over all {wording.plural(size, 'difference')} of all tasks that could be tested."
    )
    for task in results.tasks:
        mine = [c for c in results.contrasts if c.task == task.name]
        if mine and task.metric is not None:
            blocks.append(_contrast_table(task, task.metric, mine, note if not blocks else ""))
    return blocks


def _contrast_table(
    task: TaskResult, metric: MetricInfo, contrasts: list[TaskContrast], note: str
) -> Table:
    caption = (
        f"{task.name}: difference from {contrasts[0].second} in {metric.label}, "
        f"{metric.unit_of_difference} ({metric.better} is better)"
    )
    titles = ("n", "difference", "95 % interval", "corrected interval", "Holm p", "exact p (least)")
    rows = [_contrast_row(metric, contrast) for contrast in contrasts]
    columns = [*words("arm", "verdict"), *numbers(*titles)]
    pages = {
        (number, 0): f"{quote(task.folder)}/{arm_page(contrast.first)}"
        for number, contrast in enumerate(contrasts)
    }
    name = f"differences-{slug(task.name)}"
    return Table(caption, columns, rows, note, name=name, links=pages)


def _contrast_row(metric: MetricInfo, contrast: TaskContrast) -> list[str]:
    found, judged = contrast.difference, contrast.judgement
    exact = wording.NONE
    if found.p_exact is not None:
        exact = f"{wording.p_value(found.p_exact)} ({wording.p_value(found.smallest_p)})"
    verdict: str = judged.verdict
    if verdict == "not tested" and found.reason:
        verdict = f"not tested: {found.reason}"
    return [
        contrast.first,
        verdict,
        str(found.n),
        wording.difference(metric, found.mean),
        wording.interval(metric, found.low, found.high),
        wording.interval(metric, judged.corrected_low, judged.corrected_high),
        wording.p_value(judged.p_holm),
        exact,
    ]


def _together(results: SuiteResults, figures: Figures) -> list[Block]:
    found = results.aggregate
    if found.reason:
        return [Text(f"{found.reason[:1].upper()}{found.reason[1:]}.")]
    rows = []
    for arm in found.arms:
        cells = [percent(arm.iqm), percent(arm.improvement)]
        planned = arm.runs + arm.unfinished
        runs = f"{arm.runs} of {planned}" if arm.unfinished else str(arm.runs)
        rows.append([arm.name, runs, *cells, arm.reason or ""])
    left_out = [f"{task} is not averaged: {reason}" for task, reason in found.left_out.items()]
    note = (
        f"Over {len(found.tasks)} tasks: {wording.listed(found.tasks)}. In brackets 95 % intervals from "
        f"{found.resamples} bootstrap resamples of the runs within each task (tasks are held). Runs that "
        "did not finish have no accuracy and are not averaged. Not corrected and not tested."
    )
    table = Table(
        "Accuracy over all tasks",
        [
            *words("arm"),
            *numbers("runs", "interquartile mean, %", "probability of improvement, %"),
            *words("note"),
        ],
        rows,
        note,
        name="together",
    )
    blocks = [*_pictures(figures, "averages", "improvements", "profiles"), table]
    return [*blocks, Bullets(left_out)] if left_out else blocks


def _tasks(results: SuiteResults) -> list[Block]:
    rows = []
    for task in results.tasks:
        left_out = "; ".join(f"{arm}: {reason}" for arm, reason in task.left_out.items())
        control = "; ".join(task.broken) or ("held" if task.arms else wording.NONE)
        finished = f"{task.runs_finished} of {task.runs_planned}"
        about = task.question or task.title or ""
        row = [task.name, about, task.state, finished, task.reason or "", control, left_out]
        rows.append(row)
    titles = ("question", "state", "runs finished", "what did not finish", "rules of control")
    table = Table(
        "Every task, with what is missing",
        words("task", *titles, "arms left out, and why"),
        rows,
        "Each task is a study of its own; its report has curves, control, costs and recipes.",
        marked={n: "bad" for n, task in enumerate(results.tasks) if task.broken},
        name="tasks",
        links=_links(results, [task.name for task in results.tasks]),
    )
    return [table]


def _reproduce(folder: str) -> list[Block]:
    return [
        Text(
            "study.yaml in this folder is the suite with all recipes resolved. The first command runs it "
            "again into a new folder; on the same folder it goes on with what is unfinished. The second "
            "draws these reports anew."
        ),
        Code(
            [
                f"posattn compare {folder}/study.yaml --out {folder}-again",
                f"posattn report {folder}",
            ]
        ),
        Bullets(
            [
                "suite.json: every number of this page (schema posattn-suite/1)",
                "figures/*.csv and figures/*.svg: data and picture of each figure",
                "tasks/TASK/: the study of each task, with its report.html and results.json",
            ]
        ),
    ]
