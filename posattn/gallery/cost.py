"""What each mechanism costs beside `none`: parameters, time, and memory held for the backward pass.

All mechanisms are timed in one process, one after the other in every round, and the order turns from
round to round. A ratio is taken within each round, so drift of the machine meets both sides alike.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import PlainDecoderConfig
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel, position_parameters
from posattn.errors import IncompatibleParts
from posattn.recipe.example import example
from posattn.training.environment import cpu_model

BASELINE = "none"
BATCH, LENGTH, VOCABULARY = 8, 128, 100
STAGES = ("training", "inference")


@final
@dataclass(frozen=True)
class Ratio:
    """Time as a multiple of the baseline's: the median over rounds, and the quartiles."""

    median: float
    low: float
    high: float


@final
@dataclass(frozen=True)
class Cost:
    """What one mechanism costs; `problem` says why it could not be measured, if it could not."""

    parameters: int | None = None
    kept_bytes: int | None = None
    training: Ratio | None = None
    inference: Ratio | None = None
    problem: str = ""


@final
class Contestant:
    """A small model with one mechanism, and a batch of random tokens for it."""

    def __init__(self, name: str) -> None:
        """Build the model."""
        config = example(name)
        limit = config.max_length()
        if limit is not None and limit < LENGTH:
            raise IncompatibleParts(f"takes at most {limit} tokens; {LENGTH} are measured")
        self.model = MaskedLanguageModel(config, PlainDecoderConfig(), VOCABULARY)
        initialize(self.model, 0)
        generator = torch.Generator().manual_seed(0)
        shape = (BATCH, LENGTH)
        self.ids = torch.randint(1, VOCABULARY, shape, generator=generator)
        self.selected = torch.rand(shape, generator=generator) < 0.15

    def training(self) -> None:
        """Run forward and backward."""
        self.model.train()
        logits = self.model(self.ids, selected=self.selected).logits
        targets = self.ids[self.selected]
        torch.autograd.backward([nn.functional.cross_entropy(logits, targets)])
        self.model.zero_grad(set_to_none=True)

    def inference(self) -> None:
        """Run forward without gradients."""
        self.model.eval()
        with torch.inference_mode():
            self.model(self.ids, selected=self.selected)

    def parameters(self) -> int:
        """Return how many parameters are the mechanism's."""
        ours = position_parameters(self.model)
        return sum(p.numel() for name, p in self.model.named_parameters() if name in ours)

    def kept_bytes(self) -> int:
        """Return the bytes that a forward keeps for its backward pass, weights not counted."""
        weights = {p.untyped_storage().data_ptr() for p in self.model.parameters()}
        kept: dict[int, int] = {}

        def keep(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                kept[storage.data_ptr()] = storage.nbytes()
            return tensor

        self.model.train()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            logits = self.model(self.ids, selected=self.selected).logits
        del logits
        return sum(kept.values())


def measure(
    names: list[str], rounds: int, say: Callable[[str], None]
) -> tuple[dict[str, Cost], dict[str, str]]:
    """Return each mechanism's cost and the conditions; without rounds time is left out."""
    ready, costs = _contestants(list(dict.fromkeys([BASELINE, *names])))
    times = _times(ready, rounds, say)
    for name, one in ready.items():
        training, inference = (_ratio(times, name, stage) for stage in STAGES)
        costs[name] = Cost(one.parameters(), one.kept_bytes(), training, inference)
    return costs, _conditions(rounds)


def _contestants(names: list[str]) -> tuple[dict[str, Contestant], dict[str, Cost]]:
    ready, costs = {}, {}
    for name in names:
        try:
            ready[name] = Contestant(name)
            ready[name].training()
        except Exception as error:  # one mechanism that fails does not stop the others
            ready.pop(name, None)
            costs[name] = Cost(problem=f"{type(error).__name__}: {error}")
    return ready, costs


def _times(
    ready: Mapping[str, Contestant], rounds: int, say: Callable[[str], None]
) -> dict[tuple[str, str], list[float]]:
    order = list(ready)
    times: dict[tuple[str, str], list[float]] = {}
    for number in range(-1, rounds) if rounds else ():
        turn = number % len(order)
        for name in order[turn:] + order[:turn]:
            for stage in STAGES:
                begun = time.perf_counter()
                getattr(ready[name], stage)()
                if number >= 0:
                    times.setdefault((name, stage), []).append(time.perf_counter() - begun)
        say(f"timing: round {number + 2} of {rounds + 1}")
    return times


def _ratio(times: Mapping[tuple[str, str], list[float]], name: str, stage: str) -> Ratio | None:
    own, base = times.get((name, stage)), times.get((BASELINE, stage))
    if not own or not base:
        return None
    ratios = [mine / theirs for mine, theirs in zip(own, base, strict=True)]
    cuts = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return Ratio(cuts[1], cuts[0], cuts[2])


def _conditions(rounds: int) -> dict[str, Any]:
    config = EncoderConfig()
    conditions = {
        "model": f"{config.num_layers} layers x {config.hidden_size} wide, {config.num_heads} heads",
        "batch": f"{BATCH} x {LENGTH} tokens, 15 % predicted",
        "backend": config.backend,
        "dtype": "float32",
        "machine": f"{cpu_model()}, {torch.get_num_threads()} thread(s)",
        "torch": torch.__version__,
    }
    if rounds:
        conditions["rounds"] = f"{rounds}, interleaved, after one to warm up"
    return conditions
