"""The entry point `posattn`: exit codes, messages instead of tracebacks for the user's errors.

Exit codes: 0 the result exists; 1 other errors (and `diff`: the recipes differ); 2 bad recipe or usage;
3 data; 4 a run failed; 5 a study is incomplete; 130 interrupted.
"""

import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, NoReturn, TextIO

import typer

import posattn
from posattn.cli import (
    bench,
    compare,
    diff,
    doctor,
    export,
    gallery,
    importing,
    inspecting,
    listing,
    mechanism,
    probe,
    schema,
    show,
    swap,
    tensorboard,
    train,
    validate,
    watch,
)
from posattn.cli.app import app, say
from posattn.errors import PosattnError

__all__ = [
    "bench",
    "compare",
    "diff",
    "doctor",
    "export",
    "gallery",
    "importing",
    "inspecting",
    "listing",
    "mechanism",
    "probe",
    "run",
    "schema",
    "show",
    "swap",
    "tensorboard",
    "train",
    "validate",
    "watch",
]


def _print_version(wanted: bool) -> bool:
    if wanted:
        sys.stdout.write(f"posattn {posattn.__version__}\n")
        raise typer.Exit
    return wanted


@app.callback(
    epilog="Start with: posattn list recipes, posattn show rope --card, posattn compare quick. "
    "Exit codes: 0 done, 1 other error, 2 bad recipe or usage, 3 data, 4 failed run, "
    "5 incomplete study, 130 interrupted."
)
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Controlled comparison of position mechanisms in Transformer encoders."""


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; `arguments` are those of the process unless given."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            app(args=arguments, prog_name="posattn")
        except PosattnError as error:
            say(f"Error: {error}")
            sys.exit(error.exit_code)
        except BrokenPipeError:
            raise
        except OSError as error:  # a full disk behind the standard output, a file that went away
            say(f"Error: {error}")
            sys.exit(1)
    sys.exit(0)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say(f"Warning: {message}")
