"""Classes of transformers around a model of posattn, for what has no class of its own there.

An exported folder names them through a small file, so that `AutoModel.from_pretrained` with
`trust_remote_code=True` finds them where posattn is installed. Weights keep posattn's names, so
the same folder is read by both.
"""

from pathlib import Path
from typing import Any, ClassVar

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, MaskedLMOutput
from typing_extensions import override

from posattn.checkpoints.source import open_source
from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import AnyDecoderConfig, DecoderConfig
from posattn.encoder.encoder import Encoder
from posattn.encoder.heads import HeadConfig
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel
from posattn.encoder.tasks import TaskModel
from posattn.errors import CheckpointError
from posattn.training.weights import copy_weights, read_tensors, unique_tensors

_WEIGHTS = "model.safetensors"
_OF_TRANSFORMERS = frozenset({"config", "dtype", "torch_dtype", "trust_remote_code"})


class PosattnConfig(PreTrainedConfig):
    """The sections of a recipe that decide what a model computes, and the rows of its token table."""

    model_type = "posattn"

    def __init__(
        self,
        encoder: dict[str, Any] | None = None,
        decoder: dict[str, Any] | None = None,
        head: dict[str, Any] | None = None,
        vocab_size: int = 0,
        **kwargs: Any,
    ) -> None:
        """Take the sections as plain data; all of them have defaults."""
        self.encoder, self.decoder, self.head = (
            encoder or {},
            decoder or {"name": "plain"},
            head or {},
        )
        self.vocab_size = vocab_size
        super().__init__(**kwargs)

    def encoder_config(self) -> EncoderConfig:
        """Return the encoder's section."""
        return EncoderConfig.model_validate(self.encoder)

    def masked_lm(self) -> MaskedLanguageModel:
        """Return a new model with its masked-token head."""
        adapter: TypeAdapter[DecoderConfig] = TypeAdapter(AnyDecoderConfig)
        decoder, head = adapter.validate_python(self.decoder), HeadConfig.model_validate(self.head)
        return MaskedLanguageModel(self.encoder_config(), decoder, self.vocab_size, head)


class _Posattn(PreTrainedModel):
    """What both classes have in common: weights are read by posattn's names, all of them, or it fails."""

    config_class = PosattnConfig
    base_model_prefix = ""
    main_input_name = "input_ids"
    ignored: ClassVar[tuple[str, ...]] = ()

    @classmethod
    @override
    def from_pretrained(cls, source: str | Path, *_: Any, **given: Any) -> "_Posattn":  # type: ignore[override]
        """Return the model in a folder or of the hub, in evaluation mode, on the CPU."""
        offered = {key for key, value in given.items() if value not in (None, False, {}, "main")}
        if strange := sorted(key for key in offered - _OF_TRANSFORMERS if not key.startswith("_")):
            raise CheckpointError(
                f"from_pretrained of a posattn model does not take {', '.join(strange)}; load it, then use "
                "what PyTorch has for that (such as .to(device))"
            )
        folder = open_source(source).folder
        config = given.get("config") or PosattnConfig.from_pretrained(folder)
        made = cls(config)
        stored = read_tensors(folder / _WEIGHTS)
        wanted = unique_tensors(made)[0]
        extra = [name for name in stored if name not in wanted and not name.startswith(cls.ignored)]
        if missing := sorted(wanted.keys() - stored.keys()) + extra:
            raise CheckpointError(
                f"{folder / _WEIGHTS} does not fit its config.json: {missing[:8]}"
            )
        copy_weights(made, stored)
        dtype = given.get("dtype") or given.get("torch_dtype")
        if isinstance(dtype, str):
            dtype = None if dtype == "auto" else getattr(torch, dtype)
        return made.eval() if dtype is None else made.to(dtype).eval()

    def _init_weights(self, module: nn.Module) -> None:
        """Leave the values: posattn gives parameters their first ones by name."""

    def segments(self, ids: Tensor, given: Tensor | None) -> Tensor | None:
        """Return segment ids, zeros where none are given, or None without a table."""
        if not self.config.encoder_config().segments:
            return None
        return torch.zeros_like(ids) if given is None else given


class PosattnModel(_Posattn):
    """A bare encoder."""

    ignored = ("head.", "decoder.", "tasks.")

    def __init__(self, config: PosattnConfig) -> None:
        """Build the encoder, with first values by name."""
        super().__init__(config)
        whole = TaskModel(Encoder(config.encoder_config(), config.vocab_size), {})
        initialize(whole, 0)
        self.encoder = whole.encoder

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **_: Any,
    ) -> BaseModelOutput:
        """Return the states of the last layer."""
        visible = None if attention_mask is None else attention_mask.bool()
        segments = self.segments(input_ids, token_type_ids)
        return BaseModelOutput(
            last_hidden_state=self.encoder(input_ids, visible=visible, segments=segments)
        )


class PosattnForMaskedLM(_Posattn):
    """An encoder with decoder and masked-token head."""

    ignored = ("tasks.",)
    _tied_weights_keys = {"head.output.weight": "encoder.tokens.weight"}  # noqa: RUF012 - as there

    def __init__(self, config: PosattnConfig) -> None:
        """Build all parts, with first values by name."""
        super().__init__(config)
        whole = config.masked_lm()
        initialize(whole, 0)
        self.encoder, self.decoder, self.head = whole.encoder, whole.decoder, whole.head
        self._whole = (whole,)  # in a tuple, so that its parts are here under their own names only

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        **_: Any,
    ) -> MaskedLMOutput:
        """Return logits of every token, and the mean loss where labels are not -100."""
        visible = None if attention_mask is None else attention_mask.bool()
        segments = self.segments(input_ids, token_type_ids)
        logits = self._whole[0](input_ids, visible=visible, segments=segments).logits
        loss = None if labels is None else functional.cross_entropy(logits.mT, labels)
        return MaskedLMOutput(loss=loss, logits=logits)
