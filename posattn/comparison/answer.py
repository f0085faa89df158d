"""The answer of a study in plain sentences, no stronger than its corrected intervals."""

from posattn.comparison import wording
from posattn.comparison.answer_named import gate_words, named_statements, verdict
from posattn.comparison.design_answer import confounded, design_statements, mixed
from posattn.comparison.results_schema import Contrast, Results, Statement
from posattn.comparison.statistics import ALPHA, smallest_sign_flip_p
from posattn.comparison.tuning_answer import tuning_statements

CLAIM_SEEDS = 6
MOST_RUNS = 6
EARLY = 1e9


def answer(results: Results) -> list[Statement]:
    """Return what the report opens with: differences, ties, failures, and how far to trust them."""
    contrasts = [c for c in results.family("baseline") if not c.named]
    statements = [*confounded(results), *named_statements(results)]
    designed = [*mixed(results), *design_statements(results)]
    if contrasts or not results.named:
        verdicts = [*_told_apart(results, contrasts), *_ties(results, contrasts)]
        if verdicts:
            verdicts[0] = verdicts[0].model_copy(update={"text": _key(results) + verdicts[0].text})
        statements += [_headline(results, contrasts), *designed, *verdicts]
        statements += _not_compared(contrasts)
    else:
        statements += designed
    statements += [*_groups(results), *tuning_statements(results)]
    return statements + _failures(results) + _seeds(results) + _scale(results)


def _key(results: Results) -> str:
    unit = results.primary.unit_of_difference
    return f"Mean difference in {unit} [95 % interval, paired over seeds], n seeds. "


def _told_apart(results: Results, contrasts: list[Contrast]) -> list[Statement]:
    statements = []
    for wanted, heading in (("better", "Better than"), ("worse", "Worse than")):
        found = _with_verdict(contrasts, wanted)
        if found:
            title = f"{heading} {results.study.baseline}"
            items = [_effect(results, contrast) for contrast in found]
            statements.append(Statement(heading=title, items=items))
    return statements


def _headline(results: Results, contrasts: list[Contrast]) -> Statement:
    metric, baseline = results.primary, results.baseline
    heading, other = ("Beside them", "other ") if results.named else ("Answer", "")
    measured = f"{metric.label} ({metric.unit}, {metric.better} is better)"
    if len(results.arms) == 1:
        summary = baseline.scores[metric.name].summary
        value = wording.mean_and_sd(metric, summary)
        text = f"{baseline.name}: {measured} {value}, n = {summary.n}. There is nothing to compare."
        return Statement(heading="One arm", text=text)
    tested = [c for c in contrasts if verdict(c) != "not tested"]
    if not tested:
        text = (
            f"No {other}arm can be told apart from the baseline {baseline.name} by {measured}: "
            "a test needs at least two finished seeds in both arms."
        )
        return Statement(heading="No verdict", text=text)
    better, worse = (len(_with_verdict(contrasts, v)) for v in ("better", "worse"))
    if better + worse == 0:
        which = "" if len(tested) == len(contrasts) else " that could be tested"
        whom = f"no {other}arm{which}"
        text = f"By {measured}, {whom} can be told apart from the baseline {baseline.name}."
        return Statement(heading=heading, text=text)
    tied = len(tested) - better - worse
    counted = [f"{better} better" * bool(better), f"{worse} worse" * bool(worse)]
    shown = wording.listed([part for part in counted if part])
    differing = f"{better + worse} of {wording.plural(len(contrasts), f'{other}arm')}"
    verb = "differs" if better + worse == 1 else "differ"
    text = f"By {measured}, {differing} {verb} from the baseline {baseline.name}"
    text += f" ({shown})" if shown else ""
    text += f"; {tied} cannot be told apart from it." if tied else "."
    return Statement(heading=heading, text=text)


def _effect(results: Results, contrast: Contrast) -> str:
    metric, found = results.primary, contrast.difference
    interval = wording.interval(metric, found.low, found.high)
    difference = wording.difference(metric, found.mean)
    return f"{contrast.first}: {difference} {interval}, n = {found.n}"


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
    text = ""
    if smallest:
        size = wording.score(metric, max(smallest))
        text = f"No proof of equality: here a difference below {size} is likely to stay unseen."
    if results.named:
        text += f" They are of the second family, {gate_words(results)}."
    text = (text + alone_only(found, _family_size(found, contrasts))).strip()
    title = f"Cannot be told apart from {results.study.baseline}"
    items = [_effect(results, contrast) for contrast in found]
    return [Statement(heading=title, text=text, items=items)]


