"""`write_arm_pages`: arms/ARM.html with its figures and their data, for every arm of a study."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment

from posattn.comparison.report.arms.figures import arm_figures
from posattn.comparison.report.arms.sections import arm_sections
from posattn.comparison.report.files import write_figures
from posattn.comparison.report.links import arm_page, link_up
from posattn.comparison.report.study_figures import arm_styles
from posattn.comparison.results_schema import Results
from posattn.comparison.study_files import read_json, read_yaml
from posattn.figures.blocks import Section
from posattn.training.durable import write_bytes

TEMPLATE = "arm.html.j2"


def write_arm_pages(
    results: Results,
    study: list[Section],
    out: Path,
    environment: Environment,
    *,
    source: Path,
) -> list[Path]:
    """Write the page of every arm of the study in `source` into `out`/arms; return their paths."""
    recipes, styles = arm_recipes(results, source), arm_styles(results)
    pages = {arm.name: arm_page(arm.name).removeprefix("arms/") for arm in results.arms}
    figures_folder = out / "arms" / "figures"
    figures_folder.mkdir(parents=True, exist_ok=True)
    written = []
    for arm in results.arms:
        figures = arm_figures(results, arm, styles)
        sections = arm_sections(results, arm, study, figures, recipes)
        html = environment.get_template(TEMPLATE).render(
            results=results, arm=arm, sections=link_up(sections, pages, "figures"), pages=pages
        )
        write_figures(figures.values(), figures_folder)
        path = out / arm_page(arm.name)
        write_bytes(path, html.encode(), synced=False)
        written.append(path)
    return written


def arm_recipes(results: Results, out: Path) -> dict[str, Mapping[str, Any]]:
    """Return the resolved recipe of each arm as planned, or as its first run has stored it."""
    planned = read_json(out / "plan.json", dict[str, Any]).get("arms", [])
    found = {arm["name"]: arm["recipe"] for arm in planned if arm.get("recipe")}
    for run in results.runs:
        if run.arm not in found:
            stored = read_yaml(out / run.folder / "recipe.yaml")
            found |= {run.arm: stored} if stored else {}
    return found
