"""`write_report(out)`: results.json, report.html, report.md and the figures of a study folder."""

import csv
import io
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from posattn.comparison.report.sections import study_sections
from posattn.comparison.report.study_figures import study_figures
from posattn.comparison.results import collect
from posattn.errors import PosattnError
from posattn.figures import Figure, page_environment, standalone
from posattn.training.durable import write_bytes

TEMPLATES = ("report.html.j2", "report.md.j2")


@dataclass(frozen=True)
class ReportPaths:
    """Where a report lies."""

    html: Path
    markdown: Path
    results: Path
    figures: Path


def write_report(out: Path) -> ReportPaths:
    """Write the report of the study folder `out`, finished or not, and return its paths.

    Raises `RecipeError` for a folder that is no study, `DataError` for a file of it that cannot be
    read, and `PosattnError` where the report cannot be written.
    """
    results = collect(out)
    figures = study_figures(results)
    sections = study_sections(results, figures, _folder_name(out))
    paths = ReportPaths(
        html=out / "report.html",
        markdown=out / "report.md",
        results=out / "results.json",
        figures=out / "figures",
    )
    environment = page_environment({name: _template(name) for name in TEMPLATES})
    html = environment.get_template("report.html.j2").render(results=results, sections=sections)
    markdown = environment.get_template("report.md.j2").render(results=results, sections=sections)
    try:
        paths.figures.mkdir(exist_ok=True)
        for figure in figures.values():
            write_bytes(paths.figures / f"{figure.name}.svg", standalone(figure.wide).encode())
            write_bytes(paths.figures / f"{figure.name}.csv", _csv(figure).encode())
        write_bytes(paths.results, f"{results.to_json()}\n".encode())
        write_bytes(paths.markdown, markdown.encode())
        write_bytes(paths.html, html.encode())
    except OSError as error:
        raise PosattnError(f"the report cannot be written to {out}: {error}") from error
    return paths


def _template(name: str) -> str:
    package = files("posattn.comparison.report")
    return (package / "templates" / name).read_text(encoding="utf-8")


def _csv(figure: Figure) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(figure.columns)
    writer.writerows(["" if value is None else value for value in row] for row in figure.rows)
    return buffer.getvalue()


def _folder_name(out: Path) -> str:
    """Return the folder as the user gave it, relative to nothing on this machine where possible."""
    return out.as_posix().rstrip("/") if not out.is_absolute() else out.name
