"""What a suite cannot show, said from its own numbers."""

from posattn.comparison import wording
from posattn.comparison.statistics import smallest_sign_flip_p
from posattn.comparison.suite.schema import SuiteResults


def suite_limits(results: SuiteResults) -> list[str]:
    """Return one sentence or two per limit, the weightiest first."""
    found = [
        _unfinished(results),
        _tasks(results),
        _seeds(results),
        _family(results),
        _average(results),
        _predictions(results),
        "Each task's own report says how large its models are, how long they were trained, and "
        "what was not tuned; those limits hold here too.",
    ]
    return [sentence for sentence in found if sentence]


def _unfinished(results: SuiteResults) -> str:
    suite = results.suite
    missing = suite.runs_planned - suite.runs_finished
    if not missing and results.complete:
        return ""
    return (
        f"Unfinished: {wording.plural(missing, 'run')} of {suite.runs_planned} planned did not "
        "finish and have no score; what stands here is about the others."
    )


def _tasks(results: SuiteResults) -> str:
    count = wording.plural(results.suite.tasks_planned, "task")
    return (
        f"Tasks: the {count} were chosen, not drawn at random. Intervals are over seeds; another "
        "choice of tasks can order the arms differently."
    )


def _seeds(results: SuiteResults) -> str:
    numbers = [len(task.seeds) for task in results.tasks if task.seeds]
    if not numbers:
        return ""
    least = min(numbers)
    return (
        f"Seeds: {least} in the task with the fewest. There the exact sign-flip test cannot go below "
        f"p = {smallest_sign_flip_p(least):.2g}; verdicts rest on t intervals, which assume normal "
        "differences, and accuracies near 0 or 100 % are not normal."
    )


def _family(results: SuiteResults) -> str:
    sizes = [c.judgement.family_size for c in results.contrasts]
    if not sizes or not max(sizes):
        return ""
    return (
        f"Correction: {max(sizes)} differences were tested as one family, so each needs a smaller p "
        "than in the report of its own task. A difference that is told apart there and not here is "
        "open, not refuted."
    )


def _average(results: SuiteResults) -> str:
    found = results.aggregate
    if not found.tasks:
        return ""
    chances = {task.name: task.probe.chance for task in results.tasks if task.probe}
    known = {chances[name] for name in found.tasks if name in chances}
    text = "Averages: accuracies are averaged as they are"
    if len(known) > 1:
        text += f", though guessing gives from {100 * min(known):.0f} to {100 * max(known):.0f} %"
    text += ". An average hides which task an arm fails; the table by task shows it."
    without = [arm.name for arm in found.arms if arm.iqm is None]
    if without:
        text += f" {wording.listed(without)} lack a task and are not averaged."
    return text


def _predictions(results: SuiteResults) -> str:
    if not results.predictions:
        return ""
    return (
        "Predictions say what an architecture can express. One that is broken upwards was wrong; one "
        "that is broken downwards may also mean that training was too short to learn it."
    )
