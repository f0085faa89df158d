import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

from posattn.errors import DataError
from posattn.training.text.pieces import pieces_of
from posattn.training.text.tokenizers import SPECIALS, TextTokenizer, TokenizerConfig, tokenizers

TEXTS = [
    "The quick brown fox jumps over the lazy dog.\nThe dog sleeps; the fox does not.",
    "Größe und Maß, naïve café, 東京 12345 ... !!! the the the",
] * 5
TRAINED = ["bpe", "wordpiece", "characters"]


def config_of(name: str, **options: object) -> TokenizerConfig:
    config: TokenizerConfig = tokenizers.get(name).Config.model_validate({"name": name, **options})
    return config


def make(name: str, texts: list[str] = TEXTS, **options: object) -> TextTokenizer:
    return tokenizers.get(name)(config_of(name, **options)).make(texts)


@pytest.mark.parametrize("name", TRAINED)
def test_the_special_tokens_come_first_and_are_special(name: str) -> None:
    tokenizer = make(name, vocab_size=300)
    roles = [tokenizer.pad, tokenizer.unk, tokenizer.cls, tokenizer.sep, tokenizer.mask]
    assert roles == [0, 1, 2, 3, 4]
    assert [tokenizer.token(index) for index in roles] == list(SPECIALS)
    assert tokenizer.special_ids == frozenset(roles)
    assert set(tokenizer.vocabulary.ordinary.tolist()) == set(range(5, tokenizer.vocab_size))


@pytest.mark.parametrize("name", TRAINED)
def test_the_vocabulary_is_never_larger_than_asked_for(name: str) -> None:
    for size in (261, 300, 10_000):
        assert make(name, vocab_size=size).vocab_size <= size
        assert config_of(name, vocab_size=size).expected_vocab_size() == size


@pytest.mark.parametrize("name", ["bpe", "characters"])
def test_decoding_gives_the_text_back(name: str) -> None:
    tokenizer = make(name, vocab_size=300)
    for text in TEXTS[:2]:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_bpe_knows_every_text() -> None:
    tokenizer = make("bpe", vocab_size=261)
    ids = tokenizer.encode("😀 never seen: \u3000 \ufeff ж")
    assert tokenizer.unk not in ids
    assert tokenizer.decode(ids) == "😀 never seen: \u3000 \ufeff ж"


def test_characters_keeps_the_most_frequent_and_counts_the_rest_as_unknown() -> None:
    tokenizer = make("characters", ["aaabbbccd"], vocab_size=len(SPECIALS) + 3)
    assert tokenizer.encode("abcd a") == [5, 6, 7, tokenizer.unk, tokenizer.unk, 5]


def test_wordpiece_has_half_of_its_ids_for_characters_at_most() -> None:
    tokenizer = make("wordpiece", ["".join(chr(0x4E00 + i) for i in range(500))], vocab_size=105)
    tokens = [tokenizer.token(index) or "" for index in range(5, tokenizer.vocab_size)]
    assert sum(len(token.removeprefix("##")) == 1 for token in tokens) == 50
    assert tokenizer.vocab_size <= 105


def test_wordpiece_can_lower_the_case() -> None:
    tokenizer = make("wordpiece", vocab_size=300, lowercase=True)
    assert tokenizer.encode("The QUICK Fox") == tokenizer.encode("the quick fox")


@pytest.mark.parametrize("name", TRAINED)
def test_a_long_text_has_the_tokens_of_its_pieces(name: str) -> None:
    tokenizer = make(name, vocab_size=300)
    text = ("".join(TEXTS) + "  \n\n ... 'twas\tso\n") * 300
    pieces = [piece.text for piece in pieces_of([(text, 0)], 0)]
    assert len(pieces) > 3
    assert [i for ids in tokenizer.encode_many(pieces) for i in ids] == tokenizer.encode(text)


