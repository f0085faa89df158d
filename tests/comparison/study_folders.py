"""Realistic study folders, written as the runner writes them, with numbers made up from a seed."""

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

TRAIN_LENGTH = 64
STEPS = 600
EVERY = 100
TOKENS_PER_STEP = 2048
NUM_SAMPLES = 120


@dataclass(frozen=True)
class FakeArm:
    """The truth about one arm: final loss, growth per doubling of length, sizes, relative speed."""

    name: str
    loss: float
    growth: float = 0.02
    changes: dict[str, Any] = field(default_factory=dict)
    refused_at: int | None = None
    position_parameters: int = 0
    slowness: float = 1.0


def mechanism(name: str, **options: Any) -> dict[str, Any]:
    return {"encoder.mechanism": {"name": name, **options}}


EIGHT_ARMS = (
    FakeArm(
        "learned",
        2.425,
        0.17,
        mechanism("learned", max_positions=256),
        refused_at=512,
        position_parameters=32768,
    ),
    FakeArm("none", 2.731, 0.01, mechanism("none")),
    FakeArm("sinusoidal", 2.430, 0.09, mechanism("sinusoidal")),
    FakeArm("rope", 1.346, 0.19, mechanism("rope", base=10000), slowness=1.06),
    FakeArm("alibi", 1.738, -0.01, mechanism("alibi", form="halves")),
    FakeArm(
        "transformer_xl",
        1.235,
        -0.02,
        mechanism("transformer_xl"),
        position_parameters=66048,
        slowness=1.25,
    ),
    FakeArm(
        "disentangled",
        1.304,
        0.1,
        mechanism("disentangled", terms=["c2p", "p2c"]),
        position_parameters=147456,
        slowness=1.27,
    ),
    FakeArm(
        "disentangled_emd",
        1.300,
        0.11,
        mechanism("disentangled") | {"decoder": {"name": "emd"}},
        position_parameters=155648,
        slowness=1.6,
    ),
)

CONTROL = [
    {"rule": "arms differ in the declared factors only", "held": True, "detail": "8 arms agree"},
    {
        "rule": "decoder is equal in all arms",
        "held": False,
        "detail": "differs in disentangled_emd; declared: absolute positions return in the decoder",
        "expected": True,
    },
    {"rule": "shared parameters start equal", "held": True, "detail": "61 tensors, SHA-256"},
    {
        "rule": "batches and masks are equal across arms",
        "held": True,
        "detail": "60 digests a seed",
    },
]


def write_study(
    out: Path,
    arms: tuple[FakeArm, ...] = EIGHT_ARMS,
    seeds: tuple[int, ...] = (0, 1, 2),
    *,
    diverged: frozenset[tuple[str, int]] = frozenset({("none", 2)}),
    unstarted: frozenset[tuple[str, int]] = frozenset(),
    control: list[dict[str, Any]] | None = None,
    noise: float = 0.012,
    seed_effect: float = 0.025,
    speed: bool = True,
) -> Path:
    """Write a whole study folder and return it."""
    random = np.random.default_rng(7)
    effects = {seed: random.normal(0, seed_effect) for seed in seeds}
    plan = {
        "study": "quick",
        "title": "Position mechanisms, a quick screen",
        "question": "Which position mechanisms differ in early training on Shakespeare?",
        "description": "",
        "notes": "",
        "declared": {"decoder": "absolute positions return in the decoder"},
        "arms": [
            {
                "name": arm.name,
                "changes": arm.changes,
                "recipe_digest": hashlib.sha256(arm.name.encode()).hexdigest(),
            }
            for arm in arms
        ],
        "seeds": list(seeds),
        "baseline": arms[0].name,
        "primary": "validation_loss",
        "varies": ["encoder.mechanism"],
        "runs": [
            {"arm": arm.name, "seed": seed, "folder": f"runs/{arm.name}/seed-{seed}"}
            for arm in arms
            for seed in seeds
        ],
        "control": CONTROL if control is None else control,
    }
    write_json(out / "plan.json", plan)
    (out / "study.yaml").write_text("name: quick\n")
    for arm in arms:
        for seed in seeds:
            if (arm.name, seed) in unstarted:
                continue
            shift = effects[seed] + random.normal(0, noise)
            ends_early = (arm.name, seed) in diverged
            write_run(out / f"runs/{arm.name}/seed-{seed}", arm, seed, shift, diverged=ends_early)
    if speed:
        write_json(out / "speed.json", speed_rounds(arms, random))
    return out


