"""Verdicts over families of paired differences: Holm's correction, and groups not told apart.

Only Holm-corrected paired t tests decide. There are two families, each held to 5 %: the contrasts
that the study named before its first step (without any, those with the baseline), and all other
pairs. The second is judged only if a contrast of the first holds (or none could be tested), so that
a study of equal arms names a winner in at most 5 %.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from posattn.comparison.statistics import (
    ALPHA,
    PairedDifference,
    detectable_in_sd,
    holm,
    holm_alphas,
    paired_difference,
    t_interval,
)

Better = Literal["lower", "higher"]
Verdict = Literal["better", "worse", "indistinguishable", "not tested"]
Scores = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True)
class Judgement:
    """What Holm's correction over the family leaves of one paired difference.

    The corrected interval has the level of its step in Holm's procedure, so it excludes zero
    exactly where the corrected p is below 0.05. `smallest_detectable` is the difference that a
    family of this size and n would have shown with 80 % power, given the spread that was seen.
    """

    verdict: Verdict
    family_size: int
    p_holm: float | None = None
    corrected_level: float | None = None
    corrected_low: float | None = None
    corrected_high: float | None = None
    smallest_detectable: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Judged:
    """One pair of arms with its difference `first - second` and the verdict on `first`."""

    first: str
    second: str
    difference: PairedDifference
    judgement: Judgement
    named: bool = False


@dataclass(frozen=True)
class StudyJudgement:
    """All pairs of a study, those with the baseline apart, and the groups not told apart."""

    contrasts: list[Judged]
    pairs: list[Judged]
    groups: list[tuple[str, ...]]


def judge_study(
    scores: Scores, baseline: str, better: Better, named: Sequence[tuple[str, str]] = ()
) -> StudyJudgement:
    """Return every verdict on the arms of `scores` (by arm and seed, finished runs only).

    `named` are the contrasts named beforehand; one that names the baseline first is turned round.
    """
    others = [name for name in scores if name != baseline]
    with_baseline = [(name, baseline) for name in others]
    chosen = [(b, a) if a == baseline else (a, b) for a, b in named]
    first = chosen or with_baseline
    taken = {frozenset(pair) for pair in first}
    every = with_baseline + list(combinations(others, 2))
    rest = [pair for pair in every if frozenset(pair) not in taken]
    judged = [replace(item, named=bool(chosen)) for item in _judge_family(first, scores, better)]
    judged += _behind_gate(judged, _judge_family(rest, scores, better), named=bool(chosen))
    told_apart = {
        frozenset((item.first, item.second)): item.judgement.verdict != "indistinguishable"
        for item in judged
        if item.judgement.verdict != "not tested"
    }
    testable = [name for name in scores if any(name in pair for pair in told_apart)]
    by_arm = {item.first: item for item in judged if item.second == baseline}
    contrasts = [by_arm[name] for name in others]
    pairs = [item for item in judged if item.second != baseline]
    return StudyJudgement(contrasts, pairs, groups_not_told_apart(testable, told_apart))


def _behind_gate(gate: list[Judged], family: list[Judged], *, named: bool) -> list[Judged]:
    """Return the second family: as judged if a contrast of the first holds, or none was tested."""
    tested = [item for item in gate if item.judgement.verdict != "not tested"]
    if not tested or any(item.judgement.verdict != "indistinguishable" for item in tested):
        return family
    least = min(item.judgement.p_holm or 0.0 for item in tested)
    which = "that was named beforehand" if named else "with the baseline"
    return [_behind_closed_gate(item, least, which) for item in family]


def _judge_family(names: list[tuple[str, str]], scores: Scores, better: Better) -> list[Judged]:
    differences = [paired_difference(scores[first], scores[second]) for first, second in names]
    judged = zip(names, differences, judge(differences, better), strict=True)
    return [Judged(first, second, difference, j) for (first, second), difference, j in judged]


def _behind_closed_gate(item: Judged, gate: float, which: str) -> Judged:
    if item.judgement.verdict == "not tested":
        return item
    closed = replace(
        item.judgement,
        verdict="indistinguishable",
        p_holm=max(gate, item.judgement.p_holm or 0.0),
        corrected_level=None,
        corrected_low=None,
        corrected_high=None,
        reason=f"not judged on its own: no contrast {which} holds",
    )
    return replace(item, judgement=closed)


def judge(differences: Sequence[PairedDifference], better: Better) -> list[Judgement]:
    """Return the verdicts on one family, Holm-corrected over the differences with a p value."""
    tested = [i for i, difference in enumerate(differences) if difference.p_t is not None]
    p_values = [differences[i].p_t or 0.0 for i in tested]
    adjusted = dict(zip(tested, holm(p_values), strict=True))
    alphas = dict(zip(tested, holm_alphas(p_values), strict=True))
    size = len(tested)
    numbers = {differences[i].n for i in tested}
    factors = {n: detectable_in_sd(n, ALPHA / size) for n in numbers}
    return [
        _judge_one(difference, adjusted[i], alphas[i], factors[difference.n], size, better)
        if i in adjusted
        else Judgement("not tested", size, reason=difference.reason)
        for i, difference in enumerate(differences)
    ]


def _judge_one(
    difference: PairedDifference,
    p_holm: float,
    alpha: float,
    detectable: float,
    size: int,
    better: Better,
) -> Judgement:
    mean, sd = difference.mean or 0.0, difference.sd or 0.0
    low, high = t_interval(mean, sd, difference.n, alpha)
    verdict: Verdict = "indistinguishable"
    if p_holm <= ALPHA:
        verdict = "better" if (mean < 0) == (better == "lower") else "worse"
    smallest = detectable * sd if sd > 0 else None
    return Judgement(verdict, size, p_holm, 1 - alpha, low, high, smallest)


def groups_not_told_apart(
    names: Sequence[str], told_apart: Mapping[frozenset[str], bool]
) -> list[tuple[str, ...]]:
    """Return the largest sets in which no pair is told apart, each in the order of `names`.

    A pair that `told_apart` lacks was not tested and joins nothing. Sets may overlap.
    """
    friends = {name: set[str]() for name in names}
    for first, second in combinations(names, 2):
        if told_apart.get(frozenset((first, second))) is False:
            friends[first].add(second)
            friends[second].add(first)
    found: list[set[str]] = []

    def grow(chosen: set[str], open_names: set[str], done: set[str]) -> None:
        if not open_names and not done:
            found.append(chosen)
            return
        for name in [name for name in names if name in open_names]:
            grow(chosen | {name}, open_names & friends[name], done & friends[name])
            open_names, done = open_names - {name}, done | {name}

    if names:
        grow(set(), set(names), set())
    return [tuple(name for name in names if name in members) for members in found]
