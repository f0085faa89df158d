"""`prepare`: from the `data` section of a recipe to tokens on disk, once for all that share it."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from posattn.cache import Progress, build_once, cache_folder, silent, value_digest
from posattn.errors import DataError
from posattn.training.text.config import DataConfig
from posattn.training.text.corpora import Corpus, Source, corpora
from posattn.training.text.division import (
    Census,
    Division,
    Part,
    Routed,
    divide,
    route,
    take_census,
)
from posattn.training.text.info import CorpusInfo, FileInfo, SplitInfo
from posattn.training.text.samples import LAYOUTS, Layout, Samples
from posattn.training.text.store import (
    VERSION,
    PartWriter,
    open_part,
    seal,
    store_problem,
    token_dtype,
)
from posattn.training.text.tokenizers import TextTokenizer, tokenizers
from posattn.training.text.vocabulary import Vocabulary

_TOKENIZER = "tokenizer.json"
_INFO = "info.json"
_TOGETHER = 1 << 20
_PARTS: tuple[Part, Part] = ("train", "validation")
_LIBRARIES = ("tokenizers",)


@dataclass(frozen=True)
class Split:
    """One part of a tokenised corpus; a worker process gets its folder and maps the files."""

    part: Part
    folder: Path
    layout: Layout
    vocabulary: Vocabulary

    @cached_property
    def samples(self) -> Samples:
        """The rows at the layout's maximum length."""
        return self.samples_at(self.layout.max_length)

    def samples_at(self, length: int, limit_tokens: int | None = None) -> Samples:
        """Return the rows at any length, of the first `limit_tokens` only if given."""
        kind = LAYOUTS[self.layout.kind]
        return kind(self.tokens, self.offsets, self.layout, self.vocabulary, length, limit_tokens)

    @property
    def tokens(self) -> NDArray[Any]:
        """All tokens, each document followed by [SEP]."""
        return self._mapped[0]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each document starts in `tokens`, and the end."""
        return self._mapped[1]

    @cached_property
    def _mapped(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        return open_part(self.folder, self.part)

    def __len__(self) -> int:
        """Return the number of samples at the layout's maximum length."""
        return len(self.samples)

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class TokenisedCorpus:
    """What a recipe's `data` section stands for."""

    train: Split
    validation: Split
    tokenizer: TextTokenizer
    info: CorpusInfo


def prepare(config: DataConfig, *, progress: Progress | None = None) -> TokenisedCorpus:
    """Return the tokenised corpus, from the cache if it is there.

    DataError, before any training, if the text is missing, unreadable, empty, or too short for one
    row of training or of validation.
    """
    told = progress or silent
    corpus = corpora.get(config.corpus.name)(config.corpus)
    source = corpus.source(told)
    key = store_key(config, source)
    folder = cache_folder() / "tokens" / key[:32]
    build_once(
        folder, lambda aside: _build(aside, config, corpus, source, key, told), store_problem, told
    )
    tokenizer = TextTokenizer.load(folder / _TOKENIZER)
    train, validation = (Split(part, folder, config.rows, tokenizer.vocabulary) for part in _PARTS)
    stored = CorpusInfo.model_validate_json((folder / _INFO).read_text(encoding="utf-8"))
    info = stored.model_copy(
        update={
            "train": _laid(stored.train, train),
            "validation": _laid(stored.validation, validation),
        }
    )
    for split, facts in ((train, info.train), (validation, info.validation)):
        _check_rows(split, facts, info)
    return TokenisedCorpus(train, validation, tokenizer, info)


def store_key(config: DataConfig, source: Source) -> str:
    """Return the SHA-256 of all that decides the tokens; the layout of rows does not."""
    return value_digest(
        {
            "version": VERSION,
            "corpus": config.corpus.model_dump(mode="json"),
            "source": source.model_dump(mode="json"),
            "tokenizer": config.tokenizer.model_dump(mode="json"),
            "tokenizer_content": config.tokenizer.content_digest(),
            "validation_fraction": config.validation_fraction,
            "split_seed": config.split_seed,
            "libraries": _libraries(),
        }
    )


def _libraries() -> dict[str, str]:
    return {name: version(name) for name in _LIBRARIES}


@dataclass(frozen=True)
class _TrainingTexts:
    """The pieces of training text, read anew each time they are iterated."""

    corpus: Corpus
    census: Census
    division: Division

    def __iter__(self) -> Iterator[str]:
        for part, piece in route(self.corpus.pieces(), self.census, self.division):
            if part == "train":
                yield piece.text


