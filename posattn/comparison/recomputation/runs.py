"""Whether the files of one run agree with each other, so that its scores are what its samples say."""

import math
from collections.abc import Iterator
from pathlib import Path

from posattn.comparison.study_files import Examples, RunFiles, StoredValidation
from posattn.training.checkpoint import newest_checkpoint
from posattn.training.metrics import read_metrics
from posattn.training.run_folder import RunFolder

TOLERANCE = 1e-9


def disagreements_in(run: RunFiles, out: Path) -> Iterator[str]:
    """Yield what does not fit in the folder of one run, each with the file's path."""
    folder = RunFolder(out / run.folder)
    validation = run.evaluations.validation if run.evaluations else None
    if validation is not None and run.examples is not None:
        for text in _against_examples(validation, run.examples):
            yield f"{run.folder}/evaluations.json: {text}"
    if run.status is None or run.status.state != "finished":
        return
    if validation is not None and run.examples is None:
        yield f"{run.folder}/examples.npz: missing, so the scores cannot be recomputed"
    for text in _against_metrics(run, folder.metrics):
        yield f"{run.folder}/status.json: {text}"
    for text in newest_checkpoint(folder.checkpoints)[1]:
        yield f"{run.folder}/checkpoints: {text}"


def _against_examples(stored: StoredValidation, examples: Examples) -> Iterator[str]:
    """Compare scores with total over total of the samples' sums."""
    targets = float(examples.targets.sum())
    if stored.targets is not None and stored.targets != targets:
        yield f"validation.targets is {stored.targets}, examples.npz has {targets:.0f}"
    if targets == 0:
        return
    totals = {"loss": math.fsum(examples.loss_sum), "accuracy": float(examples.correct.sum())}
    for name, total in totals.items():
        value = getattr(stored, name)
        if value is not None and not math.isclose(value, total / targets, rel_tol=TOLERANCE):
            yield f"validation.{name} is {value!r}, examples.npz gives {total / targets!r}"


def _against_metrics(run: RunFiles, path: Path) -> Iterator[str]:
    """Compare where the run ended with the last line that it logged."""
    lines = read_metrics(path)
    if run.status is None or not lines:
        return
    for key in ("step", "tokens"):
        ended, logged = getattr(run.status, key), lines[-1].get(key)
        if logged is not None and ended != logged:
            yield f"{key} is {ended}, the last line of metrics.jsonl has {logged}"
