"""Colours: told apart by who sees colours otherwise, text readable on light and dark, never alone."""

import re
from itertools import combinations

import numpy as np
import pytest

from posattn.figures.canvas import NUM_COLOURS, style_of
from posattn.figures.figure import shared_file

DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
"""Machado, Oliveira and Fernandes (2009), table 1, severity 1.0, on linear RGB."""

TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = TO_XYZ.sum(axis=1)
APART = 20.0
"""Least distance in CIE Lab between two arms; 2.3 is just noticeable, 0.4 is what red and brown had."""
APART_FROM_BASELINE = 15.0
"""The baseline's line is also the only unbroken one, and thicker."""


def linear(colour):
    letters = colour.lstrip("#")
    letters = "".join(c * 2 for c in letters) if len(letters) == 3 else letters
    value = np.array([int(letters[i : i + 2], 16) for i in (0, 2, 4)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    x, y, z = (
        np.cbrt(v) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116 for v in TO_XYZ @ rgb / WHITE
    )
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def distance(one, other, matrix):
    seen = [lab(np.clip(matrix @ linear(colour), 0, 1)) for colour in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1]))


def contrast(one, other):
    bright, dim = sorted((float(TO_XYZ[1] @ linear(c)) for c in (one, other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def themes(name):
    """Return the colour variables of a style sheet for light, dark and print."""
    sheet = shared_file(name)
    dark, paper = sheet.index("prefers-color-scheme:dark"), sheet.index("@media print")
    parts = {"light": sheet[:dark], "dark": sheet[dark:paper], "print": sheet[paper:]}
    light = dict(re.findall(r"--([\w-]+):(#[0-9a-f]{3,6})", parts["light"]))
    found = {}
    for theme, text in parts.items():
        found[theme] = light | dict(re.findall(r"--([\w-]+):(#[0-9a-f]{3,6})", text))
    return found


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_arms_have_colours_that_are_told_apart_by_everybody(theme, deficiency):
    colours = themes("figure.css")[theme]
    matrix = DEFICIENCIES[deficiency]
    arms = [colours[f"c{number}"] for number in range(NUM_COLOURS)]
    for one, other in combinations(arms, 2):
        assert distance(one, other, matrix) >= APART, (one, other)
    for colour in arms:
        assert distance(colour, colours["ink"], matrix) >= APART_FROM_BASELINE, colour
    assert distance(colours["up"], colours["down"], matrix) >= APART


def test_the_simulation_knows_colours_that_are_not_told_apart():
    red_for_brown = distance("#b0242f", "#7a5f00", DEFICIENCIES["deuteranopia"])
    assert red_for_brown < distance("#b0242f", "#7a5f00", DEFICIENCIES["none"]) / 3
    assert distance("#ffffff", "#000000", DEFICIENCIES["none"]) == pytest.approx(100, abs=1e-3)
    assert contrast("#fff", "#000") == pytest.approx(21)


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_names_and_numbers_in_figures_are_readable(theme):
    colours = themes("figure.css")[theme]
    for name in ("ink", "muted", *(f"c{number}" for number in range(NUM_COLOURS))):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_text_of_pages_is_readable_on_everything_it_stands_on(theme):
    colours = themes("style.css")[theme]
    grounds = ("paper", "wash", "mark")
    pairs = [(text, ground) for text in ("ink", "muted", "accent") for ground in grounds]
    pairs += [("bad", "bad-wash"), ("ink", "bad-wash"), ("warn", "warn-wash")]
    for text, ground in [*pairs, ("ink", "warn-wash")]:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def test_no_arm_is_known_by_its_colour_alone():
    shapes = [(s.dash, s.marker) for s in (style_of(i, is_baseline=False) for i in range(40))]
    assert len(set(shapes)) == 40
    assert "" not in {dash for dash, _ in shapes}, "only the baseline's line is unbroken"
    assert style_of(0, is_baseline=True).dash == ""
