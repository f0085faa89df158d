"""Where a run starts: anew, from a checkpoint, or not at all because it has ended already."""

from dataclasses import dataclass

from posattn.errors import CheckpointError, RecipeError
from posattn.training.checkpoint import Checkpoint, newest_checkpoint
from posattn.training.run_folder import RunFolder
from posattn.training.run_inputs import RunResult
from posattn.training.same_recipe import check_same_recipe


@dataclass(frozen=True)
class Opening:
    """What was found in a run folder; `result` is set if there is nothing left to do."""

    result: RunResult | None = None
    checkpoint: Checkpoint | None = None
    resumed: int = 0
    notes: tuple[str, ...] = ()


def open_run(folder: RunFolder, recipe_text: str, resume: bool) -> Opening:
    """Look where to start, changing nothing.

    Raises `RecipeError` if a run is there and `resume` is not asked for, and `CheckpointError` if
    it is of another recipe or if no checkpoint of those there is complete.
    """
    if not folder.holds_run():
        return Opening()
    status = folder.read_status()
    if not resume:
        state = "unknown" if status is None else f"{status.state}, step {status.step}"
        raise RecipeError(
            f"{folder.path} already holds a run ({state}); continue it with --resume "
            "(resume=True), choose another --out folder, or delete this one"
        )
    notes: list[str] = []
    if folder.recipe.exists():
        text = folder.recipe.read_text(encoding="utf-8")
        notes += check_same_recipe(text, recipe_text, str(folder.path))
    if status is not None and _has_ended(folder, status.state):
        ended = RunResult(
            status.state, status.step, folder.path, status.reason, tuple(status.notes)
        )
        return Opening(result=ended)
    checkpoint, passed_over = newest_checkpoint(folder.checkpoints)
    if checkpoint is None and passed_over:
        raise CheckpointError(
            f"no complete checkpoint in {folder.checkpoints} ({'; '.join(passed_over)}); "
            f"delete {folder.path} to start anew"
        )
    if checkpoint is not None:
        where = str(checkpoint.folder)
        notes += check_same_recipe(checkpoint.state["recipe"], recipe_text, where)
        notes.append(f"resumed from {checkpoint.folder.name}")
    else:
        notes.append("started anew: the run was stopped before its first checkpoint")
    notes += [f"passed over {problem}" for problem in passed_over]
    earlier = status.resumed if status is not None else 0
    return Opening(None, checkpoint, earlier + 1, tuple(dict.fromkeys(notes)))


def _has_ended(folder: RunFolder, state: str) -> bool:
    if state == "diverged":
        return True
    return state == "finished" and (folder.final / "model.safetensors").is_file()
