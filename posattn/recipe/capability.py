"""What each backend computes of each mechanism on this machine, found by asking it.

A one-layer encoder is built with the mechanism, and its own attention call, in each dtype, in training
and in inference, with and without dropout and packed documents, is shown to every backend. Attention
is not computed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from torch import Tensor
from typing_extensions import override

from posattn.backends import AttentionBackend, AttentionCall
from posattn.backends import registry as backends
from posattn.encoder.attention import MultiHeadAttention
from posattn.encoder.encoder import Encoder
from posattn.mechanisms import registry as mechanisms
from posattn.recipe.example import example
from posattn.shapes import QueryHeads

DEVICES = ("cpu", "cuda")
DTYPES = ("float32", "bfloat16", "float16", "float64")
DROPOUT = 0.1
LENGTH = 8
SIZE = {"hidden_size": 64, "num_heads": 2, "num_layers": 1, "intermediate_size": 8}


@final
@dataclass(frozen=True)
class Answer:
    """What a backend says to one question; it can if there are no reasons why not.

    `taken_by` is who would compute it then: the backend, or the one that it chooses.
    """

    mechanism: str
    backend: str
    device: str
    dtype: str
    training: bool
    dropout: float
    packed: bool
    reasons: tuple[str, ...]
    taken_by: str | None


@final
class AskingBackend(AttentionBackend):
    """Asks another backend who would compute each call, keeps the calls, and computes nothing."""

    name = "asking"

    def __init__(self, asked: AttentionBackend) -> None:
        """Ask this one."""
        self.asked = asked
        self.calls: list[AttentionCall] = []
        self.taking_part: set[str] = set()

    @override
    def refusals(self, call: AttentionCall) -> list[str]:
        return self.asked.refusals(call)

    @override
    def attend(self, call: AttentionCall) -> QueryHeads:
        self.taking_part.add(self.asked.taking(call).name)
        return self.run(call)

    @override
    def run(self, call: AttentionCall) -> QueryHeads:
        self.calls.append(call)
        return call.query.new_zeros(*call.query.shape[:-1], call.value.shape[-1])


def put_question(model: torch.nn.Module, asked: AttentionBackend) -> AskingBackend:
    """Return what stands in for the backend in every attention of the model from now on."""
    asking = AskingBackend(asked)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.backend = asking
    return asking


def absent_devices() -> dict[str, str]:
    """Return the devices that are not there, each with the reason."""
    return {} if torch.cuda.is_available() else {"cuda": "torch sees no CUDA device here"}


def ask_backends(
    names: Sequence[str] = (),
    asked: Sequence[str] = (),
    devices: Sequence[str] = (),
    dtypes: Sequence[str] = DTYPES,
) -> list[Answer]:
    """Return every answer for these mechanisms, backends and devices; for all where none is named.

    Devices that are not there are left out. Raises `UnknownName` for a name that is not registered.
    """
    able = {name: backends.get(name)() for name in asked or backends.names()}
    there = [device for device in devices or DEVICES if device not in absent_devices()]
    answers = []
    for name in names or mechanisms.names():
        for device in there:
            for dtype in dtypes:
                for facts, call in _calls(name, device, dtype):
                    with torch.set_grad_enabled(facts[0]):
                        answers += [
                            Answer(name, backend, device, dtype, *facts, *_answer(one, call))
                            for backend, one in able.items()
                        ]
    return answers


def _answer(backend: AttentionBackend, call: AttentionCall) -> tuple[tuple[str, ...], str | None]:
    reasons = tuple(backend.refusals(call))
    return reasons, None if reasons else backend.taking(call).name


def _calls(
    name: str, device: str, dtype: str
) -> Iterator[tuple[tuple[bool, float, bool], AttentionCall]]:
    """Yield (training, dropout, packed) and the mechanism's call under these conditions."""
    encoder = Encoder(example(name, **SIZE), LENGTH)
    encoder.to(device=device, dtype=getattr(torch, dtype))
    asking = put_question(encoder, backends.get("eager")())
    ids = torch.arange(LENGTH, device=device).expand(2, -1)
    for training in (False, True):
        encoder.train(training)
        for packed in _packings(encoder):
            asking.calls.clear()
            with torch.set_grad_enabled(training):
                encoder(ids, **_inputs(ids, packed))
            for dropout in (0.0, DROPOUT) if training else (0.0,):
                yield (training, dropout, packed), replace(asking.calls[0], dropout=dropout)


def _packings(encoder: Encoder) -> tuple[bool, ...]:
    """Return whether rows may be packed: with memory they are one text each."""
    return (False,) if encoder.config.memory_length() else (False, True)


def _inputs(ids: Tensor, packed: bool) -> dict[str, Any]:
    column = torch.arange(LENGTH, device=ids.device)
    if packed:
        return {"documents": (column // 3).expand(2, -1)}
    return {"visible": column < torch.tensor([[LENGTH], [LENGTH - 3]], device=ids.device)}
