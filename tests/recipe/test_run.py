import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from posattn.recipe.run import train_recipe
from posattn.recipe.schema import Recipe, load_recipe
from posattn.training.metrics import read_metrics
from posattn.training.run_inputs import Progress


@pytest.fixture
def write_recipe(tmp_path: Path, sentences: list[str]) -> Callable[..., Recipe]:
    """Return a function that makes a small recipe over a small text: `write_recipe(overrides)`."""
    (tmp_path / "text.txt").write_text("\n".join(sentences * 3), encoding="utf-8")
    (tmp_path / "small.yaml").write_text(
        """
encoder: {hidden_size: 16, num_layers: 2, num_heads: 2, mechanism: {name: rope}}
objective: {name: mlm}
data:
  corpus: {name: files, paths: [text.txt], document_per: line}
  tokenizer: {name: characters}
  max_length: 16
train: {steps: 10, batch_size: 4, accumulation: 3, log_every: 2, evaluate_every: 4,
        checkpoint_every: 3, warmup_steps: 2, evaluation_tokens: 300}
""",
        encoding="utf-8",
    )

    def make(*overrides: str) -> Recipe:
        return load_recipe(tmp_path / "small.yaml", list(overrides))

    return make


def interrupt_at(step: int) -> Callable[[Progress], None]:
    def tell(progress: Progress) -> None:
        if (progress.step, progress.stage) == (step, "training"):
            os.kill(os.getpid(), signal.SIGINT)

    return tell


def lines(run: Path) -> list[dict[str, Any]]:
    timed = ("seconds", "evaluation_seconds")
    return [
        {key: value for key, value in record.items() if key not in timed}
        for record in read_metrics(run / "metrics.jsonl")
    ]


@pytest.mark.parametrize(
    "overrides",
    [
        ["encoder.mechanism={name: disentangled}", "train.workers=1"],
        [
            "encoder.mechanism={name: transformer_xl, memory_length: 8}",
            "data.order=streams",
            "train.threads=2",
        ],
        ["encoder.mechanism={name: learned, max_positions: 16}", "train.precision=bf16"],
    ],
)
def test_a_real_recipe_resumes_bit_exactly_with_dropout(
    tmp_path: Path, write_recipe: Callable[..., Recipe], overrides: list[str]
) -> None:
    recipe = write_recipe(*overrides)
    assert recipe.encoder.hidden_dropout > 0
    train_recipe(recipe, tmp_path / "straight")
    broken = tmp_path / "broken"
    for step in (2, 7):
        with pytest.raises(KeyboardInterrupt):
            train_recipe(recipe, broken, resume=True, progress=interrupt_at(step))
    assert train_recipe(recipe, broken, resume=True).state == "finished"
    assert lines(tmp_path / "straight") == lines(broken)
    one, other = (
        load_file(run / "final" / "model.safetensors") for run in (tmp_path / "straight", broken)
    )
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("mechanism", ["disentangled", "transformer_xl"])
def test_an_evaluation_between_steps_sees_the_weights_of_its_step(
    tmp_path: Path, write_recipe: Callable[..., Recipe], mechanism: str
) -> None:
    chosen = [f"encoder.mechanism={{name: {mechanism}}}", "train.learning_rate=0.1"]
    for name, every in (("often", 1), ("once", 0)):
        train_recipe(write_recipe(*chosen, f"train.evaluate_every={every}"), tmp_path / name)
    often, once = (lines(tmp_path / name)[-1] for name in ("often", "once"))
    assert often["kind"] == once["kind"] == "evaluation"
    assert often["loss"] == once["loss"]


def test_the_run_folder_tells_everything_about_the_run(
    tmp_path: Path, write_recipe: Callable[..., Recipe]
) -> None:
    recipe = write_recipe()
    stages: list[str] = []
    train_recipe(recipe, tmp_path / "run", progress=lambda progress: stages.append(progress.stage))
    assert load_recipe(tmp_path / "run" / "recipe.yaml") == recipe
    assert load_recipe(tmp_path / "run" / "final" / "recipe.yaml") == recipe
    assert (tmp_path / "run" / "final" / "tokenizer.json").stat().st_size > 100
    data = json.loads((tmp_path / "run" / "data.json").read_text())
    assert data["files"][0]["name"].endswith("text.txt")
    assert any(stage.startswith("reading the corpus") for stage in stages)
    assert {"training", "evaluating", "saving", "finished"} <= set(stages)


def test_shared_parameters_and_batches_are_equal_across_mechanisms(
    tmp_path: Path, write_recipe: Callable[..., Recipe]
) -> None:
    found = []
    for name in ("rope", "disentangled"):
        recipe = write_recipe(f"encoder.mechanism={{name: {name}}}", "train.steps=2")
        train_recipe(recipe, tmp_path / name)
        tensors = json.loads((tmp_path / name / "parameters.json").read_text())["tensors"]
        batches = [line["batches"] for line in lines(tmp_path / name) if line["kind"] == "train"]
        found.append((tensors, batches))
    (rope, rope_batches), (disentangled, disentangled_batches) = found
    shared = rope.keys() & disentangled.keys()
    assert len(shared) > 10
    assert all(rope[name]["digest"] == disentangled[name]["digest"] for name in shared)
    own = [name for name in disentangled if name not in shared]
    assert own
    assert all(disentangled[name]["position"] for name in own)
    assert rope_batches == disentangled_batches


def test_the_backend_that_computed_attention_is_recorded_with_the_run(
    write_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    recipe = write_recipe("encoder.backend=sdpa", "train.steps=2")
    run = train_recipe(recipe, tmp_path / "run").folder
    found = json.loads((run / "attention.json").read_text(encoding="utf-8"))
    assert found == {"asked": "sdpa", "computed": ["sdpa"]}


def test_a_run_without_padding_learns_and_evaluates_what_the_padded_run_does(
    write_recipe: Callable[..., Recipe], tmp_path: Path
) -> None:
    found = []
    for unpad in ("false", "true"):
        recipe = write_recipe(
            f"encoder.unpad={unpad}",
            "encoder.hidden_dropout=0.0",
            "encoder.attention_dropout=0.0",
            "data.layout=padded",
            "train.steps=4",
        )
        run = train_recipe(recipe, tmp_path / unpad).folder
        weights = load_file(run / "final" / "model.safetensors")
        losses = [line["loss"] for line in read_metrics(run / "metrics.jsonl")]
        found.append((losses, weights))
    (padded, expected), (losses, weights) = found
    assert losses == pytest.approx(padded, abs=1e-5)
    for name, weight in expected.items():
        torch.testing.assert_close(weights[name], weight, atol=1e-5, rtol=1e-5)
