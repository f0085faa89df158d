"""The control of depth: an arm without the mask decoder, and with the layers that it runs more.

The enhanced mask decoder applies the last layer once more than the plain one (`layers: 2`), so an arm with it
is deeper. `depth_control_of: ARM` makes the arm that tells depth from absolute position: ARM with the
plain decoder and as many layers more. These layers have weights of their own and run at every
place, where those of the decoder are shared and run at the places decoded, so the control has more of
both; the report shows how much.
"""

from typing import Any

from posattn.comparison.arm_recipe import arm_recipe
from posattn.comparison.differences import under
from posattn.encoder.decoders import PlainDecoderConfig
from posattn.errors import RecipeError
from posattn.recipe.merge import merge
from posattn.recipe.reader import Document, KeyPath
from posattn.recipe.schema import Recipe

DEPTH_CONTROL = "depth_control_of"
"""The key of an arm that names the arm whose depth it has."""


def add_depth_controls(document: Document) -> Document:
    """Return the study with the controls of depth written out, and declared where they must be."""
    arms = document.data.get("arms")
    if not isinstance(arms, dict):
        return document
    for name in [arm for arm, given in arms.items() if _names_one(given)]:
        document = _with_control(document, name)
    return document


def extra_layers(recipe: Recipe) -> int:
    """Return how many layers more a recipe's decoder applies than the plain decoder."""
    plain = PlainDecoderConfig()
    return sum(recipe.decoder.layer_runs(recipe.encoder)) - sum(plain.layer_runs(recipe.encoder))


def _names_one(given: Any) -> bool:
    return isinstance(given, dict) and DEPTH_CONTROL in given


def _with_control(document: Document, name: str) -> Document:
    place: KeyPath = ("arms", name)
    target = _target(document, name)
    recipe = _recipe(document, target)
    extra = extra_layers(recipe)
    if extra < 1:
        raise RecipeError(
            f"{document.origin((*place, DEPTH_CONTROL))}: the decoder of '{target}' "
            f"({recipe.decoder.name}) applies no layer more than the plain decoder, so there is no depth "
            "to control; name an arm with the enhanced mask decoder"
        )
    plain = {"name": "plain"}
    decode = recipe.decoder.model_dump().get("decode", "masked_only")
    if decode != "masked_only":
        plain["decode"] = decode
    deeper = {"decoder": plain, "encoder": {"num_layers": recipe.encoder.num_layers + extra}}
    origin = document.origin((*place, DEPTH_CONTROL))
    made = Document(deeper, {(): origin, ("decoder",): origin, ("encoder",): origin})
    arm = merge(merge(document.part(("arms", target)), made), document.part(place))
    origins = {path: at for path, at in document.origins.items() if path[:2] != place}
    origins.update({(*place, *path): at for path, at in arm.origins.items()})
    data = {**document.data, "arms": {**document.data["arms"], name: arm.data}}
    return _declared(Document(data, origins), name, target, extra)


def _target(document: Document, name: str) -> str:
    arms = document.data["arms"]
    target = arms[name][DEPTH_CONTROL]
    origin = document.origin(("arms", name, DEPTH_CONTROL))
    others = [arm for arm, given in arms.items() if not _names_one(given)]
    if not isinstance(target, str) or target not in others:
        raise RecipeError(
            f"{origin}: {DEPTH_CONTROL} names an arm, not '{target}' (arms: {', '.join(others)})"
        )
    return target


def _recipe(document: Document, target: str) -> Recipe:
    base = document.data.get("base")
    if not isinstance(base, str):
        raise RecipeError(f"{document.origin(())}: base: is missing, and it has no default")
    return arm_recipe(target, base, document.part(("shared",)), document.part(("arms", target)))


def _declared(document: Document, name: str, target: str, extra: int) -> Document:
    """Declare that the control differs in depth and decoder, where the study does not yet."""
    declared = document.data.get("declared", {})
    varies = document.data.get("varies", [])
    if not isinstance(declared, dict) or not isinstance(varies, list | tuple):
        return document
    layers = "1 layer" if extra == 1 else f"{extra} layers"
    why = f"'{name}' is the depth control of '{target}': the plain decoder, and {layers} more"
    known = [*varies, *declared, *document.data.get("compensations", {})]
    missing = [path for path in ("encoder.num_layers", "decoder") if not under(path, known)]
    added = dict.fromkeys(missing, why)
    return Document({**document.data, "declared": {**declared, **added}}, document.origins)
