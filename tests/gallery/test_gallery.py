"""The gallery is drawn from real code, says what it is told by traits, and stops at nothing broken."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Literal

import pytest
import torch

from posattn.gallery import make_gallery, write_html, write_markdown
from posattn.gallery.cost import Contestant, measure
from posattn.gallery.exhibit import knowledge
from posattn.gallery.figures import distance_figure, offset_figure, pattern_figure
from posattn.gallery.page import ratio_text
from posattn.gallery.portrait import SIDE, draw_offsets, draw_portrait
from posattn.mechanisms import Mechanism, MechanismConfig, Traits, names
from posattn.mechanisms import registry as mechanisms

ROOT = Path(__file__).resolve().parents[2]


class BrokenConfig(MechanismConfig):
    name: Literal["broken"] = "broken"


class Broken(Mechanism[BrokenConfig]):
    """Raises when it is used <at once> & always."""

    Config = BrokenConfig

    def prepare(self, geometry):
        raise RuntimeError("no <luck> today")


@pytest.fixture(scope="module")
def gallery():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(mechanisms._entries, "broken", Broken)
        return make_gallery(1, lambda text: None)


def test_the_portrait_of_alibi_is_its_formula():
    portrait = draw_portrait("alibi")
    places = torch.arange(portrait.added.shape[1])
    distance = (places[:, None] - places[None]).abs()
    slopes = torch.tensor([0.25, 0.0625, 0.015625, 0.00390625])
    expected = -slopes[:, None, None] * distance
    assert torch.allclose(portrait.added, expected.double(), atol=1e-6)
    assert portrait.visible.all()
    assert portrait.heads() == [0, 1, 2, 3]


def test_the_portrait_of_rope_is_the_sum_of_its_cosines():
    portrait = draw_portrait("rope")
    frequencies = 10000.0 ** (-torch.arange(8, dtype=torch.float64) / 8)
    expected = (2 * (torch.cos(12 * frequencies) - 1)).sum() / 16**0.5
    assert float(portrait.added[2, 30, 18]) == pytest.approx(float(expected), abs=1e-6)
    assert portrait.heads() == [0]


def test_the_portrait_on_a_grid_turns_half_of_the_pairs_by_either_axis():
    portrait, half = draw_offsets("rope"), SIDE // 2
    figure = offset_figure("rope", portrait)
    found = {(row, column): value for _, row, column, value in figure.rows}
    assert len(found) == SIDE * SIDE
    assert found[0, 0] == 0.0
    assert found[half, 0] == pytest.approx(found[0, half])
    assert found[half, half] == pytest.approx(found[half, 0] + found[0, half])
    assert found[-half, 2] == pytest.approx(found[half, -2])


def test_nothing_is_added_without_a_mechanism():
    assert draw_portrait("none").is_empty()


def test_figures_show_hidden_keys_and_skip_them_in_the_curve():
    portrait = draw_portrait("alibi")
    portrait.visible[:2] = portrait.visible[:2].tril()
    pattern, curve = pattern_figure("a", portrait), distance_figure("a", portrait)
    assert 'class="cell hid"' in pattern.wide
    assert "the query cannot see the key" in pattern.narrow
    assert ("head 1", 0, 1, None) in pattern.rows
    assert min(row[1] for row in curve.rows if row[0] == "head 1") == 0
    assert min(row[1] for row in curve.rows if row[0] == "head 3") == -32


def test_costs_are_those_of_the_mechanism_beside_none():
    costs, conditions = measure(["learned"], 2, lambda text: None)
    assert costs["learned"].parameters == 512 * 128
    assert costs["none"].parameters == 0
    assert costs["none"].training.median == 1.0
    assert costs["learned"].training.low <= costs["learned"].training.high
    assert conditions["rounds"].startswith("2, interleaved")
    assert measure(["rope"], 0, print)[0]["rope"].training is None
    assert Contestant("disentangled").kept_bytes() > Contestant("none").kept_bytes() > 10**6
    assert ratio_text(None) == "not measured"


def test_knowledge_is_read_from_the_traits():
    assert knowledge(Traits(knows_direction=False), None)["direction"].startswith("no (left")
    assert knowledge(Traits(knows_position=False), None)["order of the tokens"].startswith("no")
    absolute = knowledge(Traits(translation_invariant=False, causal=True), 1512)
    assert absolute["absolute position"] == "yes"
    assert absolute["runs beyond the training length"] == "no (at most 1,512 tokens)"
    assert absolute["sees later tokens"] == "no (causal)"


class Wellformed(HTMLParser):
    """Remembers ids and links, and that tags close."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.outside = [], [], [], []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in ("meta", "link", "br", "wbr", "img"):
            self.open.append(tag)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if tag == "a" else []
        self.outside += [given[key] for key in ("src", "xlink:href") if key in given]

    def handle_startendtag(self, tag, attrs):
        self.outside += [value for key, value in attrs if key == "src"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_stands_alone_and_shows_every_mechanism(gallery, tmp_path):
    text = write_html(gallery, tmp_path / "new").read_text()
    page = Wellformed()
    page.feed(text)
    assert page.open == []
    assert page.outside == []
    assert "http" not in re.sub(r'xmlns="[^"]+"', "", text)
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert {*names(), "broken", "overview"} <= set(page.ids)
    assert "RuntimeError: no &lt;luck&gt; today" in text
    assert "Press et al. 2021, arXiv:2108.12409" in text
    assert "quick/alibi" in text
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text


def test_the_documentation_page_has_small_drawings(gallery, tmp_path):
    page = write_markdown(gallery, tmp_path).read_text()
    drawings = sorted((tmp_path / "gallery").iterdir())
    for name in set(names()) - {"none", "broken"}:
        assert f"[{name}](#{name})" in page.replace("\\_", "_")
        assert f"(gallery/{name}-pattern.svg)" in page
        assert f"(gallery/{name}-distance.svg)" in page
    assert set(re.findall(r"\((gallery/[^)]+)\)", page)) == {
        f"gallery/{path.name}" for path in drawings
    }
    assert max(path.stat().st_size for path in drawings) < 30_000
    assert "RuntimeError: no \\<luck> today" in page


def test_the_shipped_documentation_shows_every_mechanism():
    page = (ROOT / "docs/gallery.md").read_text().replace("\\_", "_")
    missing = [name for name in names() if f"{{ #{name} }}" not in page]
    assert not missing, f"run `posattn gallery --docs docs`: {missing} are not in docs/gallery.md"
