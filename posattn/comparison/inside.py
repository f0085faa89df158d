"""From the evaluations of an arm's runs to what they say together of its models' insides."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from statistics import fmean

from posattn.comparison.inside_files import StoredBins, StoredCheck, StoredEvidence, StoredHeads
from posattn.comparison.inside_schema import CheckSummary, EvidenceBin, HeadSummary, Inside
from posattn.comparison.statistics import paired_difference, summarize
from posattn.comparison.study_files import Evaluations

CHECKS = ("shift", "permutation", "padding")
SIDES = ("nearest", "left", "right")

BySeed = Mapping[int, Evaluations]


def inside(mine: BySeed, baseline: BySeed | None) -> Inside | None:
    """Return what the finished runs of an arm say, by seed; None if none was looked into.

    `baseline` are the runs to compare the loss by evidence with, None for the baseline itself.
    """
    sections = [*CHECKS, "attention_distance", "evidence_distance"]
    found = [getattr(one, name) for one in mine.values() for name in sections]
    if not any(section is not None for section in found):
        return None
    reasons = (section.reason for section in found if section is not None)
    return Inside(
        checks=[summary for name in CHECKS for summary in _checks(name, mine)],
        heads=_heads(mine.values()),
        evidence=_evidence(mine, baseline),
        notes=list(dict.fromkeys(reason for reason in reasons if reason)),
    )


def _checks(evaluation: str, mine: BySeed) -> list[CheckSummary]:
    stored = [getattr(one, evaluation) for one in mine.values()]
    by_name: dict[tuple[str, int | None], list[StoredCheck]] = {}
    for check in (check for one in stored if one is not None for check in one.checks):
        by_name.setdefault((check.name, check.amount), []).append(check)
    return [_check(evaluation, checks) for checks in by_name.values()]


def _check(evaluation: str, checks: list[StoredCheck]) -> CheckSummary:
    first = checks[0]
    worst = max if first.same else min
    return CheckSummary(
        evaluation=evaluation,
        name=first.name,
        amount=first.amount,
        same=first.same,
        because=first.because,
        relative=worst(check.relative for check in checks),
        tolerance=first.tolerance,
        judged=sum(check.held is not None for check in checks),
        held=sum(check.held is True for check in checks),
    )


def _heads(mine: Iterable[Evaluations]) -> list[HeadSummary]:
    stored = [one.attention_distance for one in mine if one.attention_distance is not None]
    by_layer: dict[str, list[StoredHeads]] = {}
    for layer in (layer for one in stored for layer in one.layers):
        by_layer.setdefault(layer.name, []).append(layer)
    return [
        _head(name, head, layers)
        for name, layers in by_layer.items()
        for head in range(len(layers[0].distance))
    ]


def _head(name: str, head: int, layers: list[StoredHeads]) -> HeadSummary:
    def mean(key: str) -> float:
        return fmean(getattr(layer, key)[head] for layer in layers)

    has_cls = all(layer.cls[head] is not None for layer in layers)
    return HeadSummary(
        layer=name,
        head=head + 1,
        runs=len(layers),
        distance=mean("distance"),
        uniform_distance=mean("uniform_distance"),
        entropy=mean("entropy"),
        uniform_entropy=mean("uniform_entropy"),
        first=mean("first"),
        last=mean("last"),
        cls=mean("cls") if has_cls else None,
    )


def _evidence(mine: BySeed, baseline: BySeed | None) -> list[EvidenceBin]:
    stored, theirs = _with_evidence(mine), _with_evidence(baseline or {})
    edges = next((one.edges for one in stored.values()), [])
    bounds = [*pairwise(edges), (edges[-1], None)] if edges else []
    paired = {
        seed: theirs[seed]
        for seed in stored
        if seed in theirs and _same(stored[seed], theirs[seed])
    }
    return [
        EvidenceBin(
            side=side,
            start=start,
            stop=stop,
            targets=max(_bins(one, side).targets[number] for one in stored.values()),
            summary=summarize(list(_losses(stored, side, number).values())),
            difference=None
            if baseline is None
            else paired_difference(_losses(stored, side, number), _losses(paired, side, number)),
        )
        for side in SIDES
        for number, (start, stop) in enumerate(bounds)
    ]


def _with_evidence(runs: BySeed) -> dict[int, StoredEvidence]:
    found = {seed: one.evidence_distance for seed, one in runs.items()}
    return {seed: one for seed, one in found.items() if one is not None and one.edges}


def _same(one: StoredEvidence, other: StoredEvidence) -> bool:
    return (one.masks, one.edges) == (other.masks, other.edges)


def _losses(runs: Mapping[int, StoredEvidence], side: str, number: int) -> dict[int, float]:
    found = {seed: _bins(one, side).loss[number] for seed, one in runs.items()}
    return {seed: loss for seed, loss in found.items() if loss is not None}


def _bins(stored: StoredEvidence, side: str) -> StoredBins:
    bins: StoredBins = getattr(stored, side)
    return bins
