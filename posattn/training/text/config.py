"""`data`: the section of a recipe that says which text is read, and how it becomes rows."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field, model_validator

from posattn.config import FrozenConfig, open_field
from posattn.training.text.corpora import CorpusConfig, corpora
from posattn.training.text.samples import Layout
from posattn.training.text.tokenizers import BpeConfig, TokenizerConfig, tokenizers

if TYPE_CHECKING:
    AnyCorpus: TypeAlias = CorpusConfig
    AnyTokenizer: TypeAlias = TokenizerConfig
else:
    AnyCorpus = open_field(corpora, CorpusConfig)
    AnyTokenizer = open_field(tokenizers, TokenizerConfig)


class DataConfig(FrozenConfig):
    """The text, the tokenizer, and the layout of rows."""

    corpus: AnyCorpus
    tokenizer: AnyTokenizer = BpeConfig()
    max_length: int = Field(default=128, ge=4)
    """Tokens in a row, with the special tokens."""
    layout: Literal["packed", "padded"] = "packed"
    """`packed`: documents joined by [SEP] and cut into full rows. `padded`: a document per row."""
    cls: bool = True
    """packed: each row starts with [CLS]. padded: each row is framed by [CLS] and [SEP]."""
    across_documents: bool = True
    """packed only: whether tokens may attend to other documents in their row."""
    order: Literal["shuffled", "streams"] = "shuffled"
    """`streams`: each row continues a row of the batch before, for segment memory."""
    padding_side: Literal["right", "left"] = "right"
    """padded only: where the padding goes."""
    validation_fraction: float = Field(default=0.05, gt=0, le=0.5)
    """The part of the characters that is held out."""
    split_seed: int = Field(default=0, ge=0)
    """Which documents are held out; the same for all runs that are compared."""

    @model_validator(mode="after")
    def _fits_together(self) -> "DataConfig":
        if self.layout == "padded" and not self.across_documents:
            raise ValueError(
                "across_documents: false is for layout: packed; a padded row is one document anyway"
            )
        if self.layout == "packed" and self.padding_side == "left":
            raise ValueError(
                "padding_side: left is for layout: padded; packed rows have no padding"
            )
        if self.order == "streams" and (self.layout == "padded" or not self.across_documents):
            raise ValueError(
                "order: streams needs layout: packed and across_documents: true, since the memory "
                "of a row is the row before it, whatever document that is"
            )
        return self

    @property
    def rows(self) -> Layout:
        """The layout of rows, apart from where the text comes from."""
        return Layout(
            kind=self.layout,
            max_length=self.max_length,
            cls=self.cls,
            across_documents=self.across_documents,
            order=self.order,
            padding_side=self.padding_side,
        )
