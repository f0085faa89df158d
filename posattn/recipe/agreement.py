"""Whether the sections of a recipe fit each other; each part is asked, no part is named."""

from typing import Protocol

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import DecoderConfig
from posattn.recipe.reader import KeyPath
from posattn.training.objectives import ObjectiveConfig
from posattn.training.text.config import DataConfig


class Sections(Protocol):
    """The sections that have to fit."""

    @property
    def encoder(self) -> EncoderConfig:
        """The encoder."""

    @property
    def decoder(self) -> DecoderConfig:
        """The decoder."""

    @property
    def objective(self) -> ObjectiveConfig:
        """The objective."""

    @property
    def data(self) -> DataConfig:
        """The text."""


def disagreements(recipe: Sections) -> list[tuple[KeyPath, str]]:
    """Return what does not fit, each with the path to mend; empty if all fits."""
    found: list[tuple[KeyPath, str]] = []
    found.extend((("decoder",), text) for text in recipe.decoder.problems(recipe.encoder))
    found.extend(_too_long(recipe))
    memory = recipe.encoder.memory_length()
    if memory and recipe.data.order != "streams":
        text = (
            f"is '{recipe.data.order}', but a mechanism keeps {memory} states of the segment before, "
            "so each row of a batch must continue the row of the batch before; write 'streams', or "
            "set the mechanism's memory to 0"
        )
        found.append((("data", "order"), text))
    return found


def _too_long(recipe: Sections) -> list[tuple[KeyPath, str]]:
    length = recipe.data.max_length
    limits = [
        (f"encoder.mechanism '{part.name}' takes at most", part.max_length())
        for part in recipe.encoder.mechanism
    ]
    decoder = f"decoder '{recipe.decoder.name}' injects positions for at most"
    limits.append((decoder, recipe.decoder.max_length()))
    return [
        (
            ("data", "max_length"),
            f"is {length} tokens, but {who} {limit}; lower data.max_length to {limit} or raise that limit",
        )
        for who, limit in limits
        if limit is not None and length > limit
    ]