def write_run(folder: Path, arm: FakeArm, seed: int, shift: float, *, diverged: bool) -> None:
    """Write the folder of one run."""
    folder.mkdir(parents=True)
    final = arm.loss + shift
    last = 300 if diverged else STEPS
    seeds = {"train": seed, "data": seed}
    reason = "loss is not finite at step 301 (learning rate 0.0015)" if diverged else None
    status = {
        "state": "diverged" if diverged else "finished",
        "step": last,
        "tokens": last * TOKENS_PER_STEP,
        "targets": int(last * TOKENS_PER_STEP * 0.15),
        "reason": reason,
        "resumed": 1 if seed == 1 and arm.name == "rope" else 0,
        "seconds": 95.0 * arm.slowness,
    }
    write_json(folder / "status.json", status)
    lines = []
    for step in range(EVERY, last + 1, EVERY):
        progress = 1 - math.exp(-step / 250)
        loss: float | None = 3.1 - (3.1 - final) * progress / (1 - math.exp(-STEPS / 250))
        if diverged and step == last:
            loss = None
        extra = {"reason": "not finite"} if loss is None else {}
        tokens = step * TOKENS_PER_STEP
        lines.append({"kind": "train", "step": step, "epoch": 0, "tokens": tokens, "loss": loss})
        lines.append({"kind": "evaluation", "step": step, "tokens": tokens, "loss": loss, **extra})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_recipe(folder / "recipe.yaml", arm, seed)
    write_json(folder / "data.json", DATA)
    write_json(folder / "environment.json", ENVIRONMENT | {"seeds": seeds})
    if not diverged:
        accuracy = write_examples(folder / "examples.npz", final, seed)
        write_json(folder / "evaluations.json", evaluations(arm, final, accuracy))


def evaluations(arm: FakeArm, final: float, accuracy: float) -> dict[str, Any]:
    """Return the content of evaluations.json."""
    lengths = [TRAIN_LENGTH * multiple for multiple in (1, 2, 4, 8)]
    losses = [final + arm.growth * math.log2(length / TRAIN_LENGTH) for length in lengths]
    refused = {}
    if arm.refused_at in lengths:
        reason = f"a table of {arm.refused_at // 2} positions cannot take {arm.refused_at} tokens"
        refused = {str(arm.refused_at): reason}
    stored = [None if str(n) in refused else x for n, x in zip(lengths, losses, strict=True)]
    edges = list(range(0, TRAIN_LENGTH + 1, 8))
    bend = [0.25, 0.08, 0.02, 0.0, 0.0, 0.02, 0.07, 0.22]
    return {
        "validation": {
            "loss": final,
            "accuracy": accuracy,
            "targets": NUM_SAMPLES * 10,
            "tokens": 80000,
        },
        "length": {
            "lengths": lengths,
            "loss": stored,
            "accuracy": [None if x is None else math.exp(-x) for x in stored],
            "targets": [12000] * 4,
            "refused": refused,
        },
        "position": {
            "length": TRAIN_LENGTH,
            "edges": edges,
            "loss": [final - 0.08 + more for more in bend],
            "targets": [1500] * 8,
        },
        "size": {
            "parameters": 813_000 + arm.position_parameters,
            "position_parameters": arm.position_parameters,
            "embedding_parameters": 256_000,
            "flops_per_token": 1_900_000 * arm.slowness,
            "mechanism_flops_per_token": 1_900_000 * (arm.slowness - 1),
        },
    }


