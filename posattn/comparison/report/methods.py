"""The differences that decide, by other methods: bootstraps over seeds, over samples, over both."""

from posattn.comparison import wording
from posattn.comparison.results_schema import (
    Contrast,
    MultiInterval,
    Results,
    SampleInterval,
    SeedInterval,
)
from posattn.figures.blocks import Block, Table, numbers, words

Interval = SeedInterval | MultiInterval | SampleInterval

SCOPES = (
    "Each interval is at 95 % for one difference alone, is not corrected and decides nothing. What "
    "is drawn anew is what it speaks of. Over seeds: other training runs, read on this validation "
    "text. Over seeds and samples (multi-bootstrap): other training runs on other text of this kind; "
    "seeds and samples are drawn for both arms together. Over samples, seeds held: these very models "
    "on other text, so it says nothing of a mechanism. Exact p: sign flips, with the least that n "
    "allows."
)


def method_blocks(results: Results) -> list[Block]:
    """Return the table of other methods; empty where no difference has an interval of them."""
    contrasts = [c for c in shown_contrasts(results) if c.seed_interval or c.sample_interval]
    if not contrasts:
        return []
    methods = {c.seed_interval.method for c in contrasts if c.seed_interval}
    named = " or ".join(sorted(methods)) or "bootstrap"
    titles = (
        "paired t over seeds",
        f"bootstrap over seeds ({named})",
        "multi-bootstrap over seeds and samples",
        "bootstrap over samples, seeds held",
        "exact p (least)",
    )
    return [
        Table(
            f"The same differences by other methods, {results.primary.unit_of_difference}",
            [*words("arm", "against"), *numbers("n", *titles)],
            [_row(results, contrast) for contrast in contrasts],
            SCOPES + _few(contrasts) + _counts(contrasts),
            name="methods",
        )
    ]


def shown_contrasts(results: Results) -> list[Contrast]:
    """Return the contrasts named beforehand, then the others with the baseline."""
    others = [c for c in results.family("baseline") if not c.named]
    return results.named + others


def exact_p(contrast: Contrast) -> str:
    """Return the exact p with the least that n allows in brackets, or a dash."""
    found = contrast.difference
    if found.p_exact is None:
        return wording.NONE
    return f"{wording.p_value(found.p_exact)} ({wording.p_value(found.smallest_p)})"


def _row(results: Results, contrast: Contrast) -> list[str]:
    found = contrast.difference
    intervals: tuple[Interval | None, ...] = (
        contrast.seed_interval,
        contrast.multi_interval,
        contrast.sample_interval,
    )
    return [
        contrast.first,
        contrast.second,
        str(found.n),
        wording.interval(results.primary, found.low, found.high),
        *(_interval(results, interval) for interval in intervals),
        exact_p(contrast),
    ]


def _interval(results: Results, interval: Interval | None) -> str:
    if interval is None:
        return wording.NONE
    return wording.interval(results.primary, interval.low, interval.high)


def _few(contrasts: list[Contrast]) -> str:
    """Say which bootstraps over seeds are too narrow to be believed."""
    few = {c.seed_interval.seeds for c in contrasts if c.seed_interval and c.seed_interval.reason}
    if not few:
        return ""
    return (
        f" With {wording.listed([str(n) for n in sorted(few)])} seeds the bootstraps over seeds are "
        "too narrow: below 5 seeds they cover clearly less often than 95 %. Trust the t interval."
    )


def _counts(contrasts: list[Contrast]) -> str:
    samples = {c.sample_interval.samples for c in contrasts if c.sample_interval}
    seeds = next((c.seed_interval.resamples for c in contrasts if c.seed_interval), None)
    drawn = next((c.sample_interval.resamples for c in contrasts if c.sample_interval), None)
    parts = []
    if seeds is not None:
        parts.append(f"{wording.count(seeds)} resamples of seeds")
    if drawn is not None:
        number = wording.listed([wording.count(n) for n in sorted(samples)])
        parts.append(f"{wording.count(drawn)} of {number} validation samples")
    return f" {wording.listed(parts)}."
