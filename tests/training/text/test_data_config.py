import pytest
from pydantic import ValidationError

from posattn.training.text.config import DataConfig
from posattn.training.text.corpora.pydoc import PydocConfig
from posattn.training.text.tokenizers import WordPieceConfig


def data(**given: object) -> DataConfig:
    return DataConfig.model_validate({"corpus": "pydoc", **given})


def test_names_alone_stand_for_entries_with_their_defaults() -> None:
    config = data(tokenizer="wordpiece")
    assert config.corpus == PydocConfig()
    assert config.tokenizer == WordPieceConfig()


def test_the_options_of_an_entry_survive_saving_and_loading() -> None:
    config = data(tokenizer={"name": "bpe", "vocab_size": 999, "normalization": "nfc"})
    again = DataConfig.model_validate(config.model_dump(mode="json"))
    assert again == config
    assert config.model_dump()["tokenizer"]["vocab_size"] == 999


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"layout": "padded", "across_documents": False}, "across_documents"),
        ({"padding_side": "left"}, "padded"),
        ({"order": "streams", "layout": "padded"}, "order: streams needs layout: packed"),
        ({"order": "streams", "across_documents": False}, "order: streams needs"),
        ({"max_length": 3}, "greater than or equal to 4"),
        ({"validation_fraction": 0.0}, "greater than 0"),
        ({"validation_fraction": 0.9}, "less than or equal to 0.5"),
        ({"tokenizer": {"name": "bpe", "vocab_sizes": 3}}, "vocab_sizes"),
        ({"tokenizer": "bep"}, "did you mean 'bpe'"),
        ({"corpus": {"name": "shakespear"}}, "did you mean 'shakespeare'"),
        ({"corpus": {"paths": ["x"]}}, "needs a name"),
    ],
)
def test_what_does_not_fit_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        data(**given)


def test_the_layout_of_rows_is_the_sections_own() -> None:
    rows = data(max_length=64, cls=False, order="streams").rows
    assert (rows.kind, rows.max_length, rows.cls, rows.order) == ("packed", 64, False, "streams")