@pytest.mark.parametrize("name", TRAINED)
def test_training_is_deterministic_across_processes(name: str) -> None:
    program = (
        "from posattn.training.text.tokenizers import tokenizers;"
        "from pydoc_data.topics import topics;"
        f"kind = tokenizers.get({name!r});"
        "print(kind(kind.Config(vocab_size=600)).make(list(topics.values())[:20]).digest)"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(3)
    }
    assert len(digests) == 1


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_composed_and_decomposed_text_have_equal_ids_when_normalised(name: str, form: str) -> None:
    decomposed, composed = "A\u0302\u0300 ﬁx\u00a0\u3000", "\u1ea6 ﬁx\u00a0\u3000"
    tokenizer = make(name, [*TEXTS, composed], vocab_size=400, normalization=form)
    assert tokenizer.encode(decomposed) == tokenizer.encode(composed)
    assert form.upper() in tokenizer.normalization
    plain = make(name, [*TEXTS, composed], vocab_size=400)
    assert plain.encode(decomposed) != plain.encode(composed)
    assert plain.normalization == "none"


def test_nfkc_also_opens_ligatures() -> None:
    tokenizer = make("characters", vocab_size=200, normalization="nfkc")
    assert tokenizer.encode("ﬁ") == tokenizer.encode("fi")


def test_a_saved_tokenizer_loads_equal(tmp_path: Path) -> None:
    for name in TRAINED:
        tokenizer = make(name, vocab_size=300)
        tokenizer.save(tmp_path / "tokenizer.json")
        for again in (
            TextTokenizer.load(tmp_path / "tokenizer.json"),
            pickle.loads(pickle.dumps(tokenizer)),
        ):
            assert again.digest == tokenizer.digest
            assert again.encode(TEXTS[1]) == tokenizer.encode(TEXTS[1])


def test_a_given_file_is_used_without_its_truncation_and_padding(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    words = ["<s>", "<pad>", "</s>", "<unk>", "a", "b", "<mask>"]
    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    inner.normalizer = normalizers.NFC()
    inner.add_special_tokens([AddedToken(w, special=True) for w in ("<mask>", "<user>")])
    inner.enable_truncation(2)
    inner.enable_padding(length=9)
    inner.save(str(path))
    tokenizer = make("file", path=str(path))
    assert tokenizer.encode("a b a x") == [4, 5, 4, 3]
    roles = (tokenizer.cls, tokenizer.pad, tokenizer.sep, tokenizer.unk, tokenizer.mask)
    assert roles == (0, 1, 2, 3, 6)
    assert tokenizer.special_ids == {0, 1, 2, 3, 6, 7}
    assert tokenizer.vocabulary.ordinary.tolist() == [4, 5]
    assert config_of("file", path=str(path)).expected_vocab_size() == tokenizer.vocab_size == 8


def test_gaps_in_the_numbering_are_rows_but_not_ordinary_tokens(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    ids = {token: index for index, token in enumerate(SPECIALS)} | {"a": 20, "b": 32}
    Tokenizer(models.WordLevel(ids, "[UNK]")).save(str(path))
    tokenizer = TextTokenizer.load(path)
    assert tokenizer.vocab_size == 33
    assert tokenizer.vocabulary.ordinary.tolist() == [20, 32]


def test_a_tokenizer_without_a_special_token_is_refused_with_what_was_looked_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "tokenizer.json"
    Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1}, "[UNK]")).save(str(path))
    with pytest.raises(DataError, match=r"tokenizer\.json: .*no 'cls' token .*\[CLS\] or <s>"):
        TextTokenizer.load(path)


@pytest.mark.parametrize("content", [None, "", "{}", json.dumps({"model": 3}), "\xff"])
def test_a_missing_or_broken_file_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content, encoding="latin-1")
    with pytest.raises(DataError, match=r"tokenizer\.json"):
        TextTokenizer.load(path)


def test_a_vocabulary_that_cannot_hold_the_bytes_is_refused() -> None:
    with pytest.raises(ValidationError, match="261"):
        config_of("bpe", vocab_size=260)
