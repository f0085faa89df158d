"""The architecture contract of a recipe: what it computes, in words and numbers, for a report."""

from collections.abc import Mapping

from posattn.encoder.config import EncoderConfig
from posattn.mechanisms import LayerPattern, MechanismConfig
from posattn.recipe.check import check_recipe
from posattn.recipe.flops import count_flops
from posattn.recipe.schema import Recipe

Card = dict[str, dict[str, str | int]]


def make_card(recipe: Recipe, vocab_size: int | None = None) -> Card:
    """Return the contract with the numbers that follow from it: parameters and operations."""
    return {**make_contract(recipe), **_numbers(recipe, vocab_size)}


def make_contract(recipe: Recipe) -> Card:
    """Return what the recipe computes: for each part, its lines."""
    encoder = recipe.encoder
    card: Card = {"encoder": _encoder(encoder)}
    for index, part in enumerate(encoder.mechanism, start=1):
        title = "mechanism" if len(encoder.mechanism) == 1 else f"mechanism {index}"
        card[title] = _mechanism(encoder, part)
    card["absolute position"] = _absolute(recipe)
    card["readout"] = {**recipe.decoder.card(encoder), "head": _head(recipe)}
    card["objective"] = _objective(recipe)
    return card


def _encoder(encoder: EncoderConfig) -> dict[str, str | int]:
    norm = encoder.norm
    lines: dict[str, str | int] = {
        "shape": f"{encoder.num_layers} layers x {encoder.hidden_size} wide, {encoder.num_heads} heads "
        f"of {encoder.dims().head_dim}, feed-forward {encoder.inner_size()} ({encoder.activation})",
        "norm": f"{norm.kind.replace('_', ' ')}, {norm.placement}, eps {norm.eps:g}"
        + ("" if norm.bias else ", no bias"),
        "dropout": f"hidden {encoder.hidden_dropout:g}, attention {encoder.attention_dropout:g}",
        "segments": encoder.segments,
        "scale": _scale(encoder),
        "relation": encoder.relation.describe(),
    }
    if encoder.token_rows is not None:
        lines["token table"] = f"{encoder.token_rows:,} rows, whatever the tokenizer has"
    if encoder.embedding_size is not None:
        what = "with segments and norm, " if encoder.embedding_projection == "sum" else ""
        wide = f"{encoder.embedding_size} wide, {what}"
        lines["embeddings"] = f"{wide}projected to {encoder.hidden_size}"
    if (convolution := encoder.convolution) is not None:
        lines["convolution"] = (
            f"of the embeddings, {convolution.kernel_size} wide, {convolution.groups} group(s), "
            f"{convolution.activation}, added after the first layer"
        )
    if encoder.window is not None:
        half = encoder.window.size // 2
        lines["window"] = f"keys up to {half} away, in {_layers(encoder.window.layers)}"
    return lines


def _scale(encoder: EncoderConfig) -> str:
    divisors = {encoder.divisor(layer): None for layer in range(encoder.num_layers)}
    head_dim = encoder.dims().head_dim
    shown = []
    for divisor in divisors:
        terms = divisor**2 / head_dim
        inside = f"{head_dim}" if terms == 1 else f"{terms:g} x {head_dim}"
        shown.append(f"1 / sqrt({inside}) = {1 / divisor:.4g}")
    return ", or by layer ".join(shown)


def _mechanism(encoder: EncoderConfig, part: MechanismConfig) -> dict[str, str | int]:
    traits = part.traits()
    ways = {
        "added to the input": traits.adds_to_input,
        "turns query and key": traits.rotates,
        "added to the logits": traits.adds_bias,
        "added to the values": traits.adds_values,
    }
    limit = part.max_length()
    return {
        "name": part.name,
        "acts": ", ".join(way for way, is_so in ways.items() if is_so) or "nowhere",
        **part.card(encoder.dims()),
        "layers": _layers(part.layers),
        "tells left from right": "yes" if traits.knows_direction else "no",
        "longest input": "unlimited" if limit is None else limit,
        "visibility": "causal" if traits.causal else "both directions",
    }


def _layers(layers: tuple[int, ...] | LayerPattern) -> str:
    if isinstance(layers, tuple):
        return f"layer{'s' * (len(layers) > 1)} {', '.join(map(str, layers))}"
    if layers.every == 1:
        return "all layers" if layers.start == 0 else f"all layers from {layers.start} on"
    ordinal = {2: "2nd", 3: "3rd"}.get(layers.every, f"{layers.every}th")
    return f"every {ordinal} layer from {layers.start} on"


def _absolute(recipe: Recipe) -> dict[str, str | int]:
    absolute = [
        part.name for part in recipe.encoder.mechanism if not part.traits().translation_invariant
    ]
    injected = str(recipe.decoder.card(recipe.encoder).get("injected", "none"))
    return {
        "in the encoder": ", ".join(absolute) or "no",
        "returns in the decoder": "no" if injected == "none" else injected,
    }


def _objective(recipe: Recipe) -> dict[str, str | int]:
    options = recipe.objective.model_dump(mode="json")
    return {key: value if isinstance(value, int) else str(value) for key, value in options.items()}


def _head(recipe: Recipe) -> str:
    head = recipe.head
    steps = [
        "output weights tied to the token table",
        "own bias" if head.output_bias else "no bias",
    ]
    if head.transform:
        projection = "projection" if head.bias else "projection without bias"
        steps = [projection, head.activation or recipe.encoder.activation, "norm", *steps]
    return ", ".join(steps)


def _vocabulary(recipe: Recipe, vocab_size: int | None) -> str:
    if vocab_size is not None:
        return f"vocabulary {vocab_size:,}"
    expected = recipe.data.tokenizer.expected_vocab_size()
    return (
        f"vocabulary {expected:,}, the tokenizer's limit; trained on little text, it may stay below"
    )


def _numbers(recipe: Recipe, vocab_size: int | None) -> Mapping[str, dict[str, str | int]]:
    checked = check_recipe(recipe, vocab_size)
    flops = count_flops(recipe, vocab_size=vocab_size)
    return {
        "backend": {"named": recipe.encoder.backend, "runs here with": checked.backend},
        "parameters": {
            "total": checked.parameters,
            "position only": checked.position_parameters,
            "token table": checked.embedding_parameters,
            "counted at": _vocabulary(recipe, vocab_size),
        },
        "FLOPs per token, forward": {
            "total": round(flops.total),
            "projections": round(flops.projections),
            "attention": round(flops.attention),
            "feed-forward": round(flops.feed_forward),
            "mechanism": round(flops.mechanism),
            "head": round(flops.head),
            "counted at": f"length {recipe.data.max_length}, batch {recipe.train.batch_size}",
        },
    }
