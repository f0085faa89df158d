"""The application object that every command group adds its commands to, and what they share."""

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="posattn",
    help="Controlled comparison of position mechanisms in Transformer encoders.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

RecipeArgument = Annotated[
    str, typer.Argument(metavar="RECIPE", help="A recipe file, or the name of a shipped recipe.")
]
SetOption = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Replace one value by its dotted path, such as train.steps=100. Repeat for more.",
        default_factory=list,
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")]
OutOption = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write to.")]


def print_json(value: Any) -> None:
    """Print `value` as strict JSON on the standard output."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def say(message: str) -> None:
    """Print a message for people on the standard error output."""
    sys.stderr.write(message + "\n")
    sys.stderr.flush()


def again_with(*words: str, overrides: list[str]) -> str:
    """Return a posattn command line, quoted for the shell, with its overrides."""
    sets = [word for item in overrides for word in ("--set", item)]
    return shlex.join(["posattn", *words, *sets])


@contextmanager
def continues_with(command: str) -> Iterator[None]:
    """On Ctrl-C say that `command` continues the work, and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"Interrupted; nothing is lost. To continue where it stopped: {command}")
        raise typer.Exit(130) from None
