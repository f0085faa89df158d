"""posattn: controlled comparison of position mechanisms in Transformer encoders.

Everything here loads on first use, so that `import posattn` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posattn import backends, mechanisms, testing
    from posattn.checkpoints.drop_in.speed_up import slow_down, speed_up
    from posattn.checkpoints.loading import from_pretrained
    from posattn.recipe.build import build
    from posattn.recipe.schema import Recipe, load_recipe

__version__ = "0.1.0"

__all__ = [
    "Recipe",
    "__version__",
    "backends",
    "build",
    "from_pretrained",
    "load_recipe",
    "mechanisms",
    "slow_down",
    "speed_up",
    "testing",
]

_ATTRIBUTES = {
    "Recipe": "posattn.recipe.schema",
    "build": "posattn.recipe.build",
    "from_pretrained": "posattn.checkpoints.loading",
    "load_recipe": "posattn.recipe.schema",
    "slow_down": "posattn.checkpoints.drop_in.speed_up",
    "speed_up": "posattn.checkpoints.drop_in.speed_up",
}
_PACKAGES = frozenset({"backends", "mechanisms", "testing"})


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"posattn.{name}")
    if name in _ATTRIBUTES:
        return getattr(import_module(_ATTRIBUTES[name]), name)
    raise AttributeError(f"module 'posattn' has no attribute '{name}' (it has {__all__})")


def __dir__() -> list[str]:
    return __all__
