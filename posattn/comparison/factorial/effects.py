"""The effects of a factorial study on its primary score, seed by seed, as one family."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from posattn.comparison.factorial.design import Design, LeftOut
from posattn.comparison.factorial.fraction import make_fraction
from posattn.comparison.factorial.parts import DepthControlPart, DesignPart, EffectPart
from posattn.comparison.factorial.weights import EffectWeights, effect_weights
from posattn.comparison.results_schema import Contrast
from posattn.comparison.statistics import PairedDifference, bootstrap_seeds, paired_difference
from posattn.comparison.verdicts import Better, Judgement, Scores, judge

OPPOSITE = {"better": "worse", "worse": "better"}


def design_part(stored: Mapping[str, Any]) -> DesignPart:
    """Return the design of plan.json with the effects that it does not give."""
    part = DesignPart.model_validate(stored)
    return part.model_copy(update={"not_estimable": effect_weights(design_of(part))[1]})


def design_of(part: DesignPart) -> Design:
    """Return the design that a plan states."""
    factors = {name: tuple(levels) for name, levels in part.factors.items()}
    left_out = {name: LeftOut({}, item.reason) for name, item in part.left_out.items()}
    fraction = make_fraction(tuple(factors), part.generators) if part.generators else None
    return Design(factors, part.cells, left_out, fraction)


def effects(
    part: DesignPart, scores: Scores, seeds: Sequence[int], better: Better
) -> list[EffectPart]:
    """Return every effect over the seeds in which all its arms have the score.

    Scores are by arm and seed, of finished runs only: a run without one leaves its seed out of the
    effects that need it, and nothing stands in for it. Holm's correction is over all that were tested.
    """
    wanted = effect_weights(design_of(part))[0]
    values = [_values(effect, scores, seeds) for effect in wanted]
    differences = [
        _difference(effect, by_seed) for effect, by_seed in zip(wanted, values, strict=True)
    ]
    judged = judge(differences, better)
    return [
        _part(effect, by_seed, difference, judgement, scores, seeds)
        for effect, by_seed, difference, judgement in zip(
            wanted, values, differences, judged, strict=True
        )
    ]


def _values(effect: EffectWeights, scores: Scores, seeds: Sequence[int]) -> dict[int, float]:
    return {
        seed: sum(weight * scores[arm][seed] for arm, weight in effect.weights.items())
        for seed in seeds
        if all(seed in scores.get(arm, {}) for arm in effect.weights)
    }


def _difference(effect: EffectWeights, values: dict[int, float]) -> PairedDifference:
    found = paired_difference(values, dict.fromkeys(values, 0.0))
    if found.n > 0:
        return found
    return replace(
        found, reason=f"no seed finished in all {len(effect.weights)} arms of this effect"
    )


def _part(
    effect: EffectWeights,
    values: dict[int, float],
    difference: PairedDifference,
    judgement: Judgement,
    scores: Scores,
    seeds: Sequence[int],
) -> EffectPart:
    missing = {
        seed: [arm for arm in effect.weights if seed not in scores.get(arm, {})]
        for seed in seeds
        if seed not in values
    }
    return EffectPart(
        name=effect.name,
        kind="main" if len(effect.levels) == 1 else "interaction",
        levels=dict(effect.levels),
        references=dict(effect.references),
        settings=effect.settings,
        aliases=effect.aliases,
        weights=dict(effect.weights),
        values=values,
        missing=missing,
        difference=difference,
        bootstrap=bootstrap_seeds(list(values.values())),
        judgement=judgement,
    )


def depth_controls(
    controls: Mapping[str, str], scores: Scores, contrasts: Sequence[Contrast], metric: str
) -> list[DepthControlPart]:
    """Return each arm minus its control of depth, with the verdict of the contrast that is judged."""
    found = []
    for control, arm in controls.items():
        verdict, reason = "not judged", None
        for contrast in contrasts:
            pair = (contrast.first, contrast.second)
            if contrast.metric != metric or contrast.judgement is None:
                continue
            if pair in ((arm, control), (control, arm)):
                verdict, reason = contrast.judgement.verdict, contrast.judgement.reason
                verdict = verdict if pair[0] == arm else OPPOSITE.get(verdict, verdict)
                break
        difference = paired_difference(scores[arm], scores[control])
        found.append(
            DepthControlPart(
                arm=arm, control=control, difference=difference, verdict=verdict, reason=reason
            )
        )
    return found
