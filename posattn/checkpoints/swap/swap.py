"""`swap_checkpoint`: a trained model with another recipe, its shared weights kept, all else accounted for."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from posattn.checkpoints.loading import from_pretrained
from posattn.checkpoints.parts import Parts
from posattn.checkpoints.pretrained import Pretrained
from posattn.checkpoints.swap.starts import Change, Start, start_from_old
from posattn.checkpoints.writing import check_target, write_folder
from posattn.errors import CheckpointError, RecipeError
from posattn.recipe.merge import merge, read_overrides
from posattn.recipe.reader import Document, Origin
from posattn.recipe.resolve import Overrides, absolute_paths
from posattn.recipe.schema import Recipe, recipe_data, recipe_from_document
from posattn.training.durable import write_json
from posattn.training.weights import shapes, unmatched

REPORT = "swap.json"


@dataclass(frozen=True)
class Swapped:
    """The account of a swap: names of weights that are kept, new, started from old ones, or left out."""

    source: str
    changes: tuple[str, ...]
    kept: tuple[str, ...]
    started: tuple[str, ...]  # new, with values from the old mechanism
    new: tuple[str, ...]  # new, with values by seed and name
    dropped: tuple[str, ...]
    seed: int
    how: str  # what `started` holds; empty without it

    def record(self) -> dict[str, Any]:
        """Return the contents of swap.json."""
        return {"format": 1, **vars(self)}

    def summary(self) -> str:
        """Return the account in one sentence."""
        return (
            f"{len(self.kept)} tensors kept, {len(self.started)} started from the old mechanism, "
            f"{len(self.new)} new by seed {self.seed} and name, {len(self.dropped)} left out"
        )


def swap_checkpoint(
    source: str | Path, out: str | Path, overrides: Overrides, *, from_old: bool = False
) -> Swapped:
    """Write a model with a changed recipe as a folder that `posattn train` continues from.

    Weights that have the same name and shape under the new recipe are kept; others start as `train.seed`
    and their name say, or, with `from_old`, from the old mechanism (see `starts`). RecipeError if
    nothing changes in the model; CheckpointError if the old mechanism gives the new one no start.
    """
    check_target(Path(out))
    made = from_pretrained(source)
    recipe = _changed(made, overrides)
    old = made.tensors()
    rows = made.encoder.tokens.num_embeddings
    parts = Parts(recipe, made.heads(), made.masked_lm is not None, rows)
    found = unmatched(parts.shapes(), shapes(old))
    kept = {name: tensor for name, tensor in old.items() if name not in found.unused}
    start = Start({}, "")
    if from_old:
        start = start_from_old(Change(made.recipe.encoder, recipe.encoder, old))
    _check(start, parts, found.new)
    masked_lm, tasks = parts.build(kept | start.tensors)
    account = Swapped(
        source=str(source),
        changes=tuple(f"{'.'.join(item.path)}={item.value}" for item in read_overrides(overrides)),
        kept=tuple(sorted(kept)),
        started=tuple(sorted(start.tensors)),
        new=tuple(sorted(set(found.new) - start.tensors.keys())),
        dropped=tuple(sorted(found.unused)),
        seed=recipe.train.seed,
        how=start.how,
    )
    report = replace(made.report, source=str(source), new=found.new, unused=found.unused)
    write_folder(Pretrained(recipe, masked_lm, tasks, made.tokenizer, report), Path(out))
    write_json(Path(out) / REPORT, account.record())
    return account


def _changed(made: Pretrained, overrides: Overrides) -> Recipe:
    document = Document(recipe_data(made.recipe), {(): Origin(made.report.source)})
    for item in read_overrides(overrides):
        document = merge(document, absolute_paths(item.document(), Path.cwd()))
    recipe = recipe_from_document(document)
    sections = ("encoder", "decoder", "head")
    if all(getattr(recipe, name) == getattr(made.recipe, name) for name in sections):
        raise RecipeError(
            f"{made.report.source}: encoder, decoder and head stay as they are; name what to swap, such as "
            "--set encoder.mechanism.name=rope"
        )
    return recipe


def _check(start: Start, parts: Parts, new: tuple[str, ...]) -> None:
    """Raise CheckpointError if first values are not for new parameters, or not of their shape."""
    wanted = parts.shapes()
    given = shapes(start.tensors)
    if wrong := [name for name in given if name not in new or wanted[name] != given[name]]:
        raise CheckpointError(
            f"--start-from-old: the old mechanism gives {', '.join(wrong)} another form than the new one "
            "has; without it, new parameters start by seed and name"
        )
