"""`write_report(out)`: results.json, report.html, report.md and the figures of a study folder."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment

from posattn.comparison.report.arms import write_arm_pages
from posattn.comparison.report.exports import exports, with_exports, write_exports
from posattn.comparison.report.facts import shown
from posattn.comparison.report.figures import report_figures
from posattn.comparison.report.files import write_figures
from posattn.comparison.report.links import arm_page, link_up, slug
from posattn.comparison.report.sections import study_sections
from posattn.comparison.results import collect
from posattn.errors import PosattnError
from posattn.figures import page_environment
from posattn.training.durable import write_bytes

TEMPLATES = ("report.html.j2", "report.md.j2", "arm.html.j2")


@dataclass(frozen=True)
class ReportPaths:
    """Where a report lies."""

    html: Path
    markdown: Path
    results: Path
    figures: Path


def write_report(out: Path, *, into: Path | None = None) -> ReportPaths:
    """Write the report of the study folder `out`, finished or not, and return its paths.

    It is written into `out` itself, or into `into`, another folder that exists. Raises
    `RecipeError` for a folder that is no study, `DataError` for a file of it that cannot be read,
    and `PosattnError` where the report cannot be written.
    """
    results = collect(out)
    figures = report_figures(results)
    sections = study_sections(results, figures, _folder_name(out))
    target = into or out
    paths = ReportPaths(
        html=target / "report.html",
        markdown=target / "report.md",
        results=target / "results.json",
        figures=target / "figures",
    )
    environment = _environment()
    pages = {arm.name: arm_page(arm.name) for arm in results.arms}
    made = exports(results)
    linked = link_up(with_exports(sections, made), pages, "figures")
    html = environment.get_template("report.html.j2").render(
        results=results, sections=linked, pages=pages
    )
    markdown = environment.get_template("report.md.j2").render(results=results, sections=sections)
    try:
        paths.figures.mkdir(exist_ok=True)
        write_figures(figures.values(), paths.figures)
        write_exports(made, slug(results.study.name), target)
        write_arm_pages(results, sections, target, environment, source=out)
        write_bytes(paths.results, f"{results.to_json()}\n".encode())
        write_bytes(paths.markdown, markdown.encode())
        write_bytes(paths.html, html.encode())
    except OSError as error:
        raise PosattnError(f"the report cannot be written to {target}: {error}") from error
    return paths


@cache
def _environment() -> Environment:
    """Return the templates of the report, compiled once in a process."""
    environment = page_environment({name: _template(name) for name in TEMPLATES})
    environment.filters["change"] = shown
    return environment


def _template(name: str) -> str:
    package = files("posattn.comparison.report")
    return (package / "templates" / name).read_text(encoding="utf-8")


def _folder_name(out: Path) -> str:
    """Return the folder as the user gave it, relative to nothing on this machine where possible."""
    return out.as_posix().rstrip("/") if not out.is_absolute() else out.name
