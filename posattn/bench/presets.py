"""Benchmarks by name: a short look, and the CPU figures that the project sets itself as targets."""

from collections.abc import Callable

from posattn.bench.plan import BenchPlan, Cell, Mixed, ModelSize, Stage, Target
from posattn.registry import Registry

BASE = ModelSize(hidden_size=768, num_heads=12, num_layers=2, intermediate_size=3072)
SHAPES = ((1, 32), (1, 128), (8, 128), (2, 512), (1, 1024), (1, 2048))
INFERENCE = (2.3, 1.8, 1.4, 1.5, 2.2, 3.2)
TRAINING = (1.0, 1.0, 1.0, 1.3, 1.7, 1.0)
BESIDE_DISENTANGLED_FLASH = (None, None, 1.0, 1.0, 1.0, 1.0)
PLAIN = {
    "learned": ("transformers BERT", 1.0),
    "rope_modernbert": ("transformers ModernBERT", 1.0),
    "t5": ("transformers T5", 1.0),
    "rope": ("transformers RoFormer", 1.3),
    "transformer_xl": ("transformers XLNet", 1.3),
}


def _quick() -> BenchPlan:
    """Return every architecture at a small size: a minute or two."""
    shapes = ((8, 32), (8, 128), (8, 512))
    cells = _cells("inference", shapes) + _cells("training", shapes)
    return BenchPlan(
        name="quick", command="posattn bench --preset quick", cells=cells, rounds=5, seconds=0.5
    )


def _cpu_targets() -> BenchPlan:
    """Return DeBERTa-v3-base's shape with two layers, against the libraries that compute the same."""
    theirs, flash = "transformers DeBERTa-v3", "disentangled-flash"
    targets = (
        *_targets("disentangled", theirs, "inference", INFERENCE),
        *_targets("disentangled", flash, "inference", BESIDE_DISENTANGLED_FLASH),
        *_targets("disentangled", theirs, "training", TRAINING),
    )
    return BenchPlan(
        name="cpu-targets",
        command="posattn bench --preset cpu-targets",
        size=BASE,
        subjects=("disentangled",),
        cells=_cells("inference", SHAPES) + _cells("training", SHAPES),
        backends=("auto", "sdpa"),
        seconds=3.0,
        targets=targets,
    )


def _cpu_plain() -> BenchPlan:
    """Return the plain mechanisms at the same size, against transformers' own encoders."""
    targets = tuple(
        target
        for subject, (rival, factor) in PLAIN.items()
        for target in _targets(subject, rival, "inference", (factor,) * len(SHAPES))
    )
    return BenchPlan(
        name="cpu-plain",
        command="posattn bench --preset cpu-plain",
        size=BASE,
        subjects=tuple(PLAIN),
        cells=_cells("inference", SHAPES),
        seconds=2.0,
        targets=targets,
    )


def _unpad() -> BenchPlan:
    """Return short texts of mixed length, padded and without padding, for four mechanisms."""
    subjects = ("none", "rope", "t5", "disentangled")
    stages: tuple[Stage, ...] = ("inference", "training")
    cells = tuple(Cell(batch_size=32, length=128, stage=stage, mixed=Mixed()) for stage in stages)
    targets = tuple(
        Target(subject=subject, cell=cell, against="posattn (auto)", at_least=1.8)
        for subject in subjects
        for cell in cells
    )
    return BenchPlan(
        name="unpad",
        command="posattn bench --preset unpad",
        size=BASE,
        subjects=subjects,
        cells=cells,
        seconds=3.0,
        targets=targets,
    )


def _cpu_bf16() -> BenchPlan:
    """Return disentangled attention in float32 and in bf16, on a processor that multiplies bf16."""
    shapes, gain = ((1, 128), (8, 128), (2, 512)), 1.0
    stages: tuple[Stage, ...] = ("inference", "training")
    cells = tuple(cell for stage in stages for cell in _cells(stage, shapes))
    targets = tuple(
        Target(
            subject="disentangled",
            cell=cell,
            against="posattn (auto)",
            at_least=gain,
            precision="bf16",
        )
        for cell in cells
    )
    return BenchPlan(
        name="cpu-bf16",
        command="posattn bench --preset cpu-bf16",
        size=BASE,
        subjects=("disentangled",),
        cells=cells,
        precisions=("float32", "bf16"),
        rivals=False,
        seconds=3.0,
        targets=targets,
    )


def _cells(stage: Stage, shapes: tuple[tuple[int, int], ...]) -> tuple[Cell, ...]:
    return tuple(Cell(batch_size=rows, length=length, stage=stage) for rows, length in shapes)


def _targets(
    subject: str, against: str, stage: Stage, factors: tuple[float | None, ...]
) -> tuple[Target, ...]:
    return tuple(
        Target(subject=subject, cell=cell, against=against, at_least=factor)
        for cell, factor in zip(_cells(stage, SHAPES), factors, strict=True)
        if factor is not None
    )


presets: Registry[Callable[[], BenchPlan]] = Registry("bench preset", "posattn.bench_presets")
presets.add("quick", _quick)
presets.add("cpu-targets", _cpu_targets)
presets.add("cpu-plain", _cpu_plain)
presets.add("cpu-bf16", _cpu_bf16)
presets.add("unpad", _unpad)
