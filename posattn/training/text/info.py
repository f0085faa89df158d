"""What a report says about the text: its origin, licence, checksums and counts."""

from posattn.config import FrozenConfig


class FileInfo(FrozenConfig):
    """One file of the corpus."""

    name: str
    sha256: str
    bytes: int
    documents: int
    """Documents that are not empty."""
    empty_documents: int
    """Documents of whitespace only; they are left out."""
    unknown_tokens: int


class SplitInfo(FrozenConfig):
    """One part of the text."""

    documents: int
    tokens: int
    """Tokens of the text itself; [SEP] and [CLS] that the layout adds are not counted."""
    unknown_tokens: int
    samples: int = 0
    """Rows of the layout at its maximum length."""
    leftover_tokens: int = 0
    """Tokens (with their separators) at the end that fill no row of the layout and are not used."""


class CorpusInfo(FrozenConfig):
    """The account of a tokenised corpus; `model_dump_json` writes it to a run's data.json."""

    name: str
    licence: str
    attribution: str
    origin: str
    files: tuple[FileInfo, ...]
    documents: int
    empty_documents: int
    characters: int
    replaced_bytes: int
    """Broken bytes and NULs that were replaced by U+FFFD."""
    division: str
    """How training and validation text were told apart, in a sentence."""
    train: SplitInfo
    validation: SplitInfo
    tokenizer: str
    tokenizer_digest: str
    vocab_size: int
    normalization: str
    store_key: str
    """The SHA-256 of all that decides the tokens: text, tokenizer, division, library versions."""
    libraries: dict[str, str]
