"""The tokenizers: byte-level BPE, WordPiece, characters, or a tokenizer.json that you have.

Trained ones learn from the training split only. A special token that is spelt out in the text, such
as "[SEP]", becomes that special token, as everywhere in the `tokenizers` library, and is never
masked.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from posattn.admission import class_check
from posattn.cache import file_digest
from posattn.config import NamedConfig, Text
from posattn.errors import DataError
from posattn.registry import Registry
from posattn.training.text.vocabulary import Vocabulary

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_ROLES = ("pad", "unk", "cls", "sep", "mask")
_KNOWN_SPELLINGS = {
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<s>", "<cls>"),
    "sep": ("[SEP]", "</s>", "<sep>"),
    "mask": ("[MASK]", "<mask>"),
}

Normalization = Literal["nfc", "nfkc", "none"]
"""The Unicode form that text is brought into before anything else; recorded in tokenizer.json."""


class TextTokenizer:
    """A finished tokenizer: text to ids, adding no special tokens, never truncating or padding."""

    def __init__(self, inner: Tokenizer) -> None:
        """Wrap a tokenizer of the `tokenizers` library. DataError if it lacks a special token."""
        inner.no_truncation()
        inner.no_padding()
        self._inner = inner
        self.vocabulary = _vocabulary(inner)
        self.pad, self.unk = self.vocabulary.pad, self.vocabulary.unk
        self.cls, self.sep = self.vocabulary.cls, self.vocabulary.sep
        self.mask = self.vocabulary.mask
        self.special_ids = frozenset(self.vocabulary.special.tolist())
        self.vocab_size = self.vocabulary.size

    @classmethod
    def load(cls, path: Path | str) -> "TextTokenizer":
        """Return the tokenizer of a tokenizer.json. DataError if it is none."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"cannot read the tokenizer file {path}: {error}") from error
        try:
            inner = Tokenizer.from_str(text)
        except Exception as error:  # the library raises bare Exception for every malformed file
            raise DataError(f"{path} is not a tokenizer.json: {error}") from error
        try:
            return cls(inner)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return list(self._inner.encode(text, add_special_tokens=False).ids)

    def encode_many(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of several texts, in parallel where the library can."""
        encodings = self._inner.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """Return the text of ids."""
        return str(self._inner.decode(list(ids), skip_special_tokens=skip_special))

    def token(self, token_id: int) -> str | None:
        """Return the spelling of one id, or None if the id is not taken."""
        return self._inner.id_to_token(token_id)

    def save(self, path: Path | str) -> None:
        """Write the tokenizer as a tokenizer.json that the `tokenizers` library reads."""
        Path(path).write_text(self._inner.to_str(pretty=True), encoding="utf-8")

    @property
    def digest(self) -> str:
        """The SHA-256 of the tokenizer as it is saved, without regard to layout."""
        return sha256(self._inner.to_str(pretty=False).encode()).hexdigest()

    @property
    def normalization(self) -> str:
        """What is done to the text before it is cut into tokens; `none` if nothing."""
        return repr(self._inner.normalizer) if self._inner.normalizer is not None else "none"

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_text, (self._inner.to_str(),)


class TokenizerConfig(NamedConfig):
    """The options of a tokenizer; each kind has its own."""

    def content_digest(self) -> str:
        """Return the SHA-256 of what the options refer to, empty if they say it all."""
        return ""

    @abstractmethod
    def expected_vocab_size(self) -> int:
        """Return the number of embedding rows that the finished tokenizer needs at most."""


class TokenizerKind(ABC):
    """A way to come by a tokenizer."""

    Config: ClassVar[type[TokenizerConfig]]

    def __init__(self, config: Any) -> None:
        """Take the options."""
        self.config = config

    @abstractmethod
    def make(self, texts: Iterable[str]) -> TextTokenizer:
        """Return the tokenizer; `texts` are pieces of the training split, to be read repeatedly."""


tokenizers: Registry[type[TokenizerKind]] = Registry(
    "tokenizer", "posattn.tokenizers", class_check(TokenizerKind, config=TokenizerConfig)
)


class TrainedConfig(TokenizerConfig):
    """What all trained tokenizers have."""

    vocab_size: int = Field(ge=len(SPECIALS) + 1)
    """The number of ids, specials included, at most; a small text may give fewer."""
    normalization: Normalization = "none"

    def expected_vocab_size(self) -> int:
        """Return `vocab_size`."""
        return self.vocab_size


class BpeConfig(TrainedConfig):
    """Options of `bpe`. 256 bytes and 5 specials are always there: 261 ids at least."""

    name: Literal["bpe"] = "bpe"
    vocab_size: int = Field(default=8000, ge=256 + len(SPECIALS))
    min_frequency: int = Field(default=2, ge=1)
    """How often a pair must occur to be merged."""


@tokenizers.register("bpe")
class BpeTokenizer(TokenizerKind):
    """Byte-level BPE (Radford et al. 2019): every text can be encoded, nothing is unknown."""

    Config = BpeConfig
    config: BpeConfig

    def make(self, texts: Iterable[str]) -> TextTokenizer:
        """Return a tokenizer trained on the texts."""
        inner = Tokenizer(models.BPE())
        _normalize(inner, self.config.normalization, lowercase=False)
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        inner.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=self.config.vocab_size,
            min_frequency=self.config.min_frequency,
            special_tokens=list(SPECIALS),
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        inner.train_from_iterator(texts, trainer)
        return TextTokenizer(inner)


class WordPieceConfig(TrainedConfig):
    """Options of `wordpiece`. At most half of the ids are characters, the most frequent ones."""

    name: Literal["wordpiece"] = "wordpiece"
    vocab_size: int = Field(default=8000, ge=len(SPECIALS) + 4)
    min_frequency: int = Field(default=2, ge=1)
    lowercase: bool = False


@tokenizers.register("wordpiece")
class WordPieceTokenizer(TokenizerKind):
    """WordPiece over words and punctuation, as BERT has it; whitespace is not kept."""

    Config = WordPieceConfig
    config: WordPieceConfig

    def make(self, texts: Iterable[str]) -> TextTokenizer:
        """Return a tokenizer trained on the texts.

        The library numbers the `##` characters in the order of a randomised hash map, and breaks
        ties by number, so two trainings differ. Here they are numbered beforehand, by handing them
        over first.
        """
        learner = self._empty(models.WordPiece(unk_token="[UNK]"))
        most = max(1, (self.config.vocab_size - len(SPECIALS)) // 4)
        alphabet = _most_frequent(learner, texts, most)
        trainer = trainers.WordPieceTrainer(
            vocab_size=self.config.vocab_size,
            min_frequency=self.config.min_frequency,
            special_tokens=[*SPECIALS, *(f"##{character}" for character in alphabet)],
            initial_alphabet=alphabet,
            limit_alphabet=len(alphabet),
            show_progress=False,
        )
        learner.train_from_iterator(texts, trainer)
        learnt = learner.get_vocab(with_added_tokens=False)
        inner = self._empty(models.WordPiece(vocab=learnt, unk_token="[UNK]"))
        inner.add_special_tokens(list(SPECIALS))
        return TextTokenizer(inner)

    def _empty(self, model: models.WordPiece) -> Tokenizer:
        inner = Tokenizer(model)
        _normalize(inner, self.config.normalization, lowercase=self.config.lowercase)
        inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        inner.decoder = decoders.WordPiece()
        return inner


class CharactersConfig(TrainedConfig):
    """Options of `characters`."""

    name: Literal["characters"] = "characters"
    vocab_size: int = Field(default=512, ge=len(SPECIALS) + 1)


@tokenizers.register("characters")
class CharactersTokenizer(TokenizerKind):
    """One id per code point: the most frequent of the training split, the others are unknown."""

    Config = CharactersConfig
    config: CharactersConfig

    def make(self, texts: Iterable[str]) -> TextTokenizer:
        """Return a tokenizer of the characters in the texts."""
        inner = Tokenizer(models.BPE(unk_token="[UNK]"))
        _normalize(inner, self.config.normalization, lowercase=False)
        kept = _most_frequent(inner, texts, self.config.vocab_size - len(SPECIALS), spaces=True)
        ids = {token: index for index, token in enumerate([*SPECIALS, *kept])}
        inner.model = models.BPE(vocab=ids, merges=[], unk_token="[UNK]", cache_capacity=0)
        inner.add_special_tokens(list(SPECIALS))
        inner.decoder = decoders.Fuse()
        return TextTokenizer(inner)


class FileConfig(TokenizerConfig):
    """Options of `file`."""

    name: Literal["file"] = "file"
    path: Text
    """A tokenizer.json with the special tokens of BERT ([PAD] ...) or of RoBERTa (<pad> ...)."""

    def content_digest(self) -> str:
        """Return the checksum of the file."""
        try:
            return file_digest(Path(self.path))
        except OSError as error:
            raise DataError(f"cannot read the tokenizer file {self.path}: {error}") from error

    def expected_vocab_size(self) -> int:
        """Return the largest id of the file plus one."""
        return TextTokenizer.load(self.path).vocab_size


@tokenizers.register("file")
class FileTokenizer(TokenizerKind):
    """A tokenizer.json of your own; it is used as it is, without its truncation and padding."""

    Config = FileConfig
    config: FileConfig

    def make(self, texts: Iterable[str]) -> TextTokenizer:
        """Return the tokenizer of the file; the texts are not looked at."""
        return TextTokenizer.load(self.config.path)


def _normalize(inner: Tokenizer, form: Normalization, *, lowercase: bool) -> None:
    steps: list[Any] = []
    if form != "none":
        steps.append(normalizers.NFC() if form == "nfc" else normalizers.NFKC())
    if lowercase:
        steps.append(normalizers.Lowercase())
    if steps:
        inner.normalizer = steps[0] if len(steps) == 1 else normalizers.Sequence(steps)


def _most_frequent(
    inner: Tokenizer, texts: Iterable[str], limit: int, *, spaces: bool = False
) -> list[str]:
    """Return the `limit` most frequent characters after normalisation, in code point order."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(inner.normalizer.normalize_str(text) if inner.normalizer else text)
    known = [character for character in counts if spaces or not character.isspace()]
    known.sort(key=lambda character: (-counts[character], character))
    return sorted(known[:limit])


def _vocabulary(inner: Tokenizer) -> Vocabulary:
    ids = sorted(inner.get_vocab(with_added_tokens=True).values())
    roles = {role: _special_id(inner, role) for role in _ROLES}
    added = inner.get_added_tokens_decoder()
    special = {index for index, token in added.items() if token.special} | set(roles.values())
    return Vocabulary(
        size=ids[-1] + 1,
        special=np.array(sorted(special), dtype=np.int64),
        ordinary=np.array([index for index in ids if index not in special], dtype=np.int64),
        **roles,
    )


def _special_id(inner: Tokenizer, role: str) -> int:
    for spelling in _KNOWN_SPELLINGS[role]:
        index = inner.token_to_id(spelling)
        if index is not None:
            return int(index)
    known = " or ".join(_KNOWN_SPELLINGS[role])
    raise DataError(
        f"the tokenizer has no '{role}' token (looked for {known}); add it to the file, or train a "
        "tokenizer (bpe, wordpiece, characters)"
    )


def _from_text(text: str) -> TextTokenizer:
    return TextTokenizer(Tokenizer.from_str(text))
