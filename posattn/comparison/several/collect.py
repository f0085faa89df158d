"""`compare_studies(folders)`: several studies set side by side; nothing of them is pooled."""

from collections.abc import Sequence
from pathlib import Path

from posattn.comparison import wording
from posattn.comparison.results_schema import ArmResult, Results, Statement
from posattn.comparison.several.conditions import differing_conditions, match_arms
from posattn.comparison.several.schema import (
    ArmMatch,
    Compared,
    ComparedArm,
    ComparedStudy,
    Condition,
)
from posattn.comparison.several.sources import Source, read_sources

DECISIVE = ("recipe", "evaluation", "data", "score")
"""Conditions that decide a score; a machine or a seed changes it by noise only."""

SIDE_BY_SIDE = (
    "Nothing is pooled: no mean, interval or test goes over two studies. Every verdict is that of its "
    "own study, against its own baseline and corrected within it."
)


def compare_studies(folders: Sequence[Path]) -> Compared:
    """Return what the studies in these folders share, what differs, and their scores side by side.

    Folders of suites give one study for each task. Raises `RecipeError` for a folder that is none.
    """
    sources = read_sources(folders)
    conditions, arms = differing_conditions(sources), match_arms(sources)
    studies = [_study(source) for source in sources]
    return Compared(
        posattn_version=sources[0].results.posattn_version,
        answer=_answer(studies, arms, conditions),
        studies=studies,
        arms=arms,
        conditions=conditions,
        limits=_limits(studies, conditions),
    )


def _study(source: Source) -> ComparedStudy:
    results = source.results
    return ComparedStudy(
        label=source.label,
        folder=source.folder.as_posix(),
        name=results.study.name,
        title=results.study.title,
        baseline=results.study.baseline,
        metric=results.primary,
        seeds=results.study.seeds,
        runs_planned=results.study.runs_planned,
        runs_finished=results.study.runs_finished,
        complete=results.study.complete,
        broken=[rule.rule for rule in results.control if rule.broken],
        arms=[_arm(results, arm) for arm in results.arms],
    )


def _arm(results: Results, arm: ArmResult) -> ComparedArm:
    scores = arm.scores[results.study.primary]
    contrast = next((c for c in results.family("baseline") if c.first == arm.name), None)
    judged = contrast.judgement if contrast else None
    return ComparedArm(
        name=arm.name,
        is_baseline=arm.is_baseline,
        recipe_digest=arm.recipe_digest,
        summary=scores.summary,
        values=scores.values,
        difference=contrast.difference if contrast else None,
        verdict="baseline" if arm.is_baseline else judged.verdict if judged else "not tested",
    )


def _answer(
    studies: list[ComparedStudy], arms: list[ArmMatch], conditions: list[Condition]
) -> list[Statement]:
    shared = [arm for arm in arms if len(arm.studies) > 1]
    same = [arm.name for arm in shared if arm.sameness == "same recipe"]
    other = [arm.name for arm in shared if arm.sameness == "other recipe"]
    decisive = list(dict.fromkeys(c.path for c in conditions if c.kind in DECISIVE))
    text = f"{wording.plural(len(studies), 'study').replace('studys', 'studies')} side by side: "
    text += f"{wording.plural(len(shared), 'arm')} in more than one, "
    text += f"{len(same)} of them with one recipe."
    statements = [Statement(heading="Answer", text=text), _control(decisive)]
    if same:
        statements.append(Statement(heading="Same recipe", text=f"{wording.listed(same)}."))
    if other:
        items = [f"{arm.name}: {', '.join(arm.differs)}" for arm in shared if arm.name in other]
        heading = "Same name, other recipe"
        statements.append(Statement(heading=heading, items=items))
    statements.append(Statement(heading="What is compared", text=SIDE_BY_SIDE))
    return statements + _gaps(studies)


def _control(decisive: list[str]) -> Statement:
    heading = "Shared conditions"
    if not decisive:
        text = (
            "Equal: the studies agree in every value that all their arms share, in text and in "
            "evaluation. Scores of one recipe may be set side by side."
        )
        return Statement(heading=heading, text=text)
    text = (
        "Not equal: a score of one study and a score of another differ by these too, so only the "
        "differences within a study are controlled."
    )
    return Statement(heading=heading, text=text, items=decisive)


def _gaps(studies: list[ComparedStudy]) -> list[Statement]:
    items = []
    for study in studies:
        parts = [f"control is broken: {rule}" for rule in study.broken]
        if study.runs_finished < study.runs_planned:
            parts.append(f"{study.runs_finished} of {study.runs_planned} runs finished")
        if parts:
            items.append(f"{study.label}: {'; '.join(parts)}")
    return [Statement(heading="Studies that are not whole", items=items)] if items else []


def _limits(studies: list[ComparedStudy], conditions: list[Condition]) -> list[str]:
    limits = [SIDE_BY_SIDE]
    if len({study.baseline for study in studies}) > 1:
        limits.append(
            "Baselines differ between the studies, so their differences are from different arms."
        )
    if len({study.metric.name for study in studies}) > 1:
        limits.append(
            "Primary scores differ between the studies; scores of different kinds have tables of their "
            "own."
        )
    if any(c.kind == "environment" for c in conditions):
        limits.append(
            "Machine or library versions differ: the same recipe and seed need not give the same bits."
        )
    limits.append(
        "Choosing one of several studies by its result is a choice that no interval here accounts for."
    )
    return limits
