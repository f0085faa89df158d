"""The feed-forward width at which a model has a given number of parameters."""

from math import floor

from posattn.errors import RecipeError
from posattn.recipe.build import build_on_meta
from posattn.recipe.schema import Recipe


def count_parameters(recipe: Recipe, vocab_size: int, width: int | None = None) -> int:
    """Return the parameters of the recipe's model, with another feed-forward width if given."""
    if width is not None:
        encoder = recipe.encoder.model_copy(update={"intermediate_size": width})
        recipe = recipe.model_copy(update={"encoder": encoder})
    return sum(parameter.numel() for parameter in build_on_meta(recipe, vocab_size).parameters())


def matched_width(recipe: Recipe, target: int, vocab_size: int, multiple: int = 1) -> int:
    """Return the width, a multiple of `multiple`, that comes nearest to `target` parameters.

    Parameters are linear in the width, P(w) = P(0) + w (P(2) - P(1)). Raises `RecipeError` where
    the nearest width would be below `multiple`.
    """
    one, two = (count_parameters(recipe, vocab_size, width) for width in (1, 2))
    each = two - one
    exact = 1 + (target - one) / each
    below = floor(exact / multiple) * multiple
    nearest = min((below, below + multiple), key=lambda width: abs(width - exact))
    if nearest < multiple:
        least = one + (multiple - 1) * each
        raise RecipeError(
            f"match: parameters is impossible for the arm '{recipe.name}': with a feed-forward width "
            f"of {multiple}, the least there is, it has {least:,} parameters, and the baseline has "
            f"{target:,} (a unit of width is {each:,}). Widen the baseline's feed-forward, make the "
            "arm smaller elsewhere, or match by flops or time"
        )
    return nearest
