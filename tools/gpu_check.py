#!/usr/bin/env python
"""Prove all backends on this machine's GPU, time them, write the tables: `python tools/gpu_check.py`.

1. Every backend that does not refuse against eager attention in float64: outputs and all gradients.
2. The triton backend's dropout (its share, the same in backward); its results repeat bit by bit.
3. Attention alone and encoders of one layer, forward and forward with backward, beside what is
   installed of transformers, disentangled-flash and flashdeberta. Each has random weights of its own.

bfloat16 is proved first, then come the times, then the other types; what `--minutes` leaves no time for
is named. gpu_check.json and gpu_check.md are written row by row. `--tiles` times tile sizes instead.
`--interpret` runs a tiny version on the CPU, with Triton's interpreter; its times mean nothing.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from gpu_proofs import prove, prove_dropout
from torch import Tensor

import posattn.backends
from posattn.backends import AttentionBackend, AttentionCall, TritonBackend
from posattn.bias import KeyScores, QueryScores, SumBias
from posattn.encoder.config import EncoderConfig
from posattn.encoder.encoder import Encoder
from posattn.positions import Distances, log_buckets

HEADS, WIDTH, TOKENS = 12, 64, 16384
LENGTHS = (512, 1024, 2048, 4096, 8192)
ALL_TYPES = (torch.bfloat16, torch.float16, torch.float32)
TILES = ((128, 64), (64, 64), (64, 32), (32, 64), (128, 32))
PACKAGES = ("torch", "triton", "transformers", "disentangled-flash", "flashdeberta")


@dataclass
class Report:
    """What was found, saved after every row."""

    folder: Path
    ends_at: float
    conditions: dict[str, str]
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def add(self, table: str, **row: Any) -> None:
        """Add a row, print it, save everything."""
        self.tables.setdefault(table, []).append(row)
        print(
            f"{table}: " + ", ".join(f"{name} {value}" for name, value in row.items()), flush=True
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"conditions": self.conditions, **self.tables}
        (self.folder / "gpu_check.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
        (self.folder / "gpu_check.md").write_text(self._markdown(), encoding="utf-8")

    def has_time(self) -> bool:
        """Return whether a new measurement may start."""
        return time.monotonic() < self.ends_at

    def failures(self) -> list[dict[str, Any]]:
        """Return the rows that say no."""
        return [row for rows in self.tables.values() for row in rows if row.get("passed") is False]

    def _markdown(self) -> str:
        lines = [f"- {name}: {value}" for name, value in self.conditions.items()]
        for table, rows in self.tables.items():
            names = list(dict.fromkeys(name for row in rows for name in row))
            lines += [
                "",
                f"## {table}",
                "",
                f"| {' | '.join(names)} |",
                "| --- " * len(names) + "|",
            ]
            lines += [f"| {' | '.join(str(row.get(name, '')) for name in names)} |" for row in rows]
        return "\n".join(lines) + "\n"


def seconds(run: Callable[[], object], device: torch.device) -> tuple[float, float]:
    """Return the median time of a run and the distance of its quartiles, after three runs to warm up."""
    is_cuda = device.type == "cuda"
    for _ in range(3 if is_cuda else 1):
        run()
    times: list[float] = []
    while len(times) < 5 or (sum(times) < 0.3 and len(times) < 50):
        if is_cuda:
            torch.cuda.synchronize()
        before = time.perf_counter()
        run()
        if is_cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - before)
    low, middle, high = statistics.quantiles(times, n=4)
    return middle, high - low


def measure(
    report: Report,
    table: str,
    what: dict[str, Any],
    run: Callable[[], Tensor],
    device: torch.device,
) -> None:
    """Add forward, and forward with backward, of a function of no arguments that returns a tensor."""
    if not report.has_time():
        return

    def forward() -> None:
        with torch.no_grad():
            run()

    def both() -> None:
        run().float().sum().backward()

    try:
        (inference, spread), (training, wider) = (seconds(one, device) for one in (forward, both))
    except (RuntimeError, ValueError, TypeError) as error:  # another package's limit, or memory
        report.add(
            table, **what, failed=f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
        )
        return
    row = {"forward ms": inference, "+-": spread, "with backward ms": training, "+- ": wider}
    report.add(table, **what, **{name: f"{1000 * value:.3f}" for name, value in row.items()})


def attention_alone(
    length: int, batch: int, device: torch.device
) -> Callable[[AttentionBackend, bool], Callable[[], Tensor]]:
    """Return a maker of disentangled attention, table products included, or of plain attention."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    noise = [torch.randn(batch, HEADS, length, WIDTH, device=device, dtype=dtype) for _ in range(3)]
    query, key, value = (one.requires_grad_() for one in noise)
    tables = [
        torch.randn(HEADS, 512, WIDTH, device=device, dtype=dtype, requires_grad=True)
        for _ in range(2)
    ]
    at = torch.arange(length, device=device)[None]
    row = Distances(at, at, length - 1).mapped(lambda apart: log_buckets(apart, 256, 512) + 256)

    def make(backend: AttentionBackend, is_plain: bool) -> Callable[[], Tensor]:
        def run() -> Tensor:
            parts = (
                QueryScores("c2p", query * 0.07 @ tables[0].mT, row),
                KeyScores("p2c", key * 0.07 @ tables[1].mT, row),
            )
            return backend.attend(
                AttentionCall(query, key, value, 0.07, None if is_plain else SumBias(parts))
            )

        return run

    return make


