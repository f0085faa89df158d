"""Reading the pages of a report in tests: tags that nest, ids, text, and where links lead."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}


class Page(HTMLParser):
    """Checks that tags nest, and keeps tags, ids and text."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.ids, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for key, value in attrs if key == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    @property
    def links(self):
        return [a["href"] for tag, a in self.tags if tag == "a"]


def read_page(html):
    page = Page()
    page.feed(html)
    assert page.open == []
    return page


def dead_links(path: Path) -> list[str]:
    """Return the links of a page whose file or id is not there."""
    page = read_page(path.read_text(encoding="utf-8"))
    pages = {path.resolve(): page}
    dead = []
    for link in page.links:
        place, _, fragment = link.partition("#")
        target = (path.parent / unquote(place)).resolve() if place else path.resolve()
        if target.suffix == ".html" and target.is_file() and target not in pages:
            pages[target] = read_page(target.read_text(encoding="utf-8"))
        if not target.exists() or (fragment and fragment not in pages[target].ids):
            dead.append(link)
    return dead
