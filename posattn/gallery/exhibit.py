"""`Exhibit`: all that the gallery says of one mechanism, read from its code and its docstring."""

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

from posattn.figures.figure import Figure
from posattn.gallery.cost import Cost, measure
from posattn.gallery.figures import distance_figure, offset_figure, pattern_figure
from posattn.gallery.portrait import draw_offsets, draw_portrait
from posattn.mechanisms import Traits, registry
from posattn.recipe.example import example, shipped_uses
from posattn.recipe.writer import write_yaml


@final
@dataclass(frozen=True)
class Exhibit:
    """One mechanism with its default options."""

    name: str
    origin: str
    citation: str
    details: str
    knows: Mapping[str, str]
    card: Mapping[str, str]
    recipe: str
    shipped: list[str]
    figures: list[Figure]
    cost: Cost
    problem: str = ""


@final
@dataclass(frozen=True)
class Gallery:
    """Every registered mechanism, and under which conditions the costs were measured."""

    exhibits: list[Exhibit]
    conditions: dict[str, Any]


def make_gallery(rounds: int, say: Callable[[str], None]) -> Gallery:
    """Return the gallery of all mechanisms that are registered; what fails is said in its place."""
    names = registry.names()
    costs, conditions = measure(names, rounds, say)
    exhibits = [_exhibit(name, costs[name]) for name in names]
    return Gallery(exhibits, conditions)


def _exhibit(name: str, cost: Cost) -> Exhibit:
    entry = registry.get(name)
    citation, details = _words(entry)
    plugin = registry.plugins().get(name)
    origin = "posattn" if plugin is None or plugin.problem else plugin.distribution
    knows: Mapping[str, str] = {}
    card: Mapping[str, str] = {}
    recipe, figures, problem = "", [], ""
    shipped = [use for use, _ in shipped_uses(name)]
    try:
        config = example(name)
        part = config.mechanism[0]
        options = part.model_dump(mode="json", exclude={"layers"})
        recipe = write_yaml({"encoder": {"mechanism": options}}).rstrip()
        knows = knowledge(part.traits(), config.max_length())
        card = part.card(config.dims())
        portrait = draw_portrait(name)
        if not portrait.is_empty():
            figures = [pattern_figure(name, portrait), distance_figure(name, portrait)]
            if "grid" in part.traits().relations:
                figures.append(offset_figure(name, draw_offsets(name)))
    except Exception as error:  # one mechanism that fails does not stop the others
        problem = f"{type(error).__name__}: {error}"
    return Exhibit(
        name, origin, citation, details, knows, card, recipe, shipped, figures, cost, problem
    )


def knowledge(traits: Traits, max_length: int | None) -> dict[str, str]:
    """Return what a mechanism can and cannot know, as its traits state it."""
    if not traits.knows_position:
        order, direction = "no (the tokens are a bag)", "no"
    else:
        order = "yes"
        direction = "yes" if traits.knows_direction else "no (left and right mirror each other)"
    absolute = "no" if traits.translation_invariant else "yes"
    beyond = "yes (no limit)" if max_length is None else f"no (at most {max_length:,} tokens)"
    return {
        "order of the tokens": order,
        "direction": direction,
        "absolute position": absolute,
        "runs beyond the training length": beyond,
        "sees later tokens": "no (causal)" if traits.causal else "yes",
        "relations that it reads": ", ".join(traits.relations),
    }


def _words(entry: type) -> tuple[str, str]:
    """Return the first paragraph of the mechanism's module, as one line, and the rest."""
    module = sys.modules.get(entry.__module__)
    text = inspect.getdoc(module) or inspect.getdoc(entry) or entry.__name__
    first, _, rest = text.partition("\n\n")
    return " ".join(first.split()), rest.rstrip()
