"""Y-1 and Y-2: what a plain scalar means."""

import json
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posattn.recipe.scalars import SourceFloat, SourceInt, plain, resolve_plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("1E5", 1e5),
        ("12e3", 12e3),
        ("1.0e4", 1e4),
        (".5", 0.5),
        ("1.", 1.0),
        ("-.5e-3", -0.5e-3),
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("0o17", 15),
        ("0x1F", 31),
    ],
)
def test_numbers_of_the_core_schema_are_numbers_and_keep_their_spelling(text, value):
    number = resolve_plain(text)
    assert number == value
    assert type(number) is (SourceFloat if isinstance(value, float) else SourceInt)
    assert number.source_text == text


@pytest.mark.parametrize(
    "text",
    [
        *("nan", "inf", "1:30", "1_000", "2024-01-01", "off", "no", "on", "yes", "tRue", "1e"),
        *("e5", "-", "0b1", "1.2.3", "10%", "."),
    ],
)
def test_other_words_are_text(text):
    assert resolve_plain(text) == text
    assert type(resolve_plain(text)) is str


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_null_has_five_spellings(text):
    assert resolve_plain(text) is None


@pytest.mark.parametrize("text", ["true", "True", "TRUE", "false", "False", "FALSE"])
def test_booleans_have_six_spellings(text):
    assert resolve_plain(text) is (text.lower() == "true")


def test_infinity_and_nan_are_floats():
    assert resolve_plain(".inf") == math.inf
    assert resolve_plain("-.INF") == -math.inf
    assert math.isnan(resolve_plain(".nan"))


@pytest.mark.parametrize(
    ("text", "offers"), [("010", ["10", "0o10", '"010"']), ("-09", ["-9"]), ("00", ["0"])]
)
def test_a_leading_zero_is_refused_with_the_alternatives(text, offers):
    with pytest.raises(ValueError, match="begins with a zero") as caught:
        resolve_plain(text)
    assert all(offer in str(caught.value) for offer in offers)


def test_a_number_of_absurd_length_is_refused_and_does_not_stop_the_reader():
    with pytest.raises(ValueError, match="the limit is 4000"):
        resolve_plain("9" * 5000)


def test_numbers_with_a_spelling_are_saved_as_plain_numbers_and_pickle():
    data = {"a": [SourceFloat(12e3, "12e3"), SourceInt(3, "0x3")]}
    assert json.dumps(data) == '{"a": [12000.0, 3]}'
    stripped = plain(data)
    assert [type(item) for item in stripped["a"]] == [float, int]
    again = pickle.loads(pickle.dumps(data["a"][0]))
    assert (again, again.source_text) == (12e3, "12e3")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_float_reads_back_from_its_repr(number):
    assert resolve_plain(repr(number)) == number


@given(st.text(max_size=30).filter(lambda text: not text.lstrip("+-").startswith("0")))
def test_any_other_text_resolves_to_something(text):
    value = resolve_plain(text)
    assert value is None or isinstance(value, (bool, int, float, str))
