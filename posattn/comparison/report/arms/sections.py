"""The sections of an arm's page: what the report says of it, its contrasts, its recipe, its files."""

from collections.abc import Mapping
from typing import Any

from posattn.comparison import wording
from posattn.comparison.differences import differences
from posattn.comparison.report.arms.contrasts import contrast_table
from posattn.comparison.report.arms.narrow import UP, narrowed
from posattn.comparison.report.facts import contract_table, shown
from posattn.comparison.report.links import file_target, run_id
from posattn.comparison.report.sections import ORDER
from posattn.comparison.results_schema import ArmResult, Results
from posattn.figures import Figure
from posattn.figures.blocks import Block, Code, Picture, Section, Table, Text, numbers, words
from posattn.recipe.difference import ABSENT
from posattn.recipe.writer import write_yaml

OWN = ("differences", "arms")
"""Sections of the report in whose place the page has some of its own."""

Recipes = Mapping[str, Mapping[str, Any]]


def arm_sections(
    results: Results,
    arm: ArmResult,
    study: list[Section],
    figures: dict[str, Figure],
    recipes: Recipes,
) -> list[Section]:
    """Return all that is known of one arm; `study` are the sections of the whole report."""
    taken = [narrowed(s, arm.name, results.study.baseline) for s in study if s.id not in OWN]
    parts = {section.id: section for section in taken if section is not None}
    for name, title in (("curves", "Learning curves"), ("length", ""), ("position", "")):
        if name in figures:
            section = parts.get(name)
            rest = section.blocks if section else []
            title = section.title if section else title or figures[name].title
            parts[name] = Section(name, title, [Picture(figures[name]), *rest])
    scores = parts.get("scores", Section("scores", "Scores", []))
    parts["scores"] = Section(scores.id, scores.title, [*scores.blocks, *_by_seed(results, arm)])
    parts["differences"] = Section("differences", "Differences", contrast_table(results, arm))
    ordered = [parts[name] for name in ORDER if name in parts]
    own = [
        Section("recipe", "Recipe", _recipe(results, arm, recipes)),
        Section("contract", "Architecture contract", [contract_table(arm)] if arm.contract else []),
        Section("files", "Files", _files(results, arm)),
    ]
    return [section for section in [*ordered, *own] if section.blocks]


def _by_seed(results: Results, arm: ArmResult) -> list[Block]:
    runs = [run for run in results.runs if run.arm == arm.name]
    titles = [f"{metric.label}, {metric.unit}" for metric in results.metrics]
    columns = [*words("seed"), *numbers(*titles)]
    rows = [
        [
            str(run.seed),
            *(wording.score(metric, run.scores[metric.name].value) for metric in results.metrics),
        ]
        for run in runs
    ]
    links = {(row, 0): f"#{run_id(run.arm, run.seed)}" for row, run in enumerate(runs)}
    return [Table("Scores of each seed", columns, rows, name="seeds", links=links)] if runs else []


def _recipe(results: Results, arm: ArmResult, recipes: Recipes) -> list[Block]:
    recipe = recipes.get(arm.name)
    if recipe is None:
        return [Text("No resolved recipe is stored: plan.json has none, and no run has started.")]
    blocks: list[Block] = []
    base = recipes.get(results.study.baseline)
    if base is not None and not arm.is_baseline:
        blocks.append(_against_baseline(results, arm, base, recipe))
    blocks.append(
        Text(
            "The whole resolved recipe. A study sets train.seed and train.data_seed for each run; "
            "every run keeps its own as recipe.yaml."
        )
    )
    return [*blocks, Code(write_yaml(dict(recipe)).splitlines())]


def _against_baseline(
    results: Results, arm: ArmResult, base: Mapping[str, Any], recipe: Mapping[str, Any]
) -> Table:
    baseline = results.study.baseline
    found = differences(base, recipe)
    rows = [
        [path, _value(one), _value(other)]
        for path, (one, other) in found.items()
        if path not in ("name", "description", "train.seed", "train.data_seed")
    ]
    caption = f"What differs from the recipe of {baseline}"
    rows = rows or [["nothing but the name", "", ""]]
    return Table(caption, words("path", baseline, arm.name), rows, name="recipe")


def _value(value: object) -> str:
    return "absent" if value is ABSENT else shown(value)


def _files(results: Results, arm: ArmResult) -> list[Block]:
    runs = [run for run in results.runs if run.arm == arm.name]
    names = list(dict.fromkeys(name for run in runs for name in run.files))
    if not names:
        return [Text("No run has written a file yet.")]
    rows = [
        [str(run.seed), *(name if name in run.files else wording.NONE for name in names)]
        for run in runs
    ]
    links = {
        (row, column): f"{UP}{file_target(run.files[name])}"
        for row, run in enumerate(runs)
        for column, name in enumerate(names, start=1)
        if name in run.files
    }
    columns = words("seed", *names)
    return [Table("Files of each run", columns, rows, name="files", links=links)]