def _family_size(found: list[Contrast], contrasts: list[Contrast]) -> int:
    """Return how many comparisons these ties were corrected for."""
    sizes = [c.judgement.family_size for c in found if c.judgement and not c.named]
    return max([len(contrasts), *sizes])


def alone_only(ties: list[Contrast], family: int) -> str:
    """Explain the ties whose shown interval excludes zero: it is that of the arm alone."""
    excluded = [c.first for c in ties if c.difference.p_t is not None and c.difference.p_t < ALPHA]
    if not excluded:
        return ""
    verb = "excludes" if len(excluded) == 1 else "exclude"
    noun = "interval" if len(excluded) == 1 else "intervals"
    return (
        f" The {noun} of {wording.listed(excluded)} {verb} zero taken alone, but not after "
        f"correction for {wording.plural(family, 'comparison')}."
    )


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
    heading = "Among all arms"
    if not shared:
        text = "Every pair of arms is told apart by its corrected interval."
        return [Statement(heading=heading, text=text)]
    if len(results.groups) == 1:
        text = f"No pair among {wording.listed(shared[0])} can be told apart."
        return [Statement(heading=heading, text=text)]
    text = (
        "Within each of these groups no pair can be told apart; a group is no claim of equality, "
    )
    text += "and the order means nothing."
    if alone:
        verb = "differs" if len(alone) == 1 else "differ"
        text += f" {wording.listed(alone)} {verb} from every other arm that was tested."
    items = [wording.listed(group) for group in shared]
    return [Statement(heading=heading, text=text + _lost_to_correction(results), items=items)]


def _lost_to_correction(results: Results) -> str:
    """Say how many pairs would be told apart alone and are not among so many."""
    pairs = results.family("baseline") + results.family("pairs")
    ties = _with_verdict(pairs, "indistinguishable")
    lost = [c for c in ties if c.difference.p_t is not None and c.difference.p_t < ALPHA]
    if not lost:
        return ""
    verb = "has" if len(lost) == 1 else "have"
    return (
        f" {len(lost)} of these {wording.plural(len(ties), 'pair')} {verb} a 95 % interval that "
        f"excludes zero taken alone, but not after correction for {len(pairs)} pairs: more seeds "
        "would decide."
    )


def _failures(results: Results) -> list[Statement]:
    missing = [run for run in results.runs if run.state != "finished"]
    if not missing:
        return []
    items = []
    for run in missing:
        reason = f": {run.reason}" if run.reason else ""
        items.append(f"{run.arm}, seed {run.seed} {_state(run.state)}{reason}")
    total = wording.plural(len(results.runs), "run")
    heading = f"{len(missing)} of {total} did not finish"
    if len(items) > MOST_RUNS:
        items = [*items[:MOST_RUNS], f"and {len(items) - MOST_RUNS} more, see every run below"]
    text = "Without a score, and counted in every table."
    return [Statement(heading=heading, text=text, items=items)]


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
            "One seed: no interval and no test is possible. The numbers are those of single runs, "
            "and another seed may turn any difference round."
        )
        return [Statement(heading="How far to trust this", text=text)]
    least = smallest_sign_flip_p(most)
    plain = f"With {most} paired seeds the exact sign-flip test cannot go below p = {least:.2g}"
    if most < CLAIM_SEEDS:
        text = (
            f"{plain}: too few for significance without an assumption. The verdicts rest on t "
            "intervals, which assume that differences between seeds are normal. Read this as a "
            f"screen; a claim needs {CLAIM_SEEDS} paired seeds or more (p can then reach 0.031)."
        )
    else:
        text = (
            f"{plain}. The verdicts rest on t intervals, which assume that differences between "
            "seeds are normal; the exact p stands beside them."
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
    stage = "" if max(tokens) >= EARLY else ": early training of small models"
    text = f"{wording.listed(parts)}{stage}. What this cannot show is listed below."
    return [Statement(heading="Scale", text=text)]


def _with_verdict(contrasts: list[Contrast], wanted: str) -> list[Contrast]:
    return [contrast for contrast in contrasts if verdict(contrast) == wanted]
