"""The class of transformers that computes what a model computes, if there is one, with its weights."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from posattn.checkpoints.export.inverse import tensors_behind
from posattn.checkpoints.export.sections import OF_TRAINING, differences, plain_section
from posattn.checkpoints.families import Family, Plan, families
from posattn.checkpoints.parts import Parts
from posattn.checkpoints.pretrained import Pretrained
from posattn.checkpoints.sentence import SENTENCE
from posattn.checkpoints.settings import Settings
from posattn.encoder.config import EncoderConfig
from posattn.encoder.heads import HeadConfig
from posattn.errors import CheckpointError
from posattn.training.weights import shapes

_HEADS = {
    "sequence": "ForSequenceClassification",
    "choice": "ForMultipleChoice",
    "token": "ForTokenClassification",
    "span": "ForQuestionAnswering",
    "pooled": "Model",
}


@dataclass(frozen=True)
class Home:
    """A model of transformers with our weights; notes say which options importing it gives otherwise."""

    family: str
    architecture: str
    model: Any
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Homeless:
    """Why no class of transformers computes what the model computes: the nearest one's differences."""

    reasons: tuple[str, ...]


def find_home(made: Pretrained, extra: Mapping[str, Any]) -> Home | Homeless:
    """Return the first class that computes the same; `extra` are further keys of its config.json."""
    if find_spec("transformers") is None:
        raise CheckpointError(
            "an export needs transformers, to compare with it: pip install 'posattn[checkpoints]'"
        )
    known = [families.get(name)() for name in families.names()]
    nearest: list[str] | None = None
    for family in (family for family in known if family.prefix):
        tried = _try(family, made, extra)
        if isinstance(tried, Home):
            return tried
        if nearest is None or len(tried) < len(nearest):
            nearest = [f"{family.name}: {reason}" for reason in tried]
    return Homeless(tuple(nearest or ["no family can be exported"]))


def _try(family: Family, made: Pretrained, extra: Mapping[str, Any]) -> Home | list[str]:
    architecture = _architecture(family, made)
    if architecture is None:
        return [f"no class has the heads {', '.join(made.tasks.tasks)} together"]
    rows = made.encoder.tokens.num_embeddings
    own = plain_section(made.recipe.encoder, rows)
    section = family.widened(own)
    config = {**extra, **family.config(section)}
    try:
        bare = family.plan(Settings({**config, "architectures": []}, family.name), {})
        if reasons := list(_beyond_training(_encoders(section, bare, rows))):
            return reasons
        model = _build(config, architecture, made)
        settings = Settings(
            {**model.config.to_dict(), "architectures": [architecture]}, family.name
        )
        stored = shapes(model.state_dict())
        plan = family.plan(settings, stored)
    except (CheckpointError, ValueError, TypeError, KeyError) as error:
        return [f"its class cannot be made with these options ({error})"]
    found = list(_differences(made, section, plan))
    if reasons := _beyond_training(found):
        return reasons
    try:
        tensors = tensors_behind(plan.table, stored, _widened(family, made, plan))
    except CheckpointError as error:
        return [str(error)]
    missing = model.load_state_dict(tensors, strict=False)
    assert not missing.unexpected_keys
    notes = (*differences(own, section, "encoder"), *found)
    return Home(family.name, architecture, model.eval(), notes)


def _beyond_training(found: Iterable[str]) -> list[str]:
    """Return the differences that change what a trained model computes."""
    return [text for text in found if not any(f".{name} " in text for name in OF_TRAINING)]


def _encoders(section: Mapping[str, Any], plan: Plan, rows: int) -> Iterator[str]:
    theirs = EncoderConfig.model_validate(plan.encoder)
    yield from differences(section, plain_section(theirs, rows), "encoder")


def _architecture(family: Family, made: Pretrained) -> str | None:
    heads = set(made.tasks.tasks) - {SENTENCE}
    if made.masked_lm is not None:
        with_pairs = "ForPreTraining" if heads == {"next_sentence"} else None
        suffix = with_pairs if heads else "ForMaskedLM"
        return None if suffix is None else f"{family.prefix}{suffix}"
    if not heads:
        return f"{family.prefix}Model"
    suffix = _HEADS.get(next(iter(heads))) if len(heads) == 1 else None
    return None if suffix is None else f"{family.prefix}{suffix}"


def _build(config: Mapping[str, Any], architecture: str, made: Pretrained) -> Any:
    import transformers

    given = {key: value for key, value in config.items() if key != "model_type"}
    full = transformers.AutoConfig.for_model(config["model_type"], **given)
    kind = getattr(transformers, architecture)
    bare = architecture.endswith("Model") and "pooled" not in made.tasks.tasks
    options = {"add_pooling_layer": False} if bare and _has_pooler(kind) else {}
    with torch.random.fork_rng(devices=[]):
        return kind(full, **options)


def _has_pooler(kind: Any) -> bool:
    return "add_pooling_layer" in kind.__init__.__code__.co_varnames


def _differences(made: Pretrained, section: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    """Yield where importing the export would give another recipe than the model's."""
    yield from _encoders(section, plan, made.encoder.tokens.num_embeddings)
    if made.masked_lm is not None:
        if made.recipe.decoder.name != plan.decoder["name"]:
            yield f"decoder is {made.recipe.decoder.name}, and there {plan.decoder['name']}"
        heads = (made.recipe.head, HeadConfig.model_validate(plan.head))
        ours, other = (head.resolved(made.recipe.encoder) for head in heads)
        yield from differences(ours.model_dump(mode="json"), other.model_dump(mode="json"), "head")
    for name, config in made.heads().items():
        if name != SENTENCE:
            options = type(config).model_validate(plan.tasks.get(name, {}))
            one, two = (item.model_dump(mode="json") for item in (config, options))
            yield from differences(one, two, f"tasks.{name}")


def _widened(family: Family, made: Pretrained, plan: Plan) -> dict[str, Tensor]:
    """Return our tensors, with zeros for what `widened` has added."""
    encoder = EncoderConfig.model_validate(plan.encoder)
    recipe = made.recipe.model_copy(update={"encoder": encoder})
    parts = Parts(
        recipe, made.heads(), made.masked_lm is not None, made.encoder.tokens.num_embeddings
    )
    ours = made.tensors()
    for name, shape in parts.shapes().items():
        if name not in ours and any(fnmatchcase(name, zero) for zero in family.zeros):
            ours[name] = torch.zeros(shape)
    return ours