def write_examples(path: Path, final: float, seed: int) -> float:
    """Write per-sample sums that add up to the loss of the run; return its accuracy."""
    samples = np.random.default_rng(0)
    difficulty = samples.normal(0, 0.3, NUM_SAMPLES)
    targets = np.full(NUM_SAMPLES, 10, dtype=np.int64)
    mine = np.random.default_rng([seed, int(final * 1e6)])
    losses = difficulty + mine.normal(0, 0.1, NUM_SAMPLES)
    losses += final - losses.mean()
    correct = mine.binomial(10, np.clip(np.exp(-losses) + 0.2, 0, 1))
    np.savez(
        path,
        sample_ids=np.arange(NUM_SAMPLES),
        loss_sum=losses * targets,
        targets=targets,
        correct=correct,
    )
    return float(correct.sum() / targets.sum())


def speed_rounds(arms: tuple[FakeArm, ...], random: np.random.Generator) -> dict[str, Any]:
    """Return the content of speed.json: 8 rounds over all arms."""
    rounds = []
    for number in range(8):
        drift = 1 + 0.1 * random.random()
        for arm in arms:
            for stage, seconds in (("training_step", 0.16), ("inference", 0.05)):
                took = seconds * arm.slowness * drift * (1 + 0.03 * random.random())
                item = {"arm": arm.name, "round": number, "stage": stage}
                rounds.append(item | {"seconds": took, "tokens": TOKENS_PER_STEP})
    return {
        "conditions": {
            "threads": 1,
            "batch_size": 32,
            "length": 64,
            "device": "cpu",
            "dtype": "float32",
        },
        "rounds": rounds,
        "peak_memory_bytes": {arm.name: int(4.1e8 * arm.slowness) for arm in arms},
    }


def write_recipe(path: Path, arm: FakeArm, seed: int) -> None:
    """Write a recipe.yaml with the keys that the report reads."""
    path.write_text(
        f"name: {arm.name}\n"
        "encoder: {hidden_size: 128, num_layers: 4, num_heads: 4}\n"
        "objective: {name: mlm, probability: 0.15}\n"
        f"data: {{corpus: {{name: shakespeare}}, max_length: {TRAIN_LENGTH}}}\n"
        f"train: {{steps: {STEPS}, batch_size: 32, learning_rate: 0.0015, seed: {seed}}}\n"
    )


def write_json(path: Path, content: Any) -> None:
    """Write strict JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, allow_nan=False))


DATA = {
    "name": "shakespeare",
    "licence": "CC-BY 2.5",
    "attribution": "Open Shakespeare, Open Knowledge Foundation; texts of Project Gutenberg",
    "origin": "the source package shakespeare 0.6, SHA-256 f393d09d07ea4d0e19957838046b3601",
    "files": [
        {"name": f"play_{i:02}_gut.txt", "sha256": f"{i:064x}", "bytes": 120_000, "documents": 1}
        for i in range(42)
    ],
    "documents": 42,
    "empty_documents": 0,
    "characters": 5_060_000,
    "replaced_bytes": 0,
    "division": "the last 5 % of every document are validation text",
    "train": {"documents": 42, "tokens": 1_570_000, "unknown_tokens": 0, "samples": 24_531},
    "validation": {"documents": 42, "tokens": 80_000, "unknown_tokens": 0, "samples": 1_250},
    "tokenizer": "byte-level BPE of 2,000 tokens, trained on the training text",
    "tokenizer_digest": "5e1f" * 16,
    "vocab_size": 2000,
    "libraries": {"tokenizers": "0.22.1"},
}
ENVIRONMENT = {
    "python": "3.11.9",
    "versions": {"posattn": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6"},
    "platform": "Linux-6.1-x86_64",
    "cpu": "AMD EPYC 7B13",
    "cores": 2,
    "threads": 1,
    "device": "cpu",
    "git": {"commit": "3f2c1ab", "dirty": False},
}
