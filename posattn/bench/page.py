"""docs/performance.md, made of results; and the same figures for any folder."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import posattn
from posattn.bench.figures import speed_figure
from posattn.bench.results import BenchResult
from posattn.bench.tables import by_subject_and_stage, case_tables, target_table
from posattn.errors import PosattnError
from posattn.figures import Figure, page_environment, standalone
from posattn.training.durable import write_bytes

TEMPLATE = "performance.md.j2"


def write_page(results: Sequence[BenchResult], docs: Path) -> Path:
    """Write `performance.md` and `performance/*.svg` into the folder and return the page's path.

    Results whose plans have one name are told apart by a number behind it.
    """
    text = (files("posattn.bench") / "templates" / TEMPLATE).read_text(encoding="utf-8")
    names = _distinct([result.plan.name for result in results])
    parts = [_part(result, name) for result, name in zip(results, names, strict=True)]
    for part in parts:
        for section in part["sections"]:
            _write_figure(section["figure"], docs / "performance")
    on_gpu = any(result.plan.device == "cuda" for result in results)
    page = (
        page_environment({TEMPLATE: text})
        .get_template(TEMPLATE)
        .render(parts=parts, on_gpu=on_gpu, version=posattn.__version__)
    )
    path = docs / "performance.md"
    _write(path, page)
    return path


def write_figures(result: BenchResult, folder: Path) -> None:
    """Write the figures of a result as SVG files."""
    for cases in by_subject_and_stage(result.cases):
        _write_figure(speed_figure(cases, result.plan.name), folder)


def conditions(result: BenchResult) -> dict[str, str]:
    """Return what the numbers depend on, in words."""
    plan, found = result.plan, result.conditions
    libraries = {**found.get("versions", {}), **found.get("libraries", {})}
    shown = ("posattn", "torch", *found.get("libraries", {}))
    versions = [f"{name} {libraries[name]}" for name in shown if libraries.get(name)]
    device = found.get("device_name") or found.get("cpu", "unknown")
    rounds = f"at least {plan.rounds} rounds and {plan.seconds:g} s for each input"
    return {
        "machine": f"{device}, {found.get('threads')} thread(s) of {found.get('cores')} cores",
        "load before": f"{found['load_before']:.1f}"
        if found.get("load_before") is not None
        else "",
        "encoders": str(plan.size),
        "dtype": ", ".join(plan.precisions),
        "input": str(found.get("input", "")),
        "rounds": f"{rounds}, after {plan.warmup} to warm up; {found.get('order', '')}",
        "peak memory": str(found.get("memory_method", "")),
        "versions": ", ".join(versions),
        "date": str(found.get("date", "")),
        "complete": "no: it was interrupted" if result.interrupted else "yes",
    }


def _distinct(names: Sequence[str]) -> list[str]:
    """Return the names with a number behind each that was there before."""
    found: list[str] = []
    for name in names:
        number = 1
        while (one := name if number == 1 else f"{name}-{number}") in found:
            number += 1
        found.append(one)
    return found


def _part(result: BenchResult, name: str) -> dict[str, Any]:
    groups = by_subject_and_stage(result.cases)
    tables = case_tables(result.cases)
    return {
        "name": name,
        "command": result.plan.command,
        "conditions": conditions(result),
        "targets": target_table(result),
        "sections": [
            {
                "title": table.caption,
                "table": table,
                "figure": speed_figure(cases, name),
            }
            for cases, table in zip(groups, tables, strict=True)
        ],
    }


def _write_figure(figure: Figure, folder: Path) -> None:
    _write(folder / f"{figure.name}.svg", standalone(figure.wide))


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, text.encode())
    except OSError as error:
        raise PosattnError(f"the page cannot be written to {path}: {error}") from error
