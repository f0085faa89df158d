"""What the maths of a model promises when its text moves or is reordered, read from the traits of its parts.

A model keeps a promise only if all of its parts do: every mechanism of the encoder, what the decoder
injects, the local window and the convolution.
"""

from dataclasses import dataclass

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoder import DecoderConfig
from posattn.mechanisms import MechanismConfig


@dataclass(frozen=True)
class Promise:
    """Whether the logits stay the same, which must be so or must not, and why."""

    same: bool
    because: str


def of_translation(encoder: EncoderConfig, decoder: DecoderConfig) -> Promise:
    """Return whether moving the whole text along the positions changes nothing."""
    absolute = [
        name for name, part in _parts(encoder, decoder) if not part.traits().translation_invariant
    ]
    if absolute:
        return Promise(False, f"{_listed(absolute)} sees absolute positions")
    return Promise(True, "no part sees absolute positions")


def of_permutation(encoder: EncoderConfig, decoder: DecoderConfig) -> Promise:
    """Return whether shuffled tokens get the same logits, shuffled."""
    knowing = [name for name, part in _parts(encoder, decoder) if _orders(part)]
    knowing += ["the local window"] * (encoder.window is not None)
    knowing += ["the convolution"] * (encoder.convolution is not None)
    if knowing:
        return Promise(False, f"{_listed(knowing)} sees where tokens are")
    return Promise(True, "no part sees where tokens are")


def of_reversal(encoder: EncoderConfig, decoder: DecoderConfig) -> Promise:
    """Return whether a reversed text gets the same logits, reversed."""
    knowing = [name for name, part in _parts(encoder, decoder) if _directs(part)]
    knowing += ["the convolution"] * (encoder.convolution is not None)
    if knowing:
        return Promise(False, f"{_listed(knowing)} tells left from right")
    return Promise(True, "no part tells left from right")


def _parts(encoder: EncoderConfig, decoder: DecoderConfig) -> list[tuple[str, MechanismConfig]]:
    """Return every part that states traits, under its name."""
    parts = [(f"'{part.name}'", part) for part in encoder.mechanism]
    injected = decoder.injected()
    if injected is not None:
        parts.append((f"'{injected.name}' in the decoder", injected))
    return parts


def _orders(part: MechanismConfig) -> bool:
    return part.traits().knows_position or part.traits().causal


def _directs(part: MechanismConfig) -> bool:
    return part.traits().knows_direction or part.traits().causal


def _listed(names: list[str]) -> str:
    return " and ".join(dict.fromkeys(names))
