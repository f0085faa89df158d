"""What a run writes into its folder, each file whole or not there."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from posattn.errors import CheckpointError
from posattn.training.checkpoint import (
    list_checkpoints,
    prune_checkpoints,
    remove_checkpoint,
    save_checkpoint,
)
from posattn.training.durable import (
    TEMPORARY,
    read_json,
    replace_folder,
    strict_record,
    write_and_sync,
    write_bytes,
    write_json,
    writing,
)
from posattn.training.metrics import MetricsFile, cut_metrics
from posattn.training.opening import Opening
from posattn.training.run_folder import RunFolder, Status


class Record:
    """Writes into a run folder; made in one process of a run only."""

    def __init__(
        self,
        folder: RunFolder,
        opening: Opening,
        recipe_text: str,
        info: Mapping[str, Any],
        environment: Mapping[str, Any],
    ) -> None:
        """Make the folder ready: descriptions written, metrics cut back, torn checkpoints gone.

        Raises `CheckpointError` if the run was started on other text.
        """
        self.folder = folder
        self.recipe_text = recipe_text
        checkpoint = opening.checkpoint
        plain = strict_record(info)
        if checkpoint is not None and folder.data.exists() and read_json(folder.data) != plain:
            raise CheckpointError(
                f"the text is not the one that {folder.path} was started with (its data.json "
                "differs); bring the old text back, or start anew in another folder"
            )
        with writing(folder.path):
            folder.create()
            write_bytes(folder.recipe, recipe_text.encode())
            write_json(folder.environment, environment)
            write_json(folder.data, plain)
            cut_metrics(folder.metrics, 0 if checkpoint is None else checkpoint.step)
        for torn in list_checkpoints(folder.checkpoints):
            if checkpoint is not None and torn.name > checkpoint.folder.name:
                remove_checkpoint(torn)
        self._metrics = MetricsFile(folder.metrics)

    def parameters(self, described: Mapping[str, Any]) -> None:
        """Write parameters.json."""
        with writing(self.folder.parameters):
            write_json(self.folder.parameters, described)

    def attention(self, described: Mapping[str, Any]) -> None:
        """Replace attention.json."""
        with writing(self.folder.attention):
            write_json(self.folder.attention, described)

    def line(self, line: Mapping[str, Any]) -> None:
        """Append a line to metrics.jsonl."""
        with writing(self.folder.metrics):
            self._metrics.write(line)

    def status(self, status: Status) -> None:
        """Replace status.json."""
        with writing(self.folder.status_file):
            self.folder.write_status(status)

    def checkpoint(
        self, step: int, files: Mapping[str, bytes], state: Mapping[str, Any], keep: int
    ) -> None:
        """Save a checkpoint, after the metrics that belong to it; delete those beyond `keep`."""
        with writing(self.folder.metrics):
            self._metrics.sync()
        save_checkpoint(self.folder.checkpoints, step, files, {**state, "recipe": self.recipe_text})
        prune_checkpoints(self.folder.checkpoints, keep)

    def final(self, weights: bytes, save_tokenizer: Callable[[Path], None]) -> None:
        """Write the trained model with its recipe and tokenizer."""
        target = self.folder.final
        temporary = target.with_name(f"{TEMPORARY}{target.name}")
        with writing(target):
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            write_and_sync(temporary / "model.safetensors", weights)
            write_and_sync(temporary / "recipe.yaml", self.recipe_text.encode())
            save_tokenizer(temporary / "tokenizer.json")
            replace_folder(temporary, target)

    def close(self) -> None:
        """Close the metrics file."""
        self._metrics.close()
