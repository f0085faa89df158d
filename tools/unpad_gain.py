"""What `encoder.unpad` gains over padding on short texts of mixed length, on this machine.

    python tools/unpad_gain.py --mechanism none --mechanism disentangled

Whole encoders, without a head, that have the same weights; that their states are equal is checked
first. Each round times them once, one after the other, in an order that changes from round to round.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from typing import Any

import torch

from posattn.encoder.config import EncoderConfig
from posattn.encoder.decoders import PlainDecoderConfig
from posattn.encoder.encoder import Encoder
from posattn.encoder.init import initialize
from posattn.encoder.model import MaskedLanguageModel
from posattn.training.environment import cpu_model

VOCAB_SIZE = 8_000
SHORTEST, LONGEST, TYPICAL, SPREAD = 4, 128, 24, 0.7


def main() -> None:
    """Print one line for each mechanism and stage."""
    options = _options()
    torch.set_num_threads(options.threads)
    lengths, inputs = make_batch(options.batch_size)
    print(
        f"{options.batch_size} texts of {int(lengths.min())} to {int(lengths.max())} tokens, mean "
        f"{float(lengths.float().mean()):.1f} (log-normal, median {TYPICAL}, sigma {SPREAD}), width "
        f"{options.width}, {options.layers} layers, {options.heads} heads, float32, "
        f"{options.threads} threads, {cpu_model()}, torch {torch.__version__}, {options.rounds} rounds"
    )
    for name in options.mechanism:
        for stage, times in measure(name, options, inputs):
            rows, texts = (1e3 * statistics.median(times[key]) for key in ("padded", "unpad"))
            ratios = [a / b for a, b in zip(times["padded"], times["unpad"], strict=True)]
            low, middle, high = statistics.quantiles(ratios, n=4)
            print(
                f"{name:16} {stage:9} padded {rows:7.1f} ms  unpad {texts:7.1f} ms  "
                f"gain {middle:.2f} [{low:.2f}, {high:.2f}]"
            )


def make_batch(batch_size: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Return lengths, and ids with what the model is told of them."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(batch_size, generator=generator) * SPREAD
    lengths = (TYPICAL * noise.exp()).long().clamp(SHORTEST, LONGEST)
    shape = (batch_size, int(lengths.max()))
    visible = torch.arange(shape[1])[None] < lengths[:, None]
    ids = torch.randint(VOCAB_SIZE, shape, generator=generator)
    return lengths, {"ids": ids, "visible": visible}


def measure(
    name: str, options: argparse.Namespace, inputs: dict[str, torch.Tensor]
) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """Yield the seconds of every round, for inference and for a forward and backward."""
    models = {key: _model(name, key == "unpad", options) for key in ("padded", "unpad")}
    with torch.inference_mode():
        rows, texts = (model.eval()(**inputs) for model in models.values())
    shown = inputs["visible"]
    torch.testing.assert_close(texts[shown], rows[shown], atol=1e-5, rtol=1e-5)
    for stage, step in (("inference", _infer), ("training", _learn)):
        times: dict[str, list[float]] = {key: [] for key in models}
        for number in range(options.rounds + 1):
            for key in sorted(models, reverse=bool(number % 2)):
                begun = time.perf_counter()
                step(models[key], inputs)
                times[key].append(time.perf_counter() - begun)
        yield stage, {key: seconds[1:] for key, seconds in times.items()}


def _infer(model: Encoder, inputs: dict[str, Any]) -> None:
    with torch.inference_mode():
        model.eval()(**inputs)


def _learn(model: Encoder, inputs: dict[str, Any]) -> None:
    model.zero_grad(set_to_none=True)
    model.train()(**inputs)[inputs["visible"]].square().mean().backward()


def _model(name: str, unpad: bool, options: argparse.Namespace) -> Encoder:
    config = EncoderConfig.model_validate(
        {
            "hidden_size": options.width,
            "num_layers": options.layers,
            "num_heads": options.heads,
            "mechanism": name,
            "unpad": unpad,
        }
    )
    model = MaskedLanguageModel(config, PlainDecoderConfig(), VOCAB_SIZE)
    initialize(model, seed=0)
    return model.encoder


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--mechanism", action="append", metavar="NAME")
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    options.mechanism = options.mechanism or ["none", "rope", "t5", "disentangled"]
    return options


if __name__ == "__main__":
    main()
