"""`Entrant`: one encoder that can be measured, ours on some backend or another library's."""

import importlib
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from posattn.bench.inputs import Ids, Visible
from posattn.bench.plan import ModelSize, Stage
from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import PlainDecoderConfig
from posattn.encoder.encoder import Encoder
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel
from posattn.training.compiling import missing_compiler

Options: TypeAlias = Mapping[str, Any]
"""The options of an `EncoderConfig`, less its size."""

Weights: TypeAlias = dict[str, Tensor]
"""Parameters of any encoder under the names that they have in ours; writing into one changes it there."""

States: TypeAlias = Float[Tensor, "batch length hidden"]


class Entrant(ABC):
    """An encoder that takes tokens and returns the states of its last layer."""

    name: str
    library: str
    same_function: bool = True  # with the weights of the others it returns what they return
    no_padding: str = ""  # why it takes no batch with padding; empty if it does

    @abstractmethod
    def refusals(self, device: torch.device) -> list[str]:
        """Return every reason why it cannot be measured here; empty if it can."""

    def no_graphs(self, device: torch.device) -> str:
        """Return why torch.compile cannot take it here; empty if it can."""
        return missing_compiler(device)

    @abstractmethod
    def build(self, size: ModelSize, stage: Stage, device: torch.device) -> nn.Module:
        """Return a new encoder, still on the CPU, without dropout, in the stage's mode."""

    @abstractmethod
    def weights(self, model: nn.Module) -> Weights:
        """Return its parameters under our names, as views."""

    def prepare(self, model: nn.Module, length: int) -> None:  # noqa: B027
        """Do once, with the final weights, what a user of the library does for a new length."""

    @abstractmethod
    def states(self, model: nn.Module, ids: Ids, visible: Visible | None = None) -> States:
        """Return the states of the last layer; `visible` is False at padding, whose states are nothing."""

    def runs_on(self, model: nn.Module) -> str:
        """Return in words what computes its attention."""
        return ""


@final
class Ours(Entrant):
    """An encoder of posattn with these options on one backend."""

    library = "posattn"

    def __init__(
        self,
        options: Callable[[ModelSize], Options],
        backend: str,
        variant: str = "",
        *,
        unpad: bool = False,
    ) -> None:
        """Take the options; `variant` names another mechanism, which replaces that of the options.

        With `unpad` only real tokens are computed, whatever the options say.
        """
        self.options = options
        self.variant = variant
        self.backend = backend
        self.unpad = unpad
        self.same_function = not variant
        how = f"{backend}, unpad" if unpad else backend
        self.name = f"posattn {variant} ({how})" if variant else f"posattn ({how})"

    def config(self, size: ModelSize) -> EncoderConfig:
        """Return the encoder's configuration at this size."""
        sizes = size.model_dump(exclude={"vocab_size"})
        plain: dict[str, Any] = {
            "hidden_dropout": 0.0,
            "attention_dropout": 0.0,
            "backend": self.backend,
        }
        plain["initializer_range"] = size.hidden_size**-0.5  # so that no term is negligible
        options = {**sizes, **plain, **self.options(size)}
        if self.unpad:
            options["unpad"] = True
        if self.variant:
            options["mechanism"] = self.variant
        return EncoderConfig.model_validate(options)

    @override
    def refusals(self, device: torch.device) -> list[str]:
        return []

    @override
    def build(self, size: ModelSize, stage: Stage, device: torch.device) -> nn.Module:
        model = MaskedLanguageModel(self.config(size), PlainDecoderConfig(), size.vocab_size)
        initialize(model, 0)
        return model.encoder.train(stage == "training")

    @override
    def no_graphs(self, device: torch.device) -> str:
        if self.unpad:
            return "it lays tokens out by the values of each batch, which no graph for all batches holds"
        return super().no_graphs(device)

    @override
    def weights(self, model: nn.Module) -> Weights:
        return {name: parameter.detach() for name, parameter in model.named_parameters()}

    @override
    def states(self, model: nn.Module, ids: Ids, visible: Visible | None = None) -> States:
        segments = torch.zeros_like(ids) if hasattr(model, "segments") else None
        return model(ids, visible=visible, segments=segments)

    @override
    def runs_on(self, model: nn.Module) -> str:
        assert isinstance(model, Encoder)
        return " and ".join(model.backend.ran())


class Rival(Entrant):
    """An encoder of another library that computes what ours computes, given the same weights."""

    package: str  # as it is imported

    @override
    def refusals(self, device: torch.device) -> list[str]:
        if importlib.util.find_spec(self.package) is None:
            return [f"{self.library} is not installed"]
        try:
            importlib.import_module(self.package)
        except Exception as error:  # whatever another library raises where it cannot run
            return [f"{self.library} cannot be imported: {type(error).__name__}: {error}"]
        return []


def library_version(library: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def renamed(model: nn.Module, names: Mapping[str, str]) -> Weights:
    """Return the model's tensors with these parts of their names replaced, in order; all are views."""
    found: Weights = {}
    for name, tensor in model.state_dict().items():
        for old, new in names.items():
            name = name.replace(old, new)
        found[name] = tensor
    return found


@torch.no_grad()
def share_weights(source: Weights, target: Weights, name: str) -> None:
    """Copy `source` into `target` wherever their names agree.

    Raises `ValueError` if `source` has a parameter that `target` lacks, and which is neither a bias nor a
    norm: those start as zeros and ones, which is what their absence means.
    """
    for key, tensor in source.items():
        if key in target:
            target[key].copy_(tensor)
        elif not (key.endswith(".bias") or "norm" in key):
            raise ValueError(f"{name} has no weight that corresponds to our '{key}'")
