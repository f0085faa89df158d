"""The section on the effects of factors: what each level does, what depth does, what was left out."""

from posattn.comparison import wording
from posattn.comparison.factorial.parts import DepthControlPart, DesignPart, EffectPart
from posattn.comparison.results_schema import Results
from posattn.figures import Figure
from posattn.figures.blocks import Block, Bullets, Picture, Section, Table, Text, numbers, words


def effect_sections(results: Results, figures: dict[str, Figure]) -> list[Section]:
    """Return the section on effects and controls of depth; empty for a study with neither."""
    blocks: list[Block] = []
    if results.design is not None:
        blocks += _effects(results, results.design, figures)
    if results.depth_controls:
        blocks.append(_depth(results))
    return [Section("effects", "Effects of the factors", blocks)]


def _effects(results: Results, design: DesignPart, figures: dict[str, Figure]) -> list[Block]:
    blocks: list[Block] = [Text(_introduction(results, design))]
    blocks += [Picture(figures[name]) for name in ("effects", "cells") if name in figures]
    blocks.append(_table(results, design))
    if design.aliases:
        blocks.append(Text(_about_fraction(design)))
        blocks.append(Bullets(design.aliases))
    if design.left_out:
        rows = [
            [arm, out.reason, out.refused or "it could run"] for arm, out in design.left_out.items()
        ]
        columns = words("combination", "reason of the study", "what its recipe says")
        blocks.append(Table("Combinations that were left out", columns, rows))
    if design.not_estimable:
        listed = [f"{name}: {reason}" for name, reason in design.not_estimable.items()]
        blocks += [Text("Effects that these combinations do not give:"), Bullets(listed)]
    return blocks


def _introduction(results: Results, design: DesignPart) -> str:
    levels = "; ".join(f"{name}: {', '.join(known)}" for name, known in design.factors.items())
    text = (
        f"Factors and levels, the first being the reference: {levels}. "
        f"{wording.plural(len(design.cells), 'combination')} were run. A main effect is a level "
        "against the reference"
    )
    if design.generators:
        return f"{text}, as a difference of the means of the combinations with each."
    return (
        f"{text}, averaged over the settings of the other factors in which both were run; an "
        "interaction is half the difference of two such effects, as in effects coding. Each is taken "
        f"seed by seed on {results.primary.label}."
    )


def _about_fraction(design: DesignPart) -> str:
    generators = ", ".join(f"{name} = {of}" for name, of in design.generators.items())
    hidden = {
        3: "main effects cannot be told from interactions of two factors",
        4: "main effects are clear of interactions of two factors, which hide each other",
    }.get(
        design.resolution or 0,
        "main effects and interactions of two factors are clear of each other",
    )
    return (
        f"A fraction of all combinations was run ({generators}), of resolution {design.resolution}: "
        f"{hidden}. What stands in one line below cannot be told apart:"
    )


def _table(results: Results, design: DesignPart) -> Table:
    metric = results.primary
    rows = [_row(results, effect) for effect in results.effects]
    size = max((e.judgement.family_size for e in results.effects), default=0)
    note = (
        "Paired t tests over seeds, corrected by Holm's method over the family of "
        f"{wording.plural(size, 'effect')}. Exact p: sign flips, with the least p that n allows. "
        "Bootstrap: 95 %, seeds resampled. Smallest visible: the effect shown with 80 % power after "
        "correction. A seed in which an arm of the effect has no score gives no value; nothing stands in "
        "for it."
    )
    settings = [] if design.generators else numbers("settings")
    return Table(
        f"Effects on {metric.label}, {metric.unit_of_difference} ({metric.better} is better)",
        [
            *words("effect", "verdict"),
            *settings,
            *numbers("n", "seeds missing", "effect", "95 % interval", "corrected interval"),
            *numbers("bootstrap interval", "t test p", "Holm p", "exact p (least)"),
            *numbers("smallest visible"),
        ],
        [row if not design.generators else [*row[:2], *row[3:]] for row in rows],
        note,
    )


def _row(results: Results, effect: EffectPart) -> list[str]:
    metric, found, judged = results.primary, effect.difference, effect.judgement
    exact = wording.NONE
    if found.p_exact is not None:
        exact = f"{wording.p_value(found.p_exact)} ({wording.p_value(found.smallest_p)})"
    boot = effect.bootstrap
    return [
        effect.name,
        verdict(effect),
        str(effect.settings),
        str(found.n),
        str(len(effect.missing)),
        wording.difference(metric, found.mean),
        wording.interval(metric, found.low, found.high),
        wording.interval(metric, judged.corrected_low, judged.corrected_high),
        wording.interval(metric, boot.low, boot.high) if boot else wording.NONE,
        wording.p_value(found.p_t),
        wording.p_value(judged.p_holm),
        exact,
        wording.score(metric, judged.smallest_detectable),
    ]


def verdict(effect: EffectPart) -> str:
    """Return what is known of an effect, in words: an interaction is neither better nor worse."""
    found = effect.judgement.verdict
    if found == "not tested":
        return f"not tested: {effect.difference.reason}" if effect.difference.reason else found
    if found == "indistinguishable":
        return "not told from zero"
    if effect.kind == "interaction":
        return "told from zero"
    ((factor, level),) = effect.levels.items()
    return f"{level} is {found} than {effect.references[factor]}"


def _depth(results: Results) -> Table:
    metric = results.primary
    rows = [_depth_row(results, control) for control in results.depth_controls]
    note = (
        "A control of depth has the plain decoder and as many layers more as the mask decoder applies, so it "
        "tells depth from absolute position. Its layers have weights of their own: see parameters and "
        "operations under Speed, memory, size. Verdicts are those of the pair under Differences."
    )
    return Table(
        f"With the mask decoder minus its control of depth, {metric.unit_of_difference}",
        [
            *words("arm", "control of depth", "verdict on the arm"),
            *numbers("n", "difference", "95 % interval", "parameters", "operations per token"),
        ],
        rows,
        note,
    )


def _depth_row(results: Results, found: DepthControlPart) -> list[str]:
    metric, sizes = (
        results.primary,
        [results.arm(found.arm).sizes, results.arm(found.control).sizes],
    )
    verdict_of_pair = f"{found.verdict}: {found.reason}" if found.reason else found.verdict
    parameters = [wording.large(size.parameters) for size in sizes]
    operations = [wording.large(size.flops_per_token) for size in sizes]
    return [
        found.arm,
        found.control,
        verdict_of_pair,
        str(found.difference.n),
        wording.difference(metric, found.difference.mean),
        wording.interval(metric, found.difference.low, found.difference.high),
        " against ".join(parameters),
        " against ".join(operations),
    ]
