"""`posattn doctor`: what this machine has, and what each backend computes of each mechanism on it."""

import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from posattn.cli.app import JsonOption, app, print_json


@app.command(
    epilog="Examples: posattn doctor | posattn doctor --mechanism rope --mechanism shaw --device cpu | "
    "posattn doctor --backend flex --json"
)
def doctor(
    mechanism: Annotated[
        list[str],
        typer.Option(metavar="NAME", help="Ask about this mechanism only. Repeat for more."),
    ] = [],  # noqa: B006 (typer copies it)
    backend: Annotated[
        list[str], typer.Option(metavar="NAME", help="Ask this backend only. Repeat for more.")
    ] = [],  # noqa: B006
    device: Annotated[
        list[str], typer.Option(metavar="NAME", help="cpu or cuda. Repeat for both.")
    ] = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """Show this machine, and which backend computes which mechanism on it, each no with its reason.

    Every backend is shown the mechanism's own attention in each dtype, in inference and in training,
    with and without dropout and packed documents.
    """
    from posattn.recipe.capability import DEVICES, absent_devices, ask_backends

    for name in device:
        if name not in DEVICES:
            raise typer.BadParameter(f"'{name}' is not one of {', '.join(DEVICES)}")
    absent = {k: why for k, why in absent_devices().items() if not device or k in device}
    answers = ask_backends(mechanism, backend, device)
    if as_json:
        records = [{**asdict(one), "able": not one.reasons} for one in answers]
        print_json({"machine": _machine(), "absent": absent, "answers": records})
        return
    for key, value in _machine().items():
        sys.stdout.write(f"{key}: {value}\n")
    for name, why in absent.items():
        sys.stdout.write(f"{name}: not asked about, {why}\n")
    draw_matrix(answers)


def draw_matrix(answers: Sequence[Any]) -> None:
    """Draw one table for each device; a number at a cell is the reason below, a name who would compute."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, numbers = Console(file=sys.stdout), _numbered(answers)
    for device in dict.fromkeys(answer.device for answer in answers):
        mine = [answer for answer in answers if answer.device == device]
        columns = list(dict.fromkeys(answer.backend for answer in mine))
        title = f"on {device}; the numbers are the reasons below"
        table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("mechanism", no_wrap=True, style="bold")
        for column in columns:
            table.add_column(column)
        for name in dict.fromkeys(answer.mechanism for answer in mine):
            cells = [_cell(mine, name, column, numbers) for column in columns]
            table.add_row(Text(name), *map(Text, cells))
        console.print(table)
    for reason, number in numbers.items():
        console.print(Text(f"{number}: {_when(answers, reason)}: {reason}"))


def _machine() -> dict[str, Any]:
    import torch

    from posattn.training.environment import cpu_model

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none that torch sees"
    return {
        "torch": torch.__version__,
        "cpu": f"{cpu_model()} ({torch.backends.cpu.get_cpu_capability()})",
        "threads": torch.get_num_threads(),
        "gpu": gpu,
    }


def _numbered(answers: Sequence[Any]) -> dict[str, int]:
    reasons = dict.fromkeys(reason for answer in answers for reason in answer.reasons)
    return {reason: number for number, reason in enumerate(reasons, 1)}


def _cell(answers: Sequence[Any], name: str, backend: str, numbers: dict[str, int]) -> str:
    mine = [one for one in answers if (one.mechanism, one.backend) == (name, backend)]
    why = sorted({numbers[reason] for answer in mine for reason in answer.reasons})
    takers = sorted({answer.taken_by for answer in mine if answer.taken_by is not None})
    if not takers:
        return f"no: {', '.join(map(str, why))}"
    able = "yes" if takers == [backend] else ", ".join(takers)
    return f"{able}, but {', '.join(map(str, why))}" if why else able


def _when(answers: Sequence[Any], reason: str) -> str:
    """Return the conditions under which the reason is given, those named that some other lacks."""
    given = [answer for answer in answers if reason in answer.reasons]
    backends = dict.fromkeys(answer.backend for answer in given)
    everything = [answer for answer in answers if answer.backend in backends]
    parts: dict[str, list[str]] = defaultdict(list)
    for what in ("device", "dtype", "training", "dropout", "packed"):
        ours = dict.fromkeys(_said(what, getattr(one, what)) for one in given)
        theirs = dict.fromkeys(_said(what, getattr(one, what)) for one in everything)
        if len(ours) < len(theirs):
            parts[what] = list(ours)
    shown = ", ".join(" or ".join(words) for words in parts.values())
    return f"{', '.join(backends)} ({shown})" if shown else ", ".join(backends)


def _said(what: str, value: Any) -> str:
    words = {
        "training": ("inference", "training"),
        "dropout": ("no dropout", "dropout"),
        "packed": ("padded", "packed"),
    }
    return words[what][bool(value)] if what in words else str(value)
