"""The answer of a suite in plain sentences: predictions first, then differences, averages, gaps."""

from posattn.comparison import wording
from posattn.comparison.results_schema import Statement
from posattn.comparison.suite.schema import Interval, SuiteResults, TaskContrast, TaskPrediction

OUTCOMES = ("held", "mixed", "broken", "not tested")


def suite_answer(results: SuiteResults) -> list[Statement]:
    """Return what the report opens with, the counts of predictions or differences first."""
    statements = [_headline(results), *_broken_predictions(results), *_differences(results)]
    statements += [*_aggregate(results), *_unfinished(results), *_trust(results)]
    return statements


def prediction_counts(predictions: list[TaskPrediction]) -> dict[str, int]:
    """Return how many predictions had each outcome."""
    return {word: sum(item.verdict == word for item in predictions) for word in OUTCOMES}


def told_apart(results: SuiteResults) -> list[TaskContrast]:
    """Return the differences that hold after correction over all arms and tasks."""
    return [c for c in results.contrasts if c.judgement.verdict in ("better", "worse")]


def _headline(results: SuiteResults) -> Statement:
    suite, predictions = results.suite, results.predictions
    if predictions:
        counts = prediction_counts(predictions)
        others = [f"{counts[word]} {word}" for word in OUTCOMES[1:] if counts[word]]
        text = f"{counts['held']} of {len(predictions)} predictions held"
        text += f" ({', '.join(others)})." if others else "."
        return Statement(heading="Predictions", text=text)
    tasks = {contrast.task for contrast in told_apart(results)}
    text = (
        f"In {len(tasks)} of {wording.plural(suite.tasks_planned, 'task')} at least one arm differs "
        f"from the baseline {suite.baseline}, corrected over all arms and tasks."
    )
    return Statement(heading="Answer", text=text)


def _broken_predictions(results: SuiteResults) -> list[Statement]:
    statements = []
    for verdict, heading in (("broken", "Broken predictions"), ("mixed", "Mixed predictions")):
        found = [item for item in results.predictions if item.verdict == verdict]
        items = [
            f"{item.task}, {item.arm}: {bounds_in_words(item)} predicted, {item.in_range} of "
            f"{wording.plural(item.n, 'seed')} within"
            for item in found
        ]
        if items:
            statements.append(Statement(heading=heading, items=items))
    return statements


def bounds_in_words(item: TaskPrediction) -> str:
    """Return what was predicted of a score, such as `accuracy at 4x \u2265 0.95`."""
    bounds = []
    if item.at_least is not None:
        bounds.append(f"\u2265 {item.at_least:g}")
    if item.at_most is not None:
        bounds.append(f"\u2264 {item.at_most:.2f}")
    score = item.score.removeprefix("validation_").replace("_", " ")
    return f"{score} {' and '.join(bounds) or 'without a bound'}"


def _differences(results: SuiteResults) -> list[Statement]:
    found = told_apart(results)
    if not results.contrasts:
        return []
    tested = [c for c in results.contrasts if c.judgement.verdict != "not tested"]
    text = (
        f"{len(found)} of {wording.plural(len(results.contrasts), 'difference')} from "
        f"{results.suite.baseline} are told apart after Holm's correction over all arms and tasks "
        f"({len(tested)} could be tested)."
    )
    return [Statement(heading=f"Against {results.suite.baseline}", text=text)]


def _aggregate(results: SuiteResults) -> list[Statement]:
    found = results.aggregate
    if found.reason:
        return [Statement(heading="Over all tasks", text=f"{_capital(found.reason)}.")]
    items = [f"{arm.name}: {percent(arm.iqm)}" for arm in found.arms if arm.iqm is not None]
    text = (
        f"Interquartile mean of accuracy, %, over {len(found.tasks)} tasks and all their seeds, with a "
        "95 % bootstrap interval over seeds. Arms are in the order of the study."
    )
    return [Statement(heading="Over all tasks", text=text, items=items)]


def percent(found: Interval | None) -> str:
    """Return a share and its interval in %, without the unit; a dash where there is none."""
    if found is None:
        return wording.NONE
    value = f"{100 * found.value:.1f}"
    if found.low is None or found.high is None:
        return value
    return f"{value} [{100 * found.low:.1f}, {100 * found.high:.1f}]"


def _unfinished(results: SuiteResults) -> list[Statement]:
    items = []
    for task in results.tasks:
        parts = [f"control is broken: {rule}" for rule in task.broken]
        if task.state != "complete" or task.runs_finished < task.runs_planned:
            done = f"{task.runs_finished} of {wording.plural(task.runs_planned, 'run')} finished"
            parts.append("not started" if task.state == "not started" else done)
        if parts:
            items.append(f"{task.name}: {'; '.join(parts)}")
    if not items:
        return []
    return [Statement(heading="Tasks that are not whole", items=items)]


def _trust(results: SuiteResults) -> list[Statement]:
    numbers = [c.difference.n for c in results.contrasts if c.difference.n]
    if not numbers:
        return []
    least, most = min(numbers), max(numbers)
    seeds = str(least) if least == most else f"{least} to {most}"
    text = (
        f"{seeds} seeds per arm and task. A run of a task that is solved or not is counted, not "
        "averaged: see the share of seeds that solved it. What this cannot show is listed below."
    )
    return [Statement(heading="How far to trust this", text=text)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
