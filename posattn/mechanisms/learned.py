"""Learned absolute positions, added to the token embeddings.

BERT (Devlin et al. 2019, arXiv:1810.04805):      x_i = token_i + table[p_i]
RoBERTa (Liu et al. 2019, arXiv:1907.11692):      x_i = token_i + table[p_i + padding_row + 1]

with p_i = 0, 1, .. counted over real tokens. RoBERTa's released code starts its table after the row
of the padding id and gives padding that row, so a table of 514 rows with padding_row 1 takes 512
tokens. In BERT's form padding shares row 0; it is invisible, so that changes no real token.
On a grid (`encoder.relation`) each cell has a row of the table, and each token in front of the cells
(ViT, Dosovitskiy et al. 2020, arXiv:2010.11929).
"""

from collections.abc import Mapping
from typing import Literal, final

import torch
from jaxtyping import Int
from pydantic import NonNegativeInt, PositiveInt, model_validator
from torch import Tensor, nn
from typing_extensions import override

from posattn.errors import IncompatibleParts
from posattn.mechanisms.base import EncoderDims, Mechanism, MechanismConfig, Traits, mechanisms
from posattn.shapes import Hidden


class LearnedConfig(MechanismConfig):
    """Options of learned absolute positions."""

    name: Literal["learned"] = "learned"
    max_positions: PositiveInt = 512  # rows of the table
    padding_row: NonNegativeInt | None = None  # RoBERTa's form: positions start after this row

    @model_validator(mode="after")
    def _has_a_usable_row(self) -> "LearnedConfig":
        if self.max_length() < 1:
            raise ValueError(
                f"max_positions {self.max_positions} leaves no row after padding_row "
                f"{self.padding_row}; it must be at least {self.first_row() + 1}"
            )
        return self

    def first_row(self) -> int:
        """Return the row of position 0."""
        return 0 if self.padding_row is None else self.padding_row + 1

    @override
    def traits(self) -> Traits:
        return Traits(adds_to_input=True, translation_invariant=False, relations=("line", "grid"))

    @override
    def problems(self, dims: EncoderDims) -> list[str]:
        places = dims.relation.max_length()
        if places is None or places <= self.max_length():
            return []
        return [
            f"the grid has {places} places, but the learned table takes {self.max_length()}; raise "
            f"max_positions to {places + self.first_row()}"
        ]

    @override
    def fresh_rows_beyond(self, trained: int) -> bool:
        return True

    @override
    def max_length(self) -> int:
        return self.max_positions - self.first_row()

    @override
    def card(self, dims: EncoderDims) -> Mapping[str, str]:
        form = "BERT" if self.padding_row is None else f"RoBERTa, first row {self.first_row()}"
        return {
            "positions": f"learned table of {self.max_positions} rows ({form}), "
            f"takes {self.max_length()} tokens"
        }


@final
@mechanisms.register("learned")
class LearnedPositions(Mechanism[LearnedConfig]):
    """A table row per position, added to the token embeddings."""

    Config = LearnedConfig

    def __init__(self, config: LearnedConfig, dims: EncoderDims) -> None:
        """Build the table."""
        super().__init__(config, dims)
        self.table = nn.Embedding(config.max_positions, dims.hidden_size)

    def rows(self, positions: Int[Tensor, "#batch length"]) -> Int[Tensor, "#batch length"]:
        """Return the table row of each position; padding has position -1."""
        if self.config.padding_row is None:
            return positions.clamp(min=0)
        return positions + self.config.first_row()

    @override
    def embed(self, hidden: Hidden, positions: Int[Tensor, "#batch length"]) -> Hidden:
        rows = self.rows(positions)
        # a graph cannot look at values; the encoder has checked the length by then
        looks = not torch.compiler.is_compiling() and rows.numel() > 0
        if looks and int(rows.max()) >= self.config.max_positions:
            raise IncompatibleParts(
                f"position {int(positions.max())} is past the end of the learned table, which holds "
                f"positions 0 to {self.config.max_length() - 1}; shorten the input or raise "
                "max_positions"
            )
        added: Tensor = self.table(rows)
        return hidden + added
