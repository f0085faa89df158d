"""The templates of a page of blocks: style sheets, macros and filters, for HTML and Markdown."""

import re
from collections.abc import Mapping

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from posattn.figures.figure import shared_file

NO_BREAK = "\u00a0"
SHARED = ("blocks.html.j2", "style.css", "figure.css")


def page_environment(templates: Mapping[str, str]) -> Environment:
    """Return the templates given, by name, beside those that all pages share."""
    environment = Environment(
        loader=DictLoader({**{name: shared_file(name) for name in SHARED}, **templates}),
        autoescape=lambda name: bool(name and ".html" in name),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["md"] = markdown_text
    environment.filters["raw"] = Markup
    environment.filters["soft"] = soft_breaks
    environment.filters["whole"] = whole_numbers
    return environment


def markdown_text(text: str) -> str:
    """Return the text with everything escaped that Markdown would read as markup."""
    text = re.sub(r"([\\`*|])", r"\\\1", text)
    text = re.sub(r"<(?=[A-Za-z/!?])", r"\<", text)
    text = re.sub(r"\](?=[(\[:])", r"\]", text)
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\_", text)


def soft_breaks(text: str) -> Markup:
    """Return the text as HTML that may break after an underscore."""
    return Markup("_<wbr>").join(text.split("_"))


def whole_numbers(text: str) -> str:
    """Return the text with intervals and `n = 3` held together on one line."""
    held = re.sub(r"\[[^\]]*\]", lambda match: match.group().replace(" ", NO_BREAK), text)
    return held.replace("n = ", f"n{NO_BREAK}={NO_BREAK}")
