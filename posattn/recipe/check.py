"""Whether a recipe can run, found out without running it: the model is built, the backend is asked."""

from dataclasses import dataclass

import torch
from torch import Tensor

from posattn.encoder.model import MaskedLanguageModel, position_parameters
from posattn.errors import IncompatibleParts
from posattn.recipe.build import build_on_meta
from posattn.recipe.capability import put_question
from posattn.recipe.schema import Recipe
from posattn.training.compiling import check_compiler
from posattn.training.forward import autocast
from posattn.training.start import check_start

TRIAL_LENGTH = 16
TRIAL_VOCABULARY = 8


@dataclass(frozen=True)
class CheckedRecipe:
    """What building the model showed; `backends` are those that the layers will use here."""

    parameters: int
    position_parameters: int
    embedding_parameters: int
    backends: tuple[str, ...]

    @property
    def backend(self) -> str:
        """Return the backends in words."""
        return " and ".join(self.backends)


def check_recipe(
    recipe: Recipe, vocab_size: int | None = None, *, resumed: bool = False
) -> CheckedRecipe:
    """Return the model's counts and backends; raise `BackendRefusal` with reasons if it cannot run.

    The backends are asked on this machine, on the device and in the precision that training would use.
    Raises `IncompatibleParts` if the encoder needs a relation for every text, which no corpus gives.
    A run that is `resumed` needs the folder no more that its weights came from.
    """
    check_inputs(recipe)
    if recipe.train.compile:
        check_compiler(_device(recipe))
    model = build_on_meta(recipe, vocab_size)
    if recipe.train.start is not None and not resumed:
        check_start(model, recipe.train.start)
    ours = position_parameters(model)
    sizes = {name: parameter.numel() for name, parameter in model.named_parameters()}
    return CheckedRecipe(
        parameters=sum(sizes.values()),
        position_parameters=sum(sizes[name] for name in ours),
        embedding_parameters=model.encoder.tokens.weight.numel(),
        backends=_backends_in_use(recipe, build_on_meta(recipe, TRIAL_VOCABULARY)),
    )


def check_inputs(recipe: Recipe) -> None:
    """Raise `IncompatibleParts` if the encoder needs more than the tokens of a text."""
    relation = recipe.encoder.relation
    if relation.is_given:
        raise IncompatibleParts(
            f"encoder.relation '{relation.name}' is given with every forward, and text comes without; "
            "train such a model in Python, as docs/beyond_a_sequence.md shows, or use line or grid"
        )


def _backends_in_use(recipe: Recipe, model: MaskedLanguageModel) -> tuple[str, ...]:
    """Take a few tokens through the model in training mode, with weights that take no memory.

    Attention itself is not computed: the backend is asked who would compute it.
    """
    device = _device(recipe)
    asking = put_question(model, model.encoder.backend)
    ids = torch.zeros(1, min(TRIAL_LENGTH, recipe.data.max_length), dtype=torch.long, device=device)
    inputs: dict[str, Tensor] = {"selected": torch.ones_like(ids, dtype=torch.bool)}
    if recipe.encoder.segments:
        inputs["segments"] = torch.zeros_like(ids)
    if recipe.data.layout == "padded":
        inputs["visible"] = torch.arange(ids.shape[1], device=device)[None] < ids.shape[1] - 1
    elif not recipe.data.across_documents:
        inputs["documents"] = torch.zeros_like(ids)
    model.train()
    with autocast(device, recipe.train.precision):
        torch.func.functional_call(model, _weightless(model, device), (ids,), inputs)
    return tuple(sorted(asking.taking_part))


def _weightless(model: MaskedLanguageModel, device: torch.device) -> dict[str, Tensor]:
    """Return a tensor for every weight: one zero, seen in the shape of the weight."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {
        name: torch.zeros((), dtype=tensor.dtype, device=device)
        .expand(tensor.shape)
        .requires_grad_(tensor.requires_grad)
        for name, tensor in tensors.items()
    }


def _device(recipe: Recipe) -> torch.device:
    asked = recipe.train.device
    if asked == "auto":
        asked = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(asked)
