"""The field types that all recipe sections share."""

from typing import Any, ClassVar, Literal

import pytest
from pydantic import ValidationError

from posattn.config import FrozenConfig, Many, NamedConfig, Text, open_field
from posattn.recipe.scalars import SourceFloat, SourceInt
from posattn.registry import Registry

figures: Registry[Any] = Registry("shape", "posattn.none")


class ShapeConfig(NamedConfig):
    """Any shape."""


@figures.register("circle")
class Circle:
    """A circle."""

    class Config(ShapeConfig):
        """Its options."""

        name: Literal["circle"] = "circle"
        radius: float = 1.0


class Drawing(FrozenConfig):
    """A section with every kind of field."""

    title: Text = ""
    width: int = 1
    scale: float = 1.0
    tags: Many[Text] = ()
    shape: open_field(figures, ShapeConfig) = Circle.Config()  # type: ignore[valid-type]
    shapes: Many[open_field(figures, ShapeConfig)] = ()  # type: ignore[valid-type]
    known: ClassVar[int] = 1


@pytest.mark.parametrize(
    ("number", "text"), [(SourceFloat(12e3, "12e3"), "12e3"), (SourceInt(16, "0x10"), "0x10")]
)
def test_a_text_field_keeps_a_number_as_it_was_written(number, text):
    assert Drawing(title=number, tags=[number]).title == text


@pytest.mark.parametrize("value", [True, None, [1], 3])
def test_a_text_field_takes_text_only(value):
    with pytest.raises(ValidationError):
        Drawing(title=value)


def test_numbers_come_out_plain():
    drawing = Drawing(width=SourceInt(3, "0x3"), scale=SourceFloat(0.5, ".5"))
    assert type(drawing.width) is int
    assert type(drawing.scale) is float


@pytest.mark.parametrize(
    "fault",
    [
        {"width": "1"},
        {"width": 1.5},
        {"width": True},
        {"scale": "1e-4"},
        {"scale": float("nan")},
        {"scale": float("inf")},
        {"widht": 1},
        {"shape": {"name": "circle", "radios": 1}},
        {"shape": {"radius": 1}},
        {"shape": 3},
        {"shape": "square"},
        {"tags": "one"},
    ],
)
def test_types_are_strict_and_unknown_keys_refused(fault):
    with pytest.raises(ValidationError):
        Drawing.model_validate(fault)


def test_a_config_is_frozen():
    with pytest.raises(ValidationError):
        Drawing().width = 2


def test_an_open_field_takes_a_bare_name_a_mapping_or_a_config():
    for value in ("circle", {"name": "circle"}, Circle.Config()):
        assert Drawing(shape=value, shapes=[value]).shapes == (Circle.Config(),)


def test_dumping_keeps_the_options_of_the_entry():
    drawing = Drawing(shape={"name": "circle", "radius": 2}, shapes=["circle"])
    data = drawing.model_dump(mode="json")
    assert data["shape"] == {"name": "circle", "radius": 2.0}
    assert data["shapes"] == [{"name": "circle", "radius": 1.0}]
    assert Drawing.model_validate(data) == drawing


def test_errors_in_an_open_field_keep_their_place():
    with pytest.raises(ValidationError) as caught:
        Drawing.model_validate({"shapes": ["circle", {"name": "circle", "radius": "x"}]})
    assert caught.value.errors()[0]["loc"] == ("shapes", 1, "radius")


def test_the_json_schema_offers_every_entry():
    offered = Drawing.model_json_schema()["properties"]["shape"]["oneOf"]
    assert offered[0] == {"enum": ["circle"]}
    assert offered[1]["properties"]["radius"]["type"] == "number"
    assert offered[1]["properties"]["name"] == {"const": "circle"}
    assert offered[1]["required"] == ["name"]
