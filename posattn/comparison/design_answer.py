"""What the answer of a study says of its design: what it mixes, and which effects it tells from zero."""

from posattn.comparison import wording
from posattn.comparison.factorial.parts import EffectPart
from posattn.comparison.results_schema import Results, Statement
from posattn.comparison.statistics import ALPHA


def confounded(results: Results) -> list[Statement]:
    """Return what the report opens with where arms mix aspects of a recipe; else nothing."""
    found = results.confounds
    if found is None or not found.arms:
        return []
    studied = sorted({aspect for aspects in found.arms.values() for aspect in aspects})
    arms = wording.listed(list(found.arms))
    if len(studied) > 1:
        head, *rest = studied
        mixes = f"This study mixes {head} with {wording.listed(rest)}"
    else:
        mixes = f"This study mixes what it varies with {studied[0]}"
    text = (
        f"{mixes}: no difference of {arms} from other arms is the effect of one of them alone. Declared "
        f"because: {found.reason}."
    )
    return [Statement(heading="Confounded", text=text)]


def mixed(results: Results) -> list[Statement]:
    """Return what differs only together within the architecture; nothing where all can be told apart."""
    found = results.confounds
    if found is None or not found.mixed:
        return []
    text = "No two arms differ in one of these alone, so its own share cannot be told:"
    return [Statement(heading="Mixed", text=text, items=list(found.mixed))]


def design_statements(results: Results) -> list[Statement]:
    """Return the sentences on effects and controls of depth; none for a study with neither."""
    told = [e for e in results.effects if e.judgement.verdict in ("better", "worse")]
    ties = [e for e in results.effects if e.judgement.verdict == "indistinguishable"]
    untested = [e for e in results.effects if e.judgement.verdict == "not tested"]
    return [
        *_told(results, told),
        *_ties(results, ties),
        *_untested(untested),
        *_aliased(results, told),
        *_depth(results),
    ]


def _told(results: Results, told: list[EffectPart]) -> list[Statement]:
    if not results.effects:
        return []
    unit = results.primary.unit_of_difference
    if not told:
        size = wording.plural(len(results.effects), "effect")
        text = f"None of the {size} of the factors is told from zero after correction."
        return [Statement(heading="Effects", text=text)]
    text = f"Mean effect in {unit} [95 % interval, paired over seeds], n seeds."
    items = [f"{_effect(results, effect)}{_meaning(effect)}" for effect in told]
    return [Statement(heading="Effects told from zero", text=text, items=items)]


def _ties(results: Results, ties: list[EffectPart]) -> list[Statement]:
    if not ties:
        return []
    text = "No proof that they are zero: below its smallest visible size an effect is likely to stay unseen."
    alone = [e.name for e in ties if e.difference.p_t is not None and e.difference.p_t < ALPHA]
    if alone:
        text += (
            f" Taken alone, the interval of {wording.listed(alone)} excludes zero, but not after "
            f"correction for {wording.plural(ties[0].judgement.family_size, 'effect')}."
        )
    items = [f"{_effect(results, effect)}{_smallest(results, effect)}" for effect in ties]
    return [Statement(heading="Effects not told from zero", text=text, items=items)]


def _effect(results: Results, effect: EffectPart) -> str:
    metric, found = results.primary, effect.difference
    interval = wording.interval(metric, found.low, found.high)
    missing = f", {len(effect.missing)} missing" if effect.missing else ""
    return f"{effect.name}: {wording.difference(metric, found.mean)} {interval}, n = {found.n}{missing}"


def _meaning(effect: EffectPart) -> str:
    if effect.kind == "interaction":
        return ""
    ((factor, level),) = effect.levels.items()
    return f" ({level} is {effect.judgement.verdict} than {effect.references[factor]})"


def _smallest(results: Results, effect: EffectPart) -> str:
    smallest = effect.judgement.smallest_detectable
    if smallest is None:
        return ""
    return f"; smallest visible {wording.score(results.primary, smallest)}"


def _untested(untested: list[EffectPart]) -> list[Statement]:
    if not untested:
        return []
    parts = [f"{e.name} ({e.difference.reason})" for e in untested]
    return [Statement(heading="Effects not tested", text="; ".join(parts) + ".")]


def _aliased(results: Results, told: list[EffectPart]) -> list[Statement]:
    design = results.design
    if design is None or design.resolution is None or design.resolution > 4 or not told:
        return []
    items = [f"{e.name}: {e.aliases}" for e in told if e.aliases]
    text = (
        f"A fraction of resolution {design.resolution} was run. Each of these may be the effect of any "
        "other in its line:"
    )
    return [Statement(heading="What the fraction cannot tell apart", text=text, items=items)]


def _depth(results: Results) -> list[Statement]:
    metric, items = results.primary, []
    for found in results.depth_controls:
        verdict = {
            "better": "better, so depth alone does not explain it",
            "worse": "worse: depth without the decoder does better",
            "indistinguishable": "not told apart, so depth may explain whatever the decoder brings",
        }.get(found.verdict, f"{found.verdict}, so depth may explain whatever the decoder brings")
        items.append(
            f"{found.arm} minus {found.control}: {wording.effect(metric, found.difference)}; {verdict}"
        )
    if not items:
        return []
    text = (
        "The mask decoder applies more layers. Against the plain decoder with as many layers more:"
    )
    return [Statement(heading="Depth", text=text, items=items)]
