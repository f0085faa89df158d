"""Checkpoints that are whole or not there: safetensors and JSON only, hashes in a last marker.

A checkpoint is a folder `step-00000200`. It is written under a temporary name, every file is
flushed to the disk, the marker `COMPLETE` (the SHA-256 of each file) comes last, and only then the
folder gets its name. A kill at any moment leaves the older checkpoints as they were.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posattn.errors import CheckpointError
from posattn.training.durable import (
    TEMPORARY,
    read_json,
    remove_temporary,
    replace_folder,
    strict_json,
    sync_folder,
    write_and_sync,
    write_failure,
)

MARKER = "COMPLETE"
_NAME = re.compile(r"step-(\d{8,})")


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint on the disk."""

    folder: Path
    step: int
    state: dict[str, Any]


def checkpoint_name(step: int) -> str:
    """Return the folder name of a step; names sort as steps do."""
    return f"step-{step:08d}"


def save_checkpoint(
    root: Path, step: int, files: Mapping[str, bytes], state: Mapping[str, Any]
) -> Path:
    """Write a checkpoint of `files` by name and of `state` as state.json; return its folder.

    A full disk raises `RunFailed`, removes what was written, and leaves older checkpoints alone.
    """
    target = root / checkpoint_name(step)
    contents = {**files, "state.json": strict_json(state, indent=1).encode()}
    temporary = root / f"{TEMPORARY}{os.getpid()}-{target.name}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        remove_temporary(root)
        temporary.mkdir()
        for name, content in contents.items():
            write_and_sync(temporary / name, content)
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        marker = json.dumps({"step": step, "sha256": hashes}, indent=1)
        write_and_sync(temporary / MARKER, marker.encode())
        sync_folder(temporary)
        replace_folder(temporary, target)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        size = sum(len(content) for content in contents.values())
        raise write_failure(error, target, size) from error
    return target


def newest_checkpoint(root: Path) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest complete checkpoint, or None, and why each newer one was passed over."""
    passed_over: list[str] = []
    for folder in reversed(list_checkpoints(root)):
        problem = find_problem(folder)
        if problem:
            passed_over.append(f"{folder.name}: {problem}")
            continue
        state = read_json(folder / "state.json")
        return Checkpoint(folder, int(state["step"]), state), passed_over
    return None, passed_over


def list_checkpoints(root: Path) -> list[Path]:
    """Return the folders named as checkpoints, complete or not, oldest first."""
    if not root.is_dir():
        return []
    found = [path for path in root.iterdir() if path.is_dir() and _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step-")))


def find_problem(folder: Path) -> str | None:
    """Return why a checkpoint is not complete, or None."""
    marker = folder / MARKER
    if not marker.is_file():
        return f"{MARKER} is missing, so saving did not end"
    try:
        content = read_json(marker)
        hashes = dict(content["sha256"])
    except (ValueError, KeyError, TypeError):
        return f"{MARKER} is damaged"
    if "state.json" not in hashes:
        return f"{MARKER} does not list state.json"
    for name, expected in hashes.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                return f"{name} ({path.stat().st_size} bytes) is not what was saved"
    return None


def need_checkpoint(root: Path) -> tuple[Checkpoint, list[str]]:
    """Return the newest complete checkpoint; raise `CheckpointError` if there is none."""
    found, passed_over = newest_checkpoint(root)
    if found is None:
        why = "; ".join(passed_over) or "none was saved"
        raise CheckpointError(
            f"no complete checkpoint in {root} ({why}); delete the run folder to start anew"
        )
    return found, passed_over


def prune_checkpoints(root: Path, keep: int) -> None:
    """Delete all but the newest `keep` checkpoints; the marker goes first."""
    for folder in list_checkpoints(root)[:-keep]:
        remove_checkpoint(folder)


def remove_checkpoint(folder: Path) -> None:
    """Delete a checkpoint so that a kill on the way leaves it marked as incomplete."""
    (folder / MARKER).unlink(missing_ok=True)
    shutil.rmtree(folder)
