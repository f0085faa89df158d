"""The tokenizer as transformers' AutoTokenizer reads it: tokenizer.json with its config beside it."""

from typing import Any

from tokenizers import Tokenizer, processors

from posattn.checkpoints.pretrained import Pretrained
from posattn.training.text.tokenizers import TextTokenizer

TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
_ROLES = ("pad", "unk", "cls", "sep", "mask")


def tokenizer_files(made: Pretrained) -> dict[str, Any]:
    """Return the contents of the files by name; nothing without a tokenizer.

    A tokenizer of a run frames nothing itself, so it is given the frame that the run's rows have.
    """
    if made.tokenizer is None:
        return {}
    inner = Tokenizer.from_str(made.tokenizer.to_str())
    special = special_tokens(made)
    if inner.post_processor is None and made.recipe.data.cls:
        cls, sep = special["cls_token"], special["sep_token"]
        ids = special_ids(made)
        inner.post_processor = processors.BertProcessing(
            (sep, int(ids["sep_token_id"] or 0)), (cls, int(ids["cls_token_id"] or 0))
        )
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": longest_text(made),
        "model_input_names": model_inputs(made),
        "clean_up_tokenization_spaces": False,
        **special,
    }
    return {TOKENIZER: inner.to_str(pretty=True), TOKENIZER_CONFIG: config}


def special_tokens(made: Pretrained) -> dict[str, str]:
    """Return the special tokens by transformers' names of their roles."""
    if named := made.report.tokenizer.special_tokens:
        return dict(named)
    assert made.tokenizer is not None
    vocabulary = TextTokenizer(made.tokenizer).vocabulary
    ids = {role: getattr(vocabulary, role) for role in _ROLES}
    return {f"{role}_token": made.tokenizer.id_to_token(found) or "" for role, found in ids.items()}


def special_ids(made: Pretrained) -> dict[str, int | None]:
    """Return the ids that config.json names; without a tokenizer 0 for padding and None for the others."""
    found: dict[str, int | None] = dict.fromkeys(("pad", "cls", "sep", "bos", "eos"))
    found["pad"] = 0
    if made.tokenizer is not None:
        tokens = special_tokens(made)
        for role, named in {
            **dict.fromkeys(("pad", "cls", "sep")),
            "bos": "cls",
            "eos": "sep",
        }.items():
            token = tokens.get(f"{named or role}_token")
            found[role] = None if token is None else made.tokenizer.token_to_id(token)
    return {f"{role}_token_id": index for role, index in found.items()}


def longest_text(made: Pretrained) -> int:
    """Return to how many tokens texts are cut: what model and checkpoint take, else the rows of training."""
    limits = [made.report.text_length, made.encoder.config.max_length()]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else made.recipe.data.max_length


def model_inputs(made: Pretrained) -> list[str]:
    """Return which inputs a tokenizer makes for the model."""
    segments = ["token_type_ids"] if made.encoder.config.segments > 1 else []
    return ["input_ids", *segments, "attention_mask"]
