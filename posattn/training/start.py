"""`train.start`: weights that a run begins with, taken by name, and what is kept of where they came from."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from posattn.errors import CheckpointError
from posattn.training.config import StartConfig
from posattn.training.text.tokenizers import TextTokenizer
from posattn.training.weights import (
    Unmatched,
    copy_weights,
    read_tensors,
    shapes,
    stored_shapes,
    unique_tensors,
    unmatched,
)

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"


@dataclass(frozen=True)
class StartRecord:
    """Where a run's first weights came from: folder, SHA-256 of the file, names on one side only."""

    path: str
    sha256: str
    new: tuple[str, ...]
    unused: tuple[str, ...]

    def described(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return asdict(self)


def check_start(model: nn.Module, config: StartConfig) -> Unmatched:
    """Return what model and folder do not share; CheckpointError if a name of it is not accepted."""
    path = _weights(Path(config.path))
    found = unmatched(shapes(unique_tensors(model)[0]), stored_shapes(path))
    refused = found.refused(config.accept_new, config.accept_unused)
    if refused.new or refused.unused:
        raise CheckpointError(
            f"the weights in {path} do not fit this model: new in the model: {_listed(refused.new)}; "
            f"unused of the file: {_listed(refused.unused)}. Name what you accept in "
            "train.start.accept_new and train.start.accept_unused (with * for parts of names), or "
            "bring the encoder section in line with the file"
        )
    return found


def begin_from(model: nn.Module, config: StartConfig, tokenizer_digest: str | None) -> StartRecord:
    """Copy the folder's weights into the model and return the record.

    CheckpointError if names do not match, or if the folder holds another tokenizer than the run's.
    """
    found = check_start(model, config)
    folder = Path(config.path)
    _check_tokenizer(folder / TOKENIZER, tokenizer_digest)
    path = _weights(folder)
    copy_weights(model, read_tensors(path))
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return StartRecord(config.path, digest, found.new, found.unused)


def _weights(folder: Path) -> Path:
    path = folder / WEIGHTS
    if path.is_file():
        return path
    inner = folder / "final"
    hint = f"; did you mean {inner}?" if (inner / WEIGHTS).is_file() else ""
    raise CheckpointError(
        f"train.start: {folder} holds no {WEIGHTS}{hint} Name the folder `final` of a run, or one that "
        "posattn import wrote"
    )


def _check_tokenizer(path: Path, digest: str | None) -> None:
    if digest is None or not path.is_file() or TextTokenizer.load(path).digest == digest:
        return
    raise CheckpointError(
        f"the weights belong to the tokenizer {path}, and this run has another, so its ids would mean "
        f"other tokens; set data.tokenizer to {{name: file, path: {path}}}"
    )


def _listed(names: tuple[str, ...], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more
