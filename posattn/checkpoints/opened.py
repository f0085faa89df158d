"""`open_model`: a recipe, a run, or a checkpoint as a model that text can be given to."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Int
from tokenizers import Tokenizer
from torch import Tensor

from posattn.checkpoints.loading import from_pretrained
from posattn.encoder.encoder import Encoder
from posattn.encoder.model import MaskedLanguageModel
from posattn.errors import DataError, RecipeError
from posattn.recipe.build import build
from posattn.recipe.check import check_inputs
from posattn.recipe.resolve import Overrides
from posattn.recipe.schema import Recipe, load_recipe
from posattn.training.run_folder import RunFolder
from posattn.training.text.prepare import prepare

CLS, SEP = ("[CLS]", "<s>", "<cls>"), ("[SEP]", "</s>", "<sep>")


@dataclass(frozen=True)
class OpenedModel:
    """A model with its tokenizer; `origin` says in words where its weights come from.

    Without a masked-token head the model is the encoder alone.
    """

    model: MaskedLanguageModel | Encoder
    recipe: Recipe
    tokenizer: Tokenizer
    origin: str

    def encode(self, text: str, length: int) -> tuple[Int[Tensor, " length"], list[str]]:
        """Return the first `length` tokens of a text, framed as the model's rows are, and their spellings.

        DataError for a text without tokens.
        """
        encoding = self.tokenizer.encode(text)
        ids, tokens = list(encoding.ids), list(encoding.tokens)
        if not ids:
            raise DataError("the text has no token; give a file with some text in it")
        if self.tokenizer.post_processor is None and self.recipe.data.cls:
            before, behind = _first(self.tokenizer, CLS), _first(self.tokenizer, SEP)
            ids, tokens = [id_ for id_, _ in before] + ids, [t for _, t in before] + tokens
            if self.recipe.data.layout == "padded":
                ids, tokens = ids[: length - 1], tokens[: length - 1]
                ids += [id_ for id_, _ in behind]
                tokens += [token for _, token in behind]
        limit = self.model.config.max_length()
        length = length if limit is None else min(length, limit)
        return torch.tensor(ids[:length]), tokens[:length]


def open_model(reference: str, overrides: Overrides = ()) -> OpenedModel:
    """Return the model of a recipe with its first weights, of a finished run, or of a checkpoint's folder.

    Raises `RecipeError` for a run that has not finished and for what is neither, `DataError` without a
    tokenizer, and what the loader of a checkpoint raises.
    """
    folder = Path(reference).expanduser()
    if not folder.is_dir():
        return _of_recipe(load_recipe(reference, overrides))
    run = RunFolder(folder)
    if (run.final / "model.safetensors").is_file():
        return _of_checkpoint(run.final, reference, overrides)
    if run.status_file.is_file():
        raise RecipeError(
            f"the run in {reference} has not finished, so it has no final model; continue it with "
            "posattn train --resume, or name a recipe or another folder"
        )
    return _of_checkpoint(folder, reference, overrides)


def _of_recipe(recipe: Recipe) -> OpenedModel:
    check_inputs(recipe)
    corpus = prepare(recipe.data)
    model = build(recipe, corpus.tokenizer.vocab_size).eval()
    tokenizer = Tokenizer.from_file(str(corpus.validation.folder / "tokenizer.json"))
    return OpenedModel(model, recipe, tokenizer, f"recipe {recipe.name}, first weights")


def _of_checkpoint(folder: Path, reference: str, overrides: Overrides) -> OpenedModel:
    found = from_pretrained(folder, overrides=overrides)
    check_inputs(found.recipe)
    if found.tokenizer is None:
        raise DataError(
            f"{reference} came without a tokenizer that can be read; put its tokenizer.json beside the "
            "weights"
        )
    model = found.encoder if found.masked_lm is None else found.masked_lm
    return OpenedModel(model, found.recipe, found.tokenizer, reference)


def _first(tokenizer: Tokenizer, spellings: Sequence[str]) -> list[tuple[int, str]]:
    """Return the first of the spellings that the tokenizer knows, or nothing."""
    known = [(tokenizer.token_to_id(token), token) for token in spellings]
    return [(id_, token) for id_, token in known if id_ is not None][:1]
