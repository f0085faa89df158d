"""The tokenizer of a checkpoint, from the files that lie beside the weights; none of them is executed."""

from pathlib import Path
from typing import Any

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from posattn.checkpoints.report import TokenizerFacts
from posattn.checkpoints.source import Source
from posattn.errors import CheckpointError

_NO_LIMIT = 10**6
"""A longest input from here on is a sentinel of tokenizers without a limit, not a length."""
_ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
_BERT = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
_ROBERTA = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}


def find_tokenizer(source: Source) -> tuple[Tokenizer | None, TokenizerFacts]:
    """Return the tokenizer and what is said of it; None if no file that can be read is there."""
    folder = source.weights_folder
    config = source.optional_json(folder / "tokenizer_config.json") or {}
    special = source.optional_json(folder / "special_tokens_map.json") or {}
    found, file = _from_files(folder, config)
    tokens = {role: _spelling(special.get(role, config.get(role))) for role in _ROLES}
    limit = config.get("model_max_length")
    if not isinstance(limit, int | float) or not 0 < limit < _NO_LIMIT:
        limit = None
    facts = TokenizerFacts(
        file=file,
        vocab_size=vocab_size(found),
        max_length=None if limit is None else int(limit),
        special_tokens={role: token for role, token in tokens.items() if token},
    )
    return found, facts


def read_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer of a tokenizer.json, without its truncation and padding."""
    try:
        found = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for every malformed file
        raise CheckpointError(f"{path} is not a tokenizer.json: {error}") from error
    found.no_truncation()
    found.no_padding()
    return found


def vocab_size(tokenizer: Tokenizer | None) -> int | None:
    """Return the largest id plus one; None without a tokenizer."""
    return None if tokenizer is None else max(tokenizer.get_vocab().values()) + 1


def _from_files(folder: Path, config: dict[str, Any]) -> tuple[Tokenizer | None, str | None]:
    if (folder / "tokenizer.json").is_file():
        return read_tokenizer(folder / "tokenizer.json"), "tokenizer.json"
    if (folder / "vocab.txt").is_file():
        return _word_pieces(folder / "vocab.txt", config), "vocab.txt"
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        return _byte_pairs(folder, config), "vocab.json, merges.txt"
    return None, None


def _word_pieces(path: Path, config: dict[str, Any]) -> Tokenizer:
    """Return BERT's tokenizer of a vocab.txt, in which the line is the id."""
    made = Tokenizer(models.WordPiece.from_file(str(path), unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(
        lowercase=bool(config.get("do_lower_case", True)),
        strip_accents=config.get("strip_accents"),
        handle_chinese_chars=bool(config.get("tokenize_chinese_chars", True)),
    )
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.add_special_tokens(
        [token for token in _BERT.values() if made.token_to_id(token) is not None]
    )
    sep, cls = (_with_id(made, _BERT[role], path) for role in ("sep", "cls"))
    made.post_processor = processors.BertProcessing(sep, cls)
    return made


def _byte_pairs(folder: Path, config: dict[str, Any]) -> Tokenizer:
    """Return RoBERTa's tokenizer of its two files."""
    files = (str(folder / "vocab.json"), str(folder / "merges.txt"))
    made = Tokenizer(models.BPE.from_file(*files))
    prefix = bool(config.get("add_prefix_space", False))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(
        [
            AddedToken(token, lstrip=role == "mask", special=True)
            for role, token in _ROBERTA.items()
            if made.token_to_id(token) is not None
        ]
    )
    sep, cls = (_with_id(made, _ROBERTA[role], folder) for role in ("sep", "cls"))
    made.post_processor = processors.RobertaProcessing(sep, cls, add_prefix_space=prefix)
    return made


def _with_id(made: Tokenizer, token: str, path: Path) -> tuple[str, int]:
    index = made.token_to_id(token)
    if index is None:
        raise CheckpointError(f"{path} has no '{token}'; add a tokenizer.json to the folder")
    return token, int(index)


def _spelling(token: Any) -> str:
    """Return the text of a special token, which is a text or a mapping with its `content`."""
    return str(token.get("content", "")) if isinstance(token, dict) else str(token or "")
