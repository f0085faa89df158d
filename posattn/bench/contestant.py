"""`Contestant`: an entrant that was built, on its device and in its precision, ready to be timed."""

import time
from typing import Any, final

import torch
from torch import Tensor, nn

from posattn.bench.entrant import Entrant
from posattn.bench.inputs import Inputs
from posattn.bench.plan import ModelSize, Stage
from posattn.training.config import Precision
from posattn.training.forward import autocast


@final
class Contestant:
    """One encoder in one stage. A time ends when its result has been read, on every device."""

    def __init__(
        self,
        entrant: Entrant,
        size: ModelSize,
        stage: Stage,
        device: torch.device,
        *,
        precision: Precision = "float32",
        compiled: bool = False,
    ) -> None:
        """Build the encoder; its weights are its own until they are overwritten."""
        self.entrant = entrant
        self.stage = stage
        self.device = device
        self.precision: Precision = precision
        self.compiled = compiled
        self.model: nn.Module = entrant.build(size, stage, device).to(device)
        self._called: Any = torch.compile(self.model) if compiled else self.model

    @property
    def name(self) -> str:
        """The entrant's name with what differs from float32 as it is written."""
        more = [self.precision] * (self.precision != "float32") + ["compiled"] * self.compiled
        return ", ".join([self.entrant.name, *more])

    @torch.inference_mode()
    def states(self, inputs: Inputs) -> Tensor:
        """Return the states of the last layer at real tokens, to be compared with those of others."""
        with autocast(self.device, self.precision):
            return inputs.real(self.entrant.states(self.model, inputs.ids, inputs.visible))

    def timed(self, inputs: Inputs) -> float:
        """Return the seconds of one forward, or of one forward and backward."""
        self.model.zero_grad(set_to_none=True)
        settle(self.device)
        begun = time.perf_counter()
        read(self.step(inputs), self.device)
        return time.perf_counter() - begun

    def step(self, inputs: Inputs) -> Tensor:
        """Run once and return what must have been computed when the time ends."""
        if self.stage == "inference":
            with torch.inference_mode(), autocast(self.device, self.precision):
                return self.entrant.states(self._called, inputs.ids, inputs.visible)
        with autocast(self.device, self.precision):
            states = self.entrant.states(self._called, inputs.ids, inputs.visible)
            loss = inputs.real(states).float().square().mean()
        torch.autograd.backward([loss])
        return loss.detach()


def settle(device: torch.device) -> None:
    """Wait until the device has nothing left to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def read(result: Tensor, device: torch.device) -> None:
    """Wait for the device and read one number of the result, so that nothing of it is still to come."""
    settle(device)
    result.flatten()[:1].tolist()
