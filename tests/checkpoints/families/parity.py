"""What the parity tests of single families share: states, logits and heads, compared with transformers."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posattn.checkpoints import Pretrained
from tests.checkpoints.originals import (
    SIZES,
    Sample,
    all_states,
    gap,
    sample,
    segments_for,
    stirred,
)

LENGTHS = (1, 7, 24, 47)


def original(model: type, config: type, size: str = "tiny", **options: Any) -> Any:
    """Return a random model of transformers in evaluation mode; `options` go over the size."""
    made = model(config(**(SIZES[size] | options)))
    return stirred(made, 0.2 if size == "tiny" else 0.03)


def inputs(found: Pretrained, given: Sample) -> dict[str, Tensor]:
    """Return the inputs of a model of transformers for the same batch."""
    segments = segments_for(found, given.segments)
    both = {"input_ids": given.ids, "attention_mask": given.visible.long()}
    return both if segments is None else {**both, "token_type_ids": segments}


def on_the_left(given: Sample) -> Sample:
    """Return the batch with padding on the left."""
    counts = given.visible.sum(1)
    places = torch.arange(given.ids.shape[1])
    turned = (places[None] + counts[:, None]) % given.ids.shape[1]
    return Sample(*(part.gather(1, turned) for part in given))


def largest_difference(
    original: Any,
    found: Pretrained,
    lengths: tuple[int, ...] = LENGTHS,
    sides: tuple[str, ...] = ("right", "left"),
) -> float:
    """Return the largest difference of all layers' states, and of the logits if there are any."""
    gaps = []
    for length in lengths:
        given = sample(length)
        for side in sides:
            padded = given if side == "right" else on_the_left(given)
            gaps += _differences(original, found, padded)
    return max(gaps)


def _differences(original: Any, found: Pretrained, given: Sample) -> list[float]:
    theirs = original(**inputs(found, given), output_hidden_states=True)
    ours = all_states(found, given)
    assert len(ours) == len(theirs.hidden_states)
    pairs = zip(ours, theirs.hidden_states, strict=True)
    gaps = [gap(one, other, given.visible) for one, other in pairs]
    if found.masked_lm is not None:
        segments = segments_for(found, given.segments)
        output = found.masked_lm(given.ids, visible=given.visible, segments=segments)
        gaps.append(gap(output.logits, theirs.logits, given.visible))
    return gaps


def head_difference(original: Any, found: Pretrained, task: str, given: Sample) -> float:
    """Return the largest difference of a head's logits; of a choice between a batch and its reverse."""
    theirs = inputs(found, given)
    if task == "choice":
        theirs = {key: torch.stack([value, value.flip(0)], 1) for key, value in theirs.items()}
    output = original(**theirs)
    ours = found.tasks(
        task,
        theirs["input_ids"],
        visible=theirs["attention_mask"].bool(),
        segments=theirs.get("token_type_ids"),
    ).logits
    if task == "span":
        expected = torch.stack([output.start_logits, output.end_logits], dim=-1)
    else:
        expected = output.logits
    return gap(ours, expected, given.visible if task in ("token", "span") else None)


def rewrite(folder: Path, **changes: Any) -> None:
    """Change keys of a folder's config.json; None takes a key out."""
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