def _build(
    aside: Path, config: DataConfig, corpus: Corpus, source: Source, key: str, told: Progress
) -> None:
    """Fill a folder with the token store of a corpus."""
    told(f"reading the corpus {source.name}")
    census = take_census(corpus.pieces())
    division = divide(census, config.validation_fraction, config.split_seed)
    told(f"making the tokenizer {config.tokenizer.name}")
    maker = tokenizers.get(config.tokenizer.name)(config.tokenizer)
    tokenizer = maker.make(_TrainingTexts(corpus, census, division))
    tokenizer.save(aside / _TOKENIZER)
    told(f"tokenising {int(census.characters.sum()):,} characters")
    splits, unknown = _tokenise(aside, corpus, census, division, tokenizer, len(source.files))
    info = CorpusInfo(
        **source.model_dump(exclude={"files"}),
        files=tuple(
            FileInfo(
                **file.model_dump(),
                documents=census.documents(index),
                empty_documents=census.empty_documents(index),
                unknown_tokens=unknown[index],
            )
            for index, file in enumerate(source.files)
        ),
        documents=census.documents(),
        empty_documents=census.empty_documents(),
        characters=int(census.characters.sum()),
        replaced_bytes=census.replaced,
        division=division.description,
        train=splits["train"],
        validation=splits["validation"],
        tokenizer=config.tokenizer.name,
        tokenizer_digest=tokenizer.digest,
        vocab_size=tokenizer.vocab_size,
        normalization=tokenizer.normalization,
        store_key=key,
        libraries=_libraries(),
    )
    (aside / _INFO).write_text(info.model_dump_json(indent=1), encoding="utf-8")
    seal(aside, token_dtype(tokenizer.vocab_size))


def _tokenise(
    aside: Path,
    corpus: Corpus,
    census: Census,
    division: Division,
    tokenizer: TextTokenizer,
    num_sources: int,
) -> tuple[dict[Part, SplitInfo], list[int]]:
    """Write the tokens of both parts; return their counts, and the unknown tokens of each file."""
    dtype = token_dtype(tokenizer.vocab_size)
    unknown_in: dict[Part, int] = dict.fromkeys(_PARTS, 0)
    unknown_of = [0] * num_sources
    with ExitStack() as stack:
        writers = {
            part: stack.enter_context(PartWriter(aside, part, dtype, tokenizer.sep))
            for part in _PARTS
        }
        routed = route(corpus.pieces(), census, division)
        for batch in _batched(routed):
            encoded = tokenizer.encode_many([piece.text for _, piece in batch])
            for (part, piece), ids in zip(batch, encoded, strict=True):
                writers[part].add(ids)
                unknown = ids.count(tokenizer.unk)
                unknown_in[part] += unknown
                unknown_of[piece.source] += unknown
                if piece.ends:
                    writers[part].end_document()
    infos = {
        part: SplitInfo(
            documents=writer.documents, tokens=writer.tokens, unknown_tokens=unknown_in[part]
        )
        for part, writer in writers.items()
    }
    return infos, unknown_of


def _batched(routed: Iterator[Routed]) -> Iterator[list[Routed]]:
    """Return the pieces in lists of about a million characters, for the encoder's threads."""
    batch: list[Routed] = []
    characters = 0
    for item in routed:
        batch.append(item)
        characters += len(item.piece.text) + 1
        if characters > _TOGETHER:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _laid(stored: SplitInfo, split: Split) -> SplitInfo:
    """Return the counts of a part with those of its layout."""
    if not stored.documents:
        return stored
    return stored.model_copy(
        update={"samples": len(split), "leftover_tokens": split.samples.leftover_tokens}
    )


def _check_rows(split: Split, facts: SplitInfo, info: CorpusInfo) -> None:
    if facts.samples:
        return
    remedy = "add text" if split.part == "train" else "raise data.validation_fraction, add text"
    raise DataError(
        f"the {split.part} part of the corpus '{info.name}' gives no sample: it has {facts.tokens} "
        f"tokens, and one row takes {split.layout.max_length} (data.max_length); {remedy}, or "
        f"shorten data.max_length. Documents in this part: {facts.documents}; in the whole corpus "
        f"{info.documents} with text, {info.empty_documents} empty"
    )
