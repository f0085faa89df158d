"""What the parts of a recipe promise of position, taken together: the ground of all predictions."""

from dataclasses import dataclass

from posattn.mechanisms import Traits
from posattn.recipe.schema import Recipe


@dataclass(frozen=True)
class Facts:
    """Position in a whole encoder with its decoder; each fact follows from the parts' traits."""

    order_blind: bool
    """Permuting the tokens permutes the outputs: no part knows positions."""
    mirrored: bool
    """Reversing the tokens reverses the outputs: no part tells left from right."""
    shift_blind: bool
    """Shifting all positions changes nothing: no part knows absolute position."""
    reads_query: bool
    """In attention, what position does depends on the query's content (c2p)."""
    reads_key: bool
    """In attention, what position does depends on the key's content (p2c)."""
    adds_to_input: bool
    """Absolute position is added to the states before the first layer, or before decoding."""
    injects: bool
    """Absolute position is added before decoding (EMD)."""
    adds_values: bool
    pairwise: bool
    """Every logit depends on its own query and key only."""
    moves: bool
    """Positions are chosen anew in training."""
    fresh_input_rows: bool
    """Position comes from tables added to the input and nothing else, and texts longer than in
    training read rows of them that never were trained."""
    fresh_rows: bool
    """Texts longer than in training read untrained rows of any table."""
    local: bool
    """Some keys are out of sight: a window, or no later keys."""
    layers: int
    """How many layers of attention stand before a prediction."""
    heads: int


def facts_of(recipe: Recipe) -> Facts | None:
    """Return the facts of a recipe; None where tokens are not on a line, or rows have memory."""
    encoder = recipe.encoder
    if encoder.relation.name != "line" or encoder.memory_length():
        return None
    length = recipe.data.max_length
    parts = [(part.traits(), part.fresh_rows_beyond(length)) for part in encoder.mechanism]
    injected = recipe.decoder.injected()
    if injected is not None:
        parts.append((injected.traits(), injected.fresh_rows_beyond(length)))
    traits = [part for part, _ in parts]
    convolves, windowed = encoder.convolution is not None, encoder.window is not None
    causal = any(part.causal for part in traits)
    blind = not any(part.knows_position or part.causal for part in traits)
    mirrored = not any(_tells_left_from_right(part) for part in traits)
    return Facts(
        order_blind=blind and not (convolves or windowed),
        mirrored=mirrored and not (convolves or recipe.data.cls),
        shift_blind=all(part.translation_invariant for part in traits),
        reads_query=any(part.reads_query for part in traits),
        reads_key=any(part.reads_key for part in traits),
        adds_to_input=any(part.adds_to_input for part in traits),
        injects=injected is not None and injected.traits().adds_to_input,
        adds_values=any(part.adds_values for part in traits),
        pairwise=all(part.pairwise for part in traits),
        moves=any(part.places for part in traits),
        fresh_input_rows=_only_added(recipe)
        and any(part.fresh_rows_beyond(length) for part in encoder.mechanism),
        fresh_rows=any(fresh for _, fresh in parts),
        local=causal or windowed,
        layers=sum(recipe.decoder.layer_runs(encoder)),
        heads=encoder.num_heads,
    )


def _only_added(recipe: Recipe) -> bool:
    encoder = recipe.encoder
    known = [part.traits() for part in encoder.mechanism if part.traits().knows_position]
    others = encoder.convolution is not None or encoder.window is not None
    in_attention = any(p.rotates or p.adds_bias or p.adds_values or p.causal for p in known)
    return bool(known) and not (others or in_attention)


def _tells_left_from_right(part: Traits) -> bool:
    return part.causal or (part.knows_position and part.knows_direction)
