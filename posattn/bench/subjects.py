"""`Subject`: an architecture with a mechanism, in which ours and others' encoders are the same function.

A mechanism without an entry here is measured in BERT's form, beside nobody.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from posattn.bench.entrant import Entrant, Options, Ours, Rival, Weights
from posattn.bench.plan import ModelSize
from posattn.bench.rivals.deberta_kernels import DisentangledFlash, FlashDeberta
from posattn.bench.rivals.transformers import T5, Bert, DebertaV3, ModernBert, RoFormer, XLNet
from posattn.bench.rivals.x_transformers import XAlibi, XRotary
from posattn.errors import UnknownName
from posattn.mechanisms import registry as mechanisms
from posattn.registry import Registry


def _as_drawn(weights: Weights) -> None:
    """Leave all weights as they are."""


def _last_rows_alike(weights: Weights) -> None:
    """Give the two rows of the table equal weights that keys beyond the largest distance are read at.

    Microsoft's code, and ours, reads row 1 there, transformers and what builds on it row 0.
    """
    table = weights["position.mechanisms.disentangled.table.weight"]
    table[0].copy_(table[1])


@dataclass(frozen=True)
class Subject:
    """Options of our encoder, the rivals that compute the same, and mechanisms to measure in its form."""

    title: str
    options: Callable[[ModelSize], Options]
    rivals: tuple[type[Rival], ...] = ()
    variants: tuple[str, ...] = ()
    level: Callable[[Weights], None] = _as_drawn  # changes first weights where the codes differ

    def entrants(
        self, backends: tuple[str, ...], *, rivals: bool, unpad: bool = False
    ) -> list[Entrant]:
        """Return ours on each backend, the rivals, and the variants on the first backend.

        With `unpad`, ours stand there padded and without padding, and the variants stay away.
        """
        found: list[Entrant] = [Ours(self.options, backend) for backend in backends]
        if unpad:
            found += [Ours(self.options, backend, unpad=True) for backend in backends]
        if rivals:
            found += [rival() for rival in self.rivals]
        if not unpad:
            found += [Ours(self.options, backends[0], variant) for variant in self.variants]
        return found


def _always(mechanism: Any, **options: Any) -> Callable[[ModelSize], Options]:
    """Return these options for every size."""
    return lambda size: {**options, "mechanism": mechanism}


def _modernbert(size: ModelSize) -> Options:
    """Return global attention in every third layer, local in the others, each with its own base."""
    every_third: dict[str, Any] = {"name": "rope", "base": 160000.0, "layers": {"every": 3}}
    local = [layer for layer in range(size.num_layers) if layer % 3]
    others = {"name": "rope", "base": 10000.0, "layers": local}
    return {
        "activation": "geglu",
        "norm": {"placement": "pre", "eps": 1e-5, "before_first": False},
        "projection_bias": "none",
        "feed_forward_bias": False,
        "mechanism": [every_third, others] if local else [every_third],
        "window": {"size": 128, "layers": local} if local else None,
    }


PRE_NORM: dict[str, Any] = {
    "embedding_norm": False,
    "projection_bias": "none",
    "norm": {"placement": "pre", "eps": 1e-5},
}
INTERLEAVED = {"name": "rope", "layout": "interleaved"}
LOG_BUCKETS = {"name": "log", "num_buckets": 256, "max_distance": 512}

subjects: Registry[Subject] = Registry("bench subject", "posattn.bench_subjects")
subjects.add(
    "disentangled",
    Subject(
        "DeBERTa-v3",
        _always({"name": "disentangled", "buckets": LOG_BUCKETS}, norm={"eps": 1e-7}),
        (DebertaV3, DisentangledFlash, FlashDeberta),
        variants=("none",),
        level=_last_rows_alike,
    ),
)
subjects.add(
    "learned",
    Subject(
        "BERT",
        _always({"name": "learned", "max_positions": 4096}, segments=2),
        (Bert,),
        variants=("none", "sinusoidal", "rope", "alibi", "t5"),
    ),
)
subjects.add("rope", Subject("RoFormer", _always(INTERLEAVED, segments=2), (RoFormer,)))
subjects.add("rope_modernbert", Subject("ModernBERT", _modernbert, (ModernBert,)))
subjects.add(
    "rope_x_transformers", Subject("x-transformers", _always(INTERLEAVED, **PRE_NORM), (XRotary,))
)
subjects.add("alibi", Subject("x-transformers", _always("alibi", **PRE_NORM), (XAlibi,)))
subjects.add(
    "t5",
    Subject(
        "T5",
        _always(
            {"name": "t5", "scale": "none"},
            projection_bias="none",
            feed_forward_bias=False,
            activation="relu",
            embedding_norm=False,
            norm={"kind": "rms_norm", "placement": "pre", "eps": 1e-6},
        ),
        (T5,),
    ),
)
subjects.add(
    "transformer_xl",
    Subject(
        "XLNet",
        _always(
            {"name": "transformer_xl", "untie": True},
            projection_bias="none",
            embedding_norm=False,
        ),
        (XLNet,),
    ),
)


def subject(name: str) -> Subject:
    """Return the subject of a name, or the mechanism of that name in BERT's form."""
    if name in subjects:
        return subjects.get(name)
    if name in mechanisms:
        return Subject("BERT", _always(name))
    known = ", ".join(sorted({*subjects, *mechanisms}))
    raise UnknownName(f"nothing to measure is called '{name}' (known: {known})")
