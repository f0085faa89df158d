"""`posattn compare` and `posattn report`: a whole study, and its report once more."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from posattn.cli.app import OutOption, SetOption, again_with, app, continues_with
from posattn.errors import PosattnError, RecipeError

MOST_DIFFERENCES = 100


@app.command(
    epilog="Examples: posattn compare quick --out runs/quick | "
    "posattn compare my/study.yaml --out runs/mine --jobs 2 | "
    "posattn compare quick --out runs/short --set train.steps=100 --set 'seeds=[0, 1]'. "
    "Exit codes: 0 every run finished and the report is written, 2 bad study, or arms that are not "
    "comparable, 3 data, 5 some runs did not finish (the report covers the others), 130 interrupted."
)
def compare(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="A study file, or the name of a shipped study.")
    ],
    out: OutOption,
    overrides: SetOption,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            min=1,
            metavar="N",
            help="Runs at a time; by default as many as the cores allow.",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            metavar="NAME",
            help="Of a study with tasks, run this one only. Repeat for more.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Run a study: every arm with every seed, under control, then the report.

    A study with tasks runs one after the other; one that fails stops no other, and the exit code
    is that of the worst. Running the same command again continues where it was stopped.
    """
    from posattn.cli.study_progress import study_progress
    from posattn.comparison.run import run_study
    from posattn.comparison.study import load_study
    from posattn.comparison.suite import run_suite

    loaded, only = load_study(study, overrides), task or []
    if only and not loaded.tasks:
        raise RecipeError(f"--task {only[0]}: the study '{loaded.name}' has no tasks")
    words = [] if jobs is None else ["--jobs", str(jobs)]
    words += [word for name in only for word in ("--task", name)]
    again = again_with("compare", study, "--out", str(out), *words, overrides=overrides)
    with continues_with(again), study_progress() as draw:
        if loaded.tasks:
            report = run_suite(loaded, out, jobs=jobs, progress=draw, only=only).report.html
        else:
            report = run_study(loaded, out, jobs=jobs, progress=draw).report.html
    sys.stdout.write(f"Report: {report}\n")


@app.command(
    epilog="Examples: posattn report runs/quick | posattn report runs/first runs/second --out runs/both | "
    "posattn report runs/quick --check"
)
def report(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="The folder of a study; or several, with --out."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where the page over several studies goes.",
            show_default=False,
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Write nothing: recompute every number from the runs and compare it with the "
            "report in the folder; exit code 1 if one differs.",
        ),
    ] = False,
) -> None:
    """Write the report of a study's folder again, from what its runs have stored so far.

    In the folder of a study with tasks, the reports of its tasks are written too. Several folders are
    set side by side on one page in --out: what differs between them, scores, differences.
    """
    from posattn.comparison.suite.files import is_suite

    if check:
        _check(folders, out)
        return
    if len(folders) > 1 or out is not None:
        page = _several(folders, out)
    else:
        page = _suite(folders[0]) if is_suite(folders[0]) else _study(folders[0])
    sys.stdout.write(f"Report: {page}\n")


def _several(folders: list[Path], out: Path | None) -> Path:
    from posattn.comparison.several import write_comparison

    if out is None:
        raise RecipeError("several folders make one page of their own: say where with --out DIR")
    if len(folders) == 1:
        raise RecipeError(
            f"--out is for several folders; the report of one goes into it: posattn report {folders[0]}"
        )
    return write_comparison(folders, out).html


def _study(folder: Path) -> Path:
    from posattn.comparison.report import write_report

    return write_report(folder).html


def _suite(folder: Path) -> Path:
    from posattn.comparison.suite.report import write_suite_report

    for plan in sorted(folder.glob("tasks/*/plan.json")):
        _study(plan.parent)
    return write_suite_report(folder).html


def _check(folders: list[Path], out: Path | None) -> None:
    """Print that the report of one folder is what its runs give, or raise with every difference."""
    from posattn.comparison.recomputation import recompute, recompute_suite
    from posattn.comparison.suite.files import is_suite

    if len(folders) > 1 or out is not None:
        raise RecipeError("--check is of one folder and writes nothing: posattn report DIR --check")
    folder = folders[0]
    found = recompute_suite(folder) if is_suite(folder) else recompute(folder)
    if found.differences:
        count = len(found.differences)
        listed = "\n".join(f"  {text}" for text in found.differences[:MOST_DIFFERENCES])
        more = "" if count <= MOST_DIFFERENCES else f"\n  and {count - MOST_DIFFERENCES} more"
        raise PosattnError(
            f"{folder} is not what its runs give: {count} "
            f"{'difference' if count == 1 else 'differences'}\n{listed}{more}"
        )
    sys.stdout.write(
        f"Equal: {found.files} files of {folder}, recomputed from the files of {found.runs} runs\n"
    )
