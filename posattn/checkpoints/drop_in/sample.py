"""`Sample`: the first attention module of an encoder on a short random input, before and after."""

from typing import Any, final

import torch
from torch import Tensor, nn

from posattn.checkpoints.drop_in.host import Host
from posattn.errors import IncompatibleParts

_LENGTH = 64
_TOLERANCE = 1e-4
_TOLERANCE_HALF = 5e-2


@final
class Sample:
    """What the encoder's first attention gives for two texts, one padded, without dropout."""

    def __init__(self, host: Host, encoder: Any) -> None:
        """Keep what the encoder gives now."""
        self._encoder = encoder
        self._attention = host.layers(encoder)[0]
        weight = next(self._attention.parameters())
        longest = encoder.max_relative_positions if encoder.relative_attention else _LENGTH
        length = min(_LENGTH, longest)  # within which both forms of buckets agree
        generator = torch.Generator().manual_seed(0)
        width = encoder.layer[0].output.dense.out_features
        hidden = torch.randn(2, length, width, generator=generator)
        self._hidden = hidden.to(weight.device, weight.dtype)
        self._mask = torch.ones(2, length, device=weight.device, dtype=torch.long)
        self._mask[1, (length + 1) // 2 :] = 0
        with torch.no_grad():
            self._expected = self._run()

    def difference(self) -> float:
        """Return the largest difference to what it gives now; IncompatibleParts if it is too large."""
        with torch.no_grad():
            plain = self._run()
        with torch.enable_grad():
            found = max(self._to_expected(plain), self._to_expected(self._run()))
        is_half = self._expected.dtype in (torch.float16, torch.bfloat16)
        if not found <= (_TOLERANCE_HALF if is_half else _TOLERANCE):
            raise IncompatibleParts(
                f"a check on a short text differs from transformers by {found:.1e}, so this version of "
                "transformers computes something else than the one this was made for; nothing was changed"
            )
        return found

    def _to_expected(self, given: Tensor) -> float:
        real = self._mask.bool()
        size = max(1.0, float(self._expected[real].abs().max()))
        return float((given - self._expected)[real].abs().max()) / size

    def _run(self) -> Tensor:
        encoder = self._encoder
        was_training = {module: module.training for module in encoder.modules()}
        encoder.eval()
        try:
            attended, _ = self._attention(
                self._hidden,
                encoder.get_attention_mask(self._mask),
                relative_pos=encoder.get_rel_pos(self._hidden),
                rel_embeddings=encoder.get_rel_embedding(),
            )
        finally:
            _restore(was_training)
        found: Tensor = attended.detach()
        return found


def _restore(was_training: dict[nn.Module, bool]) -> None:
    for module, training in was_training.items():
        module.training = training
