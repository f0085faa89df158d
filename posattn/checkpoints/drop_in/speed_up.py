"""`speed_up`: transformers' DeBERTa with the attention of posattn, in place and without new weights."""

import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, TypeAlias

from torch import nn

from posattn.backends import AttentionBackend, AutoBackend
from posattn.backends import registry as backends
from posattn.checkpoints.drop_in.host import Beyond, Host
from posattn.checkpoints.drop_in.modules import SpedUpAttention, SpedUpEncoder
from posattn.checkpoints.drop_in.parts import (
    AttentionPart,
    EncoderPart,
    layer_over,
    mechanism_over,
)
from posattn.checkpoints.drop_in.report import SpeedUp
from posattn.checkpoints.drop_in.sample import Sample
from posattn.errors import IncompatibleParts
from posattn.mechanisms import LogBuckets

_HOSTS = {
    "transformers.models.deberta.modeling_deberta": ("deberta", "DebertaHost"),
    "transformers.models.deberta_v2.modeling_deberta_v2": ("deberta_v2", "DebertaV2Host"),
}

_SUBCLASS = "it is a subclass of transformers' encoder, whose changes would be lost"
Found: TypeAlias = tuple[Host, nn.Module]


def speed_up(
    model: nn.Module,
    *,
    backend: str = "auto",
    beyond: Beyond = "growing",
    quiet: bool = False,
) -> SpeedUp:
    """Replace the attention of every transformers DeBERTa (v1, v2, v3) in a model; print what was chosen.

    The model stays the object it is: weights, names in state_dict, save_pretrained, gradients and dropout
    are as before, outputs of real tokens equal up to rounding. Where attention maps are asked for,
    or a mask of pairs is given, transformers' own code runs. `beyond` says what the log buckets of
    v2 and v3 do past their last distance: they grow as in transformers, or are held as in Microsoft's
    code, with which these models were trained. IncompatibleParts with all reasons, and the model
    untouched, if it cannot be done.
    """
    made = backends.get(backend)()
    hosts = _hosts(beyond)
    found = [(host, m) for m in model.modules() for host in hosts if host.is_encoder(m)]
    if reasons := list(_refusals(model, hosts, found)):
        raise IncompatibleParts(f"this model cannot be sped up: {'; '.join(reasons)}")
    slow_down(model)
    samples = [Sample(host, encoder) for host, encoder in found]
    for host, encoder in found:
        _replace(host, encoder, made)
    try:
        differences = [sample.difference() for sample in samples]
    except BaseException:
        slow_down(model)
        raise
    report = SpeedUp(
        hosts=tuple(dict.fromkeys(host.name for host, _ in found)),
        num_encoders=len(found),
        num_layers=sum(len(host.layers(encoder)) for host, encoder in found),
        backend=backend,
        chosen=tuple(sorted(made.chosen)) if isinstance(made, AutoBackend) else (),
        beyond=beyond if any(_has_log_buckets(*each) for each in found) else "",
        largest_difference=max(differences),
    )
    if not quiet:
        sys.stdout.write(f"{report}\n")
    return report


def slow_down(model: nn.Module) -> int:
    """Give the sped-up encoders of a model transformers' own code back; return how many layers they had."""
    changed: list[SpedUpEncoder | SpedUpAttention] = [
        module for module in model.modules() if isinstance(module, SpedUpEncoder | SpedUpAttention)
    ]
    num_layers = sum(isinstance(module, SpedUpAttention) for module in changed)
    for module in changed:
        del module.posattn_part
        module.__class__ = module.transformers_class  # type: ignore[assignment]
    return num_layers


def _hosts(beyond: Beyond) -> list[Host]:
    """Return what is known of the versions that are loaded; transformers is never imported for it."""
    return [
        getattr(import_module(f"posattn.checkpoints.drop_in.{module}"), name)(beyond)
        for path, (module, name) in _HOSTS.items()
        if path in sys.modules
    ]


def _refusals(model: nn.Module, hosts: list[Host], found: list[Found]) -> Iterator[str]:
    """Yield every reason against replacing the attention of these encoders."""
    inside = {id(module) for _, encoder in found for module in encoder.modules()}
    for name, module in model.named_modules():
        for host in hosts:
            if isinstance(module, host.fast_encoder.transformers_class):
                reasons = host.refusals(module) if host.is_encoder(module) else iter([_SUBCLASS])
                yield from (f"{name or type(module).__name__}: {reason}" for reason in reasons)
            if host.is_attention(module) and id(module) not in inside:
                yield f"{name}: it lies in no {host.fast_encoder.transformers_class.__name__}"
    if not found:
        kinds = sorted(
            {type(m).__name__ for m in model.modules() if "Attention" in type(m).__name__}
        )
        yield (
            "it holds no DeBERTa encoder of transformers (DebertaEncoder, DebertaV2Encoder); its "
            f"attention is {', '.join(kinds[:6]) or 'of no class with Attention in its name'}"
        )


def _replace(host: Host, encoder: Any, backend: AttentionBackend) -> None:
    layers = host.layers(encoder)
    first = host.facts(encoder, layers[0])
    config = first.config()
    mechanism = None
    if config is not None:
        heads = layers[0].num_attention_heads
        mechanism = mechanism_over(config, encoder.rel_embeddings, first.norm, heads)
    part = EncoderPart(mechanism, backend)
    for attention in layers:
        facts = host.facts(encoder, attention)
        layer = None
        if mechanism is not None:
            layer = layer_over(mechanism, attention.pos_dropout, *facts.projections)
        scale = float((facts.num_score_terms * attention.attention_head_size) ** -0.5)
        attention.posattn_part = AttentionPart(part, scale, layer)
        attention.__class__ = host.fast_attention
    encoder.posattn_part = part
    encoder.__class__ = host.fast_encoder


def _has_log_buckets(host: Host, encoder: nn.Module) -> bool:
    return isinstance(host.facts(encoder, host.layers(encoder)[0]).buckets, LogBuckets)
