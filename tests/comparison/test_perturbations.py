"""Evaluations that move, reorder and pad text: what the maths says, and faults that they find."""

from pathlib import Path
from typing import Any

import pytest
import torch

from posattn.comparison.evaluations import promises
from posattn.comparison.evaluations.alone import alone_names, measure_run, measure_untrained
from posattn.comparison.evaluations.changes import compare
from posattn.comparison.evaluations.promises import Promise
from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import MaskDecoderConfig, PlainDecoderConfig
from posattn.errors import RecipeError
from posattn.mechanisms import LearnedConfig, Traits
from posattn.mechanisms.rope import RotaryPositions
from posattn.recipe.schema import Recipe, load_recipe

TINY = {
    "encoder.hidden_size": 16,
    "encoder.num_layers": 1,
    "encoder.num_heads": 2,
    "encoder.backend": "eager",
    "data": {"corpus": "pydoc", "tokenizer": {"name": "characters"}, "max_length": 16},
}


def recipe(mechanism: Any, **more: Any) -> Recipe:
    return load_recipe("quick/base", {**TINY, "encoder.mechanism": mechanism, **more})


def checks(evaluation: str, of: Recipe, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = measure_untrained(evaluation, of, options)["checks"]
    return found


@pytest.mark.parametrize(
    ("mechanism", "decoder", "translation", "permutation", "reversal"),
    [
        ("none", "plain", True, True, True),
        ("learned", "plain", False, False, False),
        ("rope", "plain", True, False, False),
        ({"name": "alibi", "variant": "symmetric"}, "plain", True, False, True),
        ("rope", "emd", False, False, False),
        (["alibi", "sinusoidal"], "plain", False, False, False),
    ],
)
def test_a_model_promises_what_all_of_its_parts_promise(
    mechanism: Any, decoder: str, translation: bool, permutation: bool, reversal: bool
) -> None:
    encoder = EncoderConfig(mechanism=mechanism)
    after = PlainDecoderConfig() if decoder == "plain" else MaskDecoderConfig()
    assert promises.of_translation(encoder, after).same == translation
    assert promises.of_permutation(encoder, after).same == permutation
    assert promises.of_reversal(encoder, after).same == reversal


def test_a_window_and_a_convolution_see_where_tokens_are() -> None:
    plain = PlainDecoderConfig()
    window = EncoderConfig(mechanism="none", window={"size": 4})
    assert not promises.of_permutation(window, plain).same
    assert promises.of_reversal(window, plain).same
    convolution = EncoderConfig(mechanism="none", convolution={})
    assert not promises.of_permutation(convolution, plain).same
    assert not promises.of_reversal(convolution, plain).same
    assert promises.of_translation(convolution, plain).same


@pytest.mark.parametrize(
    ("same", "apart", "held"), [(True, 0.0, True), (True, 1.0, False), (False, 1.0, True)]
)
def test_a_check_holds_where_nothing_changes_or_where_something_must(
    same: bool, apart: float, held: bool
) -> None:
    usual = torch.tensor([[[4.0, -8.0]]])
    check = compare("moved", usual, usual + apart, Promise(same, "maths"), 1e-6)
    assert (check.largest, check.mean, check.relative) == (apart, apart, apart / 8)
    assert check.held is held
    assert compare("moved", usual, usual, Promise(False, ""), 1e-6, judged=False).held is None


@pytest.mark.parametrize("mechanism", ["none", "rope", "disentangled", "t5", "transformer_xl"])
def test_moving_text_changes_nothing_for_relative_mechanisms(
    text_cache: Path, mechanism: str
) -> None:
    found = checks("shift", recipe(mechanism), offsets=(1, 8))
    assert [(check["name"], check["amount"]) for check in found] == [
        *(("filler", 1), ("filler", 8)),
        *(("positions", 1), ("positions", 8)),
    ]
    assert all(check["held"] and check["relative"] < 1e-12 for check in found)


def test_moving_text_changes_what_absolute_positions_see(text_cache: Path) -> None:
    learned = recipe({"name": "learned", "max_positions": 20}, **{"data.max_length": 16})
    result = measure_untrained("shift", learned, {"offsets": (1, 8)})
    assert result["length"] == 12  # 20 positions, 8 of them for the largest offset
    assert [check["held"] for check in result["checks"]] == [None, True, None, True]
    assert all(check["relative"] > 1e-3 for check in result["checks"])


def test_a_table_without_room_is_a_reason_and_no_failure(text_cache: Path) -> None:
    learned = recipe({"name": "learned", "max_positions": 16})
    result = measure_untrained("shift", learned, {"offsets": (15,)})
    assert result["checks"] == []
    assert "at most 16 tokens" in result["reason"]


def test_a_mechanism_that_breaks_its_promise_is_found(
    text_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LearnedConfig, "traits", lambda _: Traits(adds_to_input=True))
    found = checks("shift", recipe("learned"), offsets=(1,))
    assert [check["held"] for check in found] == [False, False]


def test_without_positions_shuffled_tokens_keep_their_logits(text_cache: Path) -> None:
    found = checks("permutation", recipe("none"))
    assert [check["name"] for check in found] == ["shuffled", "reversed"]
    assert all(check["held"] and check["same"] for check in found)


def test_symmetric_biases_see_order_and_no_direction(text_cache: Path) -> None:
    shuffled, turned = checks("permutation", recipe({"name": "alibi", "variant": "symmetric"}))
    assert not shuffled["same"]
    assert turned["same"]
    assert shuffled["held"]
    assert turned["held"]


def test_a_rotation_without_effect_is_found(
    text_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(check["held"] for check in checks("permutation", recipe("rope")))
    monkeypatch.setattr(RotaryPositions, "rotate", lambda _, heads, prepared: heads)
    assert [check["held"] for check in checks("permutation", recipe("rope"))] == [False, False]


@pytest.mark.parametrize("mechanism", ["learned", "disentangled"])
def test_padding_and_other_rows_change_nothing(text_cache: Path, mechanism: str) -> None:
    found = checks("padding", recipe(mechanism))
    assert [check["name"] for check in found] == ["right", "left", "batch"]
    assert all(check["held"] for check in found)


def test_positions_that_count_padding_are_found(
    text_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counting_all(visible: torch.Tensor) -> torch.Tensor:
        return torch.arange(visible.shape[1]).expand(visible.shape)

    monkeypatch.setattr("posattn.encoder.encoder.counted_positions", counting_all)
    found = {check["name"]: check["held"] for check in checks("padding", recipe("learned"))}
    assert found == {"right": True, "left": False, "batch": True}


def test_some_evaluations_stand_alone_and_others_say_that_they_do_not() -> None:
    expected = ["attention_distance", "padding", "permutation", "shift"]
    assert [name for name in alone_names() if name in expected] == expected
    with pytest.raises(RecipeError, match="'validation' belongs to a study; outside of one"):
        measure_untrained("validation", recipe("none"))
    with pytest.raises(RecipeError, match="evaluation 'shift', offsets"):
        measure_untrained("shift", recipe("none"), {"offsets": (0,)})
    with pytest.raises(RecipeError, match="offsets must ascend"):
        measure_untrained("shift", recipe("none"), {"offsets": (2, 1)})


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="holds no finished run"):
        measure_run("shift", tmp_path)
