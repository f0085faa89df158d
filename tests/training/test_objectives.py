import pickle

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from posattn.errors import DataError
from posattn.training.masking import IGNORE
from posattn.training.objectives import (
    AnyObjectiveConfig,
    MaskedLanguageModelling,
    MlmConfig,
    objectives,
)
from posattn.training.text.draws import fold
from posattn.training.text.vocabulary import Vocabulary

VOCABULARY = Vocabulary(50, 0, 1, 2, 3, 4, np.arange(5), np.arange(5, 50))


def test_mlm_has_the_shares_of_bert_by_default() -> None:
    config = TypeAdapter(AnyObjectiveConfig).validate_python("mlm")
    assert config == MlmConfig(probability=0.15, mask=0.8, random=0.1, keep=0.1)
    assert objectives.get("mlm") is MaskedLanguageModelling
    assert config.target_fraction() == 0.15


@pytest.mark.parametrize("shares", [(1, 0, 0), (0, 0, 1), (0.7, 0.2, 0.1), (0.3, 0.6, 0.1)])
def test_shares_must_sum_to_one(shares: tuple[float, float, float]) -> None:
    mask, random, keep = shares
    assert MlmConfig(mask=mask, random=random, keep=keep).mask == mask
    with pytest.raises(ValidationError, match=r"mask \+ random \+ keep must be 1, got"):
        MlmConfig(mask=mask, random=random, keep=keep - 0.01 if keep else 0.01)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "0.15"])
def test_a_probability_is_a_number_from_zero_to_one(value: object) -> None:
    with pytest.raises(ValidationError, match="probability"):
        MlmConfig.model_validate({"name": "mlm", "probability": value})


def test_the_card_says_what_is_selected_and_shown() -> None:
    card = MlmConfig().card()
    assert "15%" in card["selected"]
    assert "80%" in card["shown as"]


def test_a_tokenizer_of_special_tokens_only_is_refused() -> None:
    empty = Vocabulary(5, 0, 1, 2, 3, 4, np.arange(5), np.arange(0))
    with pytest.raises(DataError, match="no ordinary token"):
        MaskedLanguageModelling(MlmConfig(), empty)


def test_an_objective_works_the_same_after_pickling() -> None:
    objective = MaskedLanguageModelling(MlmConfig(probability=0.5), VOCABULARY)
    again = pickle.loads(pickle.dumps(objective))
    ids = np.full((4, 30), 20)
    given = (
        ids,
        np.ones(ids.shape, np.bool_),
        fold(1, np.arange(4)),
        np.tile(np.arange(30), (4, 1)),
    )
    for one, two in zip(objective.apply(*given), again.apply(*given), strict=True):
        assert np.array_equal(one, two)
    assert 30 < (objective.apply(*given)[1] != IGNORE).sum() < 90
