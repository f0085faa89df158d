"""From a recipe and heads to models that share one encoder, and the names and shapes of their weights."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from posattn.encoder.encoder import Encoder
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel
from posattn.encoder.tasks import TaskConfig, TaskModel
from posattn.recipe.schema import Recipe
from posattn.training.weights import Shape, copy_weights, shapes, unique_tensors


@dataclass(frozen=True)
class Parts:
    """What a checkpoint is made of; `rows` is the number of rows of its token table."""

    recipe: Recipe
    tasks: Mapping[str, TaskConfig]
    has_head: bool
    rows: int

    def shapes(self) -> dict[str, Shape]:
        """Return names and shapes of all weights, tied ones once, without memory for them."""
        with torch.device("meta"):
            masked_lm, tasks = self._construct()
        found = {} if masked_lm is None else shapes(unique_tensors(masked_lm)[0])
        return found | shapes(unique_tensors(tasks)[0])

    def build(
        self, tensors: Mapping[str, torch.Tensor]
    ) -> tuple[MaskedLanguageModel | None, TaskModel]:
        """Return the masked language model, or None without its head, and the model of the other heads.

        What `tensors` do not hold starts as `train.seed` and its name say.
        """
        masked_lm, tasks = self._construct()
        models: list[MaskedLanguageModel | TaskModel] = [tasks]
        if masked_lm is not None:
            models.append(masked_lm)
        for model in models:
            if not unique_tensors(model)[0].keys() <= tensors.keys():
                initialize(model, self.recipe.train.seed)
        for model in models:
            copy_weights(model, tensors)
            model.eval()
        return masked_lm, tasks

    def _construct(self) -> tuple[MaskedLanguageModel | None, TaskModel]:
        recipe = self.recipe
        if not self.has_head:
            return None, TaskModel(Encoder(recipe.encoder, self.rows), self.tasks)
        masked_lm = MaskedLanguageModel(recipe.encoder, recipe.decoder, self.rows, recipe.head)
        return masked_lm, TaskModel(masked_lm.encoder, self.tasks)
