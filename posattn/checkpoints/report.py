"""`ImportReport`: what an import did with every tensor, for people and as import.json."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from posattn.checkpoints.mapping import Entry
from posattn.training.weights import Unmatched


@dataclass(frozen=True)
class TokenizerFacts:
    """What a checkpoint says of its tokenizer; `max_length` None where it says nothing usable."""

    file: str | None  # the file it was made from
    vocab_size: int | None
    max_length: int | None
    special_tokens: dict[str, str]


@dataclass(frozen=True)
class ImportReport:
    """The account of an import; `unused` and `new` hold what the user accepted by name."""

    source: str
    family: str
    architecture: str
    digests: dict[str, str]
    entries: tuple[Entry, ...]
    unused: tuple[str, ...]
    new: tuple[str, ...]
    tasks: dict[str, dict[str, Any]]
    labels: tuple[str, ...]
    has_masked_token_head: bool
    text_length: int | None  # tokens that `embed` cuts texts to
    tokenizer: TokenizerFacts
    notes: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return the contents of import.json."""
        return {
            "format": 1,
            **{
                key: value
                for key, value in vars(self).items()
                if key not in ("entries", "tokenizer")
            },
            "tokenizer": vars(self.tokenizer),
            "tensors": [vars(entry) for entry in self.entries],
        }

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return the account in short: old name, our name, fate, how often; layers are one row."""
        lines = [
            (entry.old, ", ".join(entry.new), entry.fate + (f": {entry.how}" if entry.how else ""))
            for entry in self.entries
        ]
        lines += [(name, "", "unused, as accepted") for name in self.unused]
        lines += [("", name, "new, as accepted") for name in self.new]
        counts = Counter(
            (_numbered(old) or "-", _numbered(new) or "-", fate) for old, new, fate in lines
        )
        return [(*line, str(count)) for line, count in counts.items()]

    def summary(self) -> str:
        """Return the account in one sentence."""
        number = Counter(entry.fate for entry in self.entries)
        return (
            f"{number['mapped']} tensors mapped, {number['copy']} copies of these, "
            f"{number['derived']} derived, {number['filled']} filled with a constant, "
            f"{len(self.unused)} unused, {len(self.new)} new"
        )


def refusal(source: str, found: Unmatched, hint: str) -> str:
    """Return the message for tensors that nobody accepted."""
    lines = [f"{source} does not fit whole, and nothing is dropped or made up in silence:"]
    if found.unused:
        lines.append("  stored, but unused: " + ", ".join(found.unused))
    if found.new:
        lines.append("  needed, but not stored: " + ", ".join(found.new))
    lines.append(
        "Accept them by name (--accept-unused GLOB, --accept-new GLOB; accept_unused and accept_new in "
        f"Python){hint}"
    )
    return "\n".join(lines)


def _numbered(name: str) -> str:
    name = re.sub(r"\.\d+\.", ".{n}.", name)
    return re.sub(r"\.(weight|bias|gamma|beta)\b", ".{p}", name)
