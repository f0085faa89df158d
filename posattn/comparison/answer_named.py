"""What the answer says of contrasts that the study named before its first step."""

from posattn.comparison import wording
from posattn.comparison.results_schema import Contrast, Results, Statement

WORDS = {
    "better": "is better than",
    "worse": "is worse than",
    "indistinguishable": "cannot be told apart from",
    "not tested": "could not be compared with",
}


def named_statements(results: Results) -> list[Statement]:
    """Return the opening sentence and the list of the contrasts named beforehand; empty if none."""
    named = results.named
    if not named:
        return []
    metric = results.primary
    said = wording.listed([f"{c.first} {WORDS[verdict(c)]} {c.second}" for c in named])
    count = "the contrast" if len(named) == 1 else f"the {len(named)} contrasts"
    lead = Statement(
        heading="Answer",
        text=f"Of {count} named beforehand, by {metric.label} ({metric.unit}, {metric.better} is "
        f"better): {said}.",
    )
    items = [_item(results, contrast) for contrast in named]
    return [lead, Statement(heading="Named beforehand", text=_how_judged(results), items=items)]


def _how_judged(results: Results) -> str:
    named = results.named
    alone = (
        "The study named this contrast before its first step; alone in its family, it is judged at "
        "5 % without correction."
        if len(named) == 1
        else f"The study named these {len(named)} contrasts before its first step; they alone are "
        "the judged family, at 5 % by Holm's method."
    )
    return (
        f"{alone} All other pairs are a second family, {gate_words(results)}. Mean difference in "
        f"{results.primary.unit_of_difference} [95 % interval, paired over seeds], n seeds."
    )


def gate_words(results: Results) -> str:
    """Return why the pairs that were not named are judged, or are not."""
    tested = [c for c in results.named if verdict(c) != "not tested"]
    if not tested:
        return "judged because no contrast named beforehand could be tested"
    if any(verdict(c) != "indistinguishable" for c in tested):
        return "judged because a contrast named beforehand holds"
    return "not judged because no contrast named beforehand holds"


def _item(results: Results, contrast: Contrast) -> str:
    metric, found = results.primary, contrast.difference
    name = f"{contrast.first} {wording.MINUS} {contrast.second}"
    if found.mean is None:
        return f"{name}: {found.reason}"
    shown = f"{name}: {wording.difference(metric, found.mean)}"
    if found.low is not None:
        shown += f" {wording.interval(metric, found.low, found.high)}"
    judged = contrast.judgement
    text = f"{shown}, n = {found.n}, {verdict(contrast)}"
    if verdict(contrast) == "indistinguishable" and judged and judged.smallest_detectable:
        size = wording.score(metric, judged.smallest_detectable)
        text += f"; a difference below {size} was likely to stay unseen"
    return text


def verdict(contrast: Contrast) -> str:
    """Return the verdict on the first arm; without a judgement, that it was not tested."""
    return contrast.judgement.verdict if contrast.judgement else "not tested"