def time_attention(report: Report, device: torch.device, tiny: bool) -> None:
    """Time attention alone: each backend with both position terms, and the floor without any."""
    for length in (32,) if tiny else reversed(LENGTHS):
        batch = 1 if tiny else TOKENS // length
        make = attention_alone(length, batch, device)
        shape = {"length": length, "batch": batch}
        for name in [
            "triton",
            *(one for one in posattn.backends.names() if one not in ("auto", "triton")),
        ]:
            what = {**shape, "backend": name, "bias": "c2p + p2c"}
            measure(report, "Attention", what, make(posattn.backends.get(name)(), False), device)
        floor = make(posattn.backends.get("sdpa")(), True)
        measure(report, "Attention", {**shape, "backend": "sdpa", "bias": "none"}, floor, device)


def time_tiles(report: Report, device: torch.device, tiny: bool) -> None:
    """Time the triton backend with tiles of several sizes, for sizes.py."""
    for length in (32,) if tiny else (8192, 1024):
        make = attention_alone(length, 1 if tiny else TOKENS // length, device)
        for tile in ((16, 16),) if tiny else TILES:
            what = {"length": length, "queries": tile[0], "keys": tile[1]}
            measure(report, "Tiles", what, make(TritonBackend(tile), False), device)


def encoders(tiny: bool, length: int) -> dict[str, Callable[[], torch.nn.Module]]:
    """Return makers of encoders of one layer in DeBERTa-v3-base's shape, by name."""
    hidden, heads = (32, 2) if tiny else (768, 12)

    def ours(backend: str, mechanism: str) -> Callable[[], torch.nn.Module]:
        shape = {
            "hidden_size": hidden,
            "num_heads": heads,
            "num_layers": 1,
            "intermediate_size": 4 * hidden,
        }
        plain = {
            "hidden_dropout": 0.0,
            "attention_dropout": 0.0,
            "backend": backend,
            "mechanism": mechanism,
        }
        return lambda: Encoder(EncoderConfig.model_validate(shape | plain), 1000)

    found = {
        "posattn, triton": ours("triton", "disentangled"),
        "posattn, sdpa": ours("sdpa", "disentangled"),
    }
    found["posattn, no positions, sdpa"] = ours("sdpa", "none")
    if importlib.util.find_spec("transformers") is None:
        return found
    from transformers import DebertaV2Config, DebertaV2Model

    config = DebertaV2Config(
        vocab_size=1000, hidden_size=hidden, num_hidden_layers=1, num_attention_heads=heads,
        intermediate_size=4 * hidden, relative_attention=True, position_buckets=256,
        norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"],
        position_biased_input=False, type_vocab_size=0,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, max_position_embeddings=512,
    )  # fmt: skip
    found["transformers, eager"] = lambda: DebertaV2Model(config)
    if importlib.util.find_spec("disentangled_flash") is not None:
        from disentangled_flash import optimize_deberta_training

        backend = "torch" if tiny else "triton"
        found["disentangled-flash"] = lambda: optimize_deberta_training(
            DebertaV2Model(config), backend=backend
        )
    if importlib.util.find_spec("flashdeberta") is not None and not tiny:
        from flashdeberta import FlashDebertaV2Model

        found["flashdeberta"] = lambda: FlashDebertaV2Model(config)
    return found


def time_encoders(report: Report, device: torch.device, tiny: bool) -> None:
    """Time whole encoders of one layer, ours and other packages'."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    for length in (16,) if tiny else LENGTHS:
        ids = torch.randint(0, 1000, (2 if tiny else TOKENS // length, length), device=device)
        for name, make in encoders(tiny, length).items():
            if not report.has_time():
                return
            model = make().to(device, dtype).train()

            def run(model: torch.nn.Module = model, ids: Tensor = ids) -> Tensor:
                out = model(ids)
                return out if isinstance(out, Tensor) else out.last_hidden_state

            what = {"encoder": name, "length": length, "batch": ids.shape[0]}
            measure(report, "Encoder of one layer", what, run, device)


def conditions(device: torch.device) -> dict[str, str]:
    """Return what the figures depend on."""
    found = {
        "device": torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else "cpu, interpreted"
    }
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    kept = "bfloat16, 12 heads of 64, no dropout, no padding, 16384 tokens a batch; medians, +- distance of "
    return {
        **found,
        "times": kept
        + "the quartiles; compile time apart; encoders in training mode, forward without gradients",
    }


def main() -> int:
    """Run everything and return 0 if nothing failed, 1 if something did, 2 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("runs/gpu-check"))
    parser.add_argument("--minutes", type=float, default=7.5)
    parser.add_argument("--interpret", action="store_true", help="a tiny version on the CPU")
    parser.add_argument(
        "--tiles", action="store_true", help="time tile sizes of the triton backend"
    )
    options = parser.parse_args()
    if options.interpret:
        os.environ["TRITON_INTERPRET"] = "1"
    elif not torch.cuda.is_available():
        print("no CUDA device; --interpret runs a tiny version on the CPU", file=sys.stderr)
        return 2
    device = torch.device("cpu" if options.interpret else "cuda")
    report = Report(options.out, time.monotonic() + 60 * options.minutes, conditions(device))
    tiny = options.interpret
    if options.tiles:
        time_tiles(report, device, tiny)
    else:
        first, *others = (torch.float16, torch.float32) if tiny else ALL_TYPES
        prove_dropout(report, device, tiny)
        prove(report, device, tiny, first)
        time_attention(report, device, tiny)
        time_encoders(report, device, tiny)
        for dtype in others:
            prove(report, device, tiny, dtype)
    failures = report.failures()
    print(f"{len(failures)} failed; tables in {options.out}/gpu_check.md", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
