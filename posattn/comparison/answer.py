"""The answer of a study in plain sentences, no stronger than its corrected intervals."""

from posattn.comparison import wording
from posattn.comparison.results_schema import Contrast, Results, Statement
from posattn.comparison.statistics import smallest_sign_flip_p

CLAIM_SEEDS = 6


def answer(results: Results) -> list[Statement]:
    """Return what the report opens with: differences, ties, failures, and how far to trust them."""
    statements = [_headline(results)]
    contrasts = results.family("baseline")
    for verdict, heading in (("better", "Better than"), ("worse", "Worse than")):
        found = _with_verdict(contrasts, verdict)
        if found:
            title = f"{heading} {results.study.baseline}"
            statements.append(Statement(heading=title, text=_differences(results, found)))
    statements += _ties(results, contrasts) + _not_compared(contrasts) + _groups(results)
    return statements + _failures(results) + _seeds(results) + _scale(results)


def _headline(results: Results) -> Statement:
    metric, baseline = results.primary, results.baseline
    contrasts = results.family("baseline")
    measured = f"{metric.label} ({metric.unit}, {metric.better} is better)"
    if len(results.arms) == 1:
        summary = baseline.scores[metric.name].summary
        value = wording.mean_and_sd(metric, summary)
        text = f"{baseline.name}: {measured} {value}, n = {summary.n}. There is nothing to compare."
        return Statement(heading="One arm", text=text)
    tested = [c for c in contrasts if _verdict(c) != "not tested"]
    if not tested:
        text = (
            f"No arm can be told apart from the baseline {baseline.name} by {measured}: "
            "a test needs at least two finished seeds in both arms."
        )
        return Statement(heading="No verdict", text=text)
    better, worse = (len(_with_verdict(contrasts, v)) for v in ("better", "worse"))
    tied = len(tested) - better - worse
    counted = [f"{better} better" * bool(better), f"{worse} worse" * bool(worse)]
    shown = wording.listed([part for part in counted if part])
    differing = f"{better + worse} of {wording.plural(len(contrasts), 'arm')}"
    verb = "differs" if better + worse == 1 else "differ"
    text = f"By {measured}, {differing} {verb} from the baseline {baseline.name}"
    text += f" ({shown})" if shown else ""
    text += f"; {tied} cannot be told apart from it." if tied else "."
    return Statement(heading="Answer", text=text)


def _differences(results: Results, contrasts: list[Contrast]) -> str:
    metric = results.primary
    parts = [f"{c.first} {_effect(results, c)}" for c in contrasts]
    unit = f"Differences in {metric.unit_of_difference}, 95 % paired intervals over seeds: "
    return unit + "; ".join(parts) + "."


def _effect(results: Results, contrast: Contrast) -> str:
    metric, found = results.primary, contrast.difference
    interval = wording.interval(metric, found.low, found.high)
    return f"{wording.difference(metric, found.mean)} {interval}, n = {found.n}"


def _ties(results: Results, contrasts: list[Contrast]) -> list[Statement]:
    found = _with_verdict(contrasts, "indistinguishable")
    if not found:
        return []
    metric = results.primary
    smallest = [
        c.judgement.smallest_detectable
        for c in found
        if c.judgement and c.judgement.smallest_detectable is not None
    ]
    text = _differences(results, found)
    if smallest:
        size = wording.score(metric, max(smallest))
        text += (
            f" That is no proof of equality: differences below {size} {metric.unit_of_difference} "
            "could not be seen reliably here (80 % power)."
        )
    title = f"Cannot be told apart from {results.study.baseline}"
    return [Statement(heading=title, text=text)]


def _not_compared(contrasts: list[Contrast]) -> list[Statement]:
    found = _with_verdict(contrasts, "not tested")
    if not found:
        return []
    parts = [f"{c.first} ({c.difference.reason})" for c in found]
    return [Statement(heading="Could not be compared", text="; ".join(parts) + ".")]


def _groups(results: Results) -> list[Statement]:
    shared = [group for group in results.groups if len(group) > 1]
    alone = [group[0] for group in results.groups if len(group) == 1]
    if len(results.groups) == 0 or len(results.arms) == 2:
        return []
    if not shared:
        text = "Every pair of arms is told apart by its corrected interval."
    elif len(results.groups) == 1:
        text = f"No pair among {wording.listed(shared[0])} can be told apart."
    else:
        text = "Not told apart from each other: "
        text += "; ".join(wording.listed(group) for group in shared) + "."
        if alone:
            verb = "differs" if len(alone) == 1 else "differ"
            text += f" {wording.listed(alone)} {verb} from every arm tested."
        text += " The order within and among groups means nothing."
    return [Statement(heading="Among all arms", text=text)]


def _failures(results: Results) -> list[Statement]:
    missing = [run for run in results.runs if run.state != "finished"]
    if not missing:
        return []
    parts = []
    for run in missing:
        reason = f" ({run.reason})" if run.reason else ""
        parts.append(f"{run.arm} with seed {run.seed} {_state(run.state)}{reason}")
    total = wording.plural(len(results.runs), "run")
    heading = f"{len(missing)} of {total} did not finish"
    return [
        Statement(heading=heading, text="; ".join(parts) + ". These runs count in every table.")
    ]


def _state(state: str) -> str:
    return {"running": "is running or was killed", "not started": "was not started"}.get(
        state, f"is {state}" if state == "interrupted" else state
    )


def _seeds(results: Results) -> list[Statement]:
    numbers = [c.difference.n for c in results.family("baseline") if c.difference.n]
    if not numbers:
        return []
    most = max(numbers)
    if most == 1:
        text = (
            "One seed: no interval and no test is possible. The numbers are those of single runs, and "
            "another seed may turn any difference round."
        )
        return [Statement(heading="How far to trust this", text=text)]
    least = smallest_sign_flip_p(most)
    plain = f"With {most} paired seeds the exact sign-flip test cannot go below p = {least:.2g}"
    if most < CLAIM_SEEDS:
        text = (
            f"{plain}: too few for significance without an assumption. The verdicts rest on t "
            "intervals, which assume that differences between seeds are normal. Read this as a screen; "
            f"a claim needs {CLAIM_SEEDS} paired seeds or more (p can then reach 0.031)."
        )
    else:
        text = (
            f"{plain}. The verdicts rest on t intervals, which assume that differences between seeds "
            "are normal; the exact p stands beside them."
        )
    return [Statement(heading="How far to trust this", text=text)]


def _scale(results: Results) -> list[Statement]:
    tokens = [run.tokens for run in results.runs if run.state == "finished"]
    if not tokens:
        return []
    parts = [f"{wording.large(max(tokens))} tokens per run"]
    counts = [a.sizes.parameters for a in results.arms if a.sizes.parameters is not None]
    if counts:
        small, big = wording.large(min(counts)), wording.large(max(counts))
        parts.append(f"{small} parameters" if small == big else f"{small} to {big} parameters")
    text = (
        f"{wording.listed(parts)}: early training of small models. What follows from that is below."
    )
    if max(tokens) >= 1e9:
        text = f"{wording.listed(parts)}. What this cannot show is below."
    return [Statement(heading="Scale", text=text)]


def _verdict(contrast: Contrast) -> str:
    return contrast.judgement.verdict if contrast.judgement else "not tested"


def _with_verdict(contrasts: list[Contrast], verdict: str) -> list[Contrast]:
    return [contrast for contrast in contrasts if _verdict(contrast) == verdict]
