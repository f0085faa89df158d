"""`self_test`: one arm's model, untrained and moved at random, asked what its parts promise.

Weights are moved so that what starts at zero counts. Promises of position are asked in float64 of the eager
backend, which is the definition; the backend that trains is then held against it.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from posattn.comparison.evaluations.changes import Check, compare
from posattn.comparison.evaluations.padding import PaddingConfig, PaddingEvaluation
from posattn.comparison.evaluations.permutation import PermutationConfig, PermutationEvaluation
from posattn.comparison.evaluations.probed import Probed, as_asked
from posattn.comparison.evaluations.promised import PromisedEvaluation
from posattn.comparison.evaluations.promises import Promise, of_translation
from posattn.comparison.evaluations.shift import ShiftConfig, ShiftEvaluation, at_positions
from posattn.comparison.evaluations.subject import device_of
from posattn.comparison.worker import Report
from posattn.encoder.model import MaskedLanguageModel
from posattn.recipe.build import build
from posattn.recipe.schema import Recipe
from posattn.training.determinism import reproducible

SYMBOLS, PADDING = 24, 0
ROWS, LENGTH, ROOM = 2, 24, 32
"""Tokens of a row, and places beside them; both less where the model's table ends before."""
FAR = 4099
"""How far a row is moved: beyond thresholds below which position does not count, and no period."""
LENGTHS = (1, 2, 7, 2 * LENGTH)
"""Rows whose gradients are looked at: the shortest, an odd one, one longer than all before."""
MATRIX, VECTOR = 0.5, 0.1
"""Standard deviation of what is added to weights; in a matrix over the root of its columns."""
EXACT, ROUNDED = 1e-6, 1e-4
"""What may change in float64, and between backends in float32, as a share of the largest logit."""


@dataclass(frozen=True)
class SelfTestTask:
    """The recipe of an arm."""

    recipe: Recipe


def self_test(task: SelfTestTask, report: Report) -> dict[str, Any]:
    """Return every check of one arm as plain data; `broken` names those that did not hold."""
    recipe = task.recipe
    with reproducible(recipe.train.threads):
        model = moved(build(recipe, SYMBOLS)).to(device_of(recipe))
        checks = [*position_checks(model, recipe), *backend_checks(model)]
        lost = lost_gradients(model)
    broken = [_words(name, check) for name, check in checks if check.held is False]
    broken += [f"gradients at {length} tokens are not finite: {names}" for length, names in lost]
    return {
        "checks": [{"of": name, **check.plain()} for name, check in checks],
        "gradient_lengths": lengths(model),
        "broken": broken,
    }


def moved(model: MaskedLanguageModel) -> MaskedLanguageModel:
    """Return the model with every weight moved a little, the same each time."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            spread = VECTOR if parameter.ndim < 2 else MATRIX / parameter.shape[-1] ** 0.5
            parameter.add_(spread * torch.randn(parameter.shape, generator=generator))
    return model


def position_checks(model: MaskedLanguageModel, recipe: Recipe) -> list[tuple[str, Check]]:
    """Return what moving, reordering and padding the row does, against what the parts promise."""
    limit = model.max_length()
    room = ROOM if limit is None else min(ROOM, limit // 2)
    length = LENGTH if limit is None else min(LENGTH, limit - room)
    if room < 1 or length < 2:
        return []
    asked = Probed(as_asked(model, "float64"), _ids(ROWS, length), PADDING)
    offsets = tuple(sorted({1, room}))
    evaluations: list[PromisedEvaluation] = [
        PermutationEvaluation(PermutationConfig(tolerance=EXACT)),
        PaddingEvaluation(PaddingConfig(extra=room, dtype="float64", tolerance=EXACT)),
    ]
    if recipe.encoder.relation.name == "line":
        if of_translation(recipe.encoder, recipe.decoder).same:
            evaluations.append(ShiftEvaluation(ShiftConfig(offsets=offsets, tolerance=EXACT)))
        shifts = [("shift", _far(asked, recipe, FAR if limit is None else room))]
    else:
        shifts = []
    checks = [
        (evaluation.config.name, check)
        for evaluation in evaluations
        for check in evaluation.checks(asked, recipe)
    ]
    return [*shifts, *checks]


def _far(asked: Probed, recipe: Recipe, offset: int) -> Check:
    """Return what moving the row by one and so far does; what sees absolute positions sees one of them."""
    here = at_positions(asked, 0)
    there = torch.cat([at_positions(asked, 1), at_positions(asked, offset)])
    promise = of_translation(recipe.encoder, recipe.decoder)
    return compare("positions", torch.cat([here, here]), there, promise, EXACT, offset)


def backend_checks(model: MaskedLanguageModel) -> list[tuple[str, Check]]:
    """Return how far the recipe's own backend is from the definition, with padding on either side."""
    limit = model.max_length()
    length = LENGTH if limit is None else min(LENGTH, limit)
    ids, exact = _ids(ROWS, length), as_asked(model, "float64")
    promise = Promise(True, "the backend computes what the eager one, the definition, does")
    checks = []
    for side in ("right", "left"):
        visible = _visible(length, side)
        answers = [Probed(m, ids, PADDING).logits(ids, visible) for m in (exact, model)]
        expected, found = (answer[visible][None] for answer in answers)
        checks.append(("backend", compare(f"padding {side}", expected, found, promise, ROUNDED)))
    return checks


def lengths(model: MaskedLanguageModel) -> list[int]:
    """Return the lengths at which gradients are looked at; the last is the table's if there is one."""
    limit = model.max_length()
    return sorted({n if limit is None else min(n, limit) for n in LENGTHS})


def lost_gradients(model: MaskedLanguageModel) -> list[tuple[int, str]]:
    """Return by length the parameters whose gradient is not finite, in training as it will be."""
    lost = []
    model.train()
    for length in lengths(model):
        model.zero_grad()
        ids = _ids(ROWS, length).to(model.encoder.tokens.weight.device)
        visible = _visible(length, "right").to(ids.device)
        logits = model(ids, visible=visible, segments=torch.zeros_like(ids)).logits[visible]
        logits.float().logsumexp(-1).mean().backward()
        names = [
            name
            for name, parameter in model.named_parameters()
            if parameter.grad is not None and not bool(parameter.grad.isfinite().all())
        ]
        if names:
            lost.append((length, ", ".join(names)))
    model.zero_grad()
    return lost


def _ids(rows: int, length: int) -> Int[Tensor, "rows length"]:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(PADDING + 1, SYMBOLS, (rows, length), generator=generator)


def _visible(length: int, side: str) -> Bool[Tensor, "rows length"]:
    """Return a whole row, and one of which a third is padding on one side."""
    visible = torch.ones(ROWS, length, dtype=torch.bool)
    third = length // 3
    visible[-1, length - third :] = False
    return visible if side == "right" else visible.flip(1)


def _words(name: str, check: Check) -> str:
    amount = "" if check.amount is None else f" by {check.amount}"
    must = "must not change" if check.same else "must change"
    return (
        f"{name} ({check.name}{amount}): logits {must}, for {check.because}, and differ by "
        f"{check.relative:.2g} of the largest"
    )
