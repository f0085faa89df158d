"""The folder that an import writes: complete, movable, trainable, and loaded again as it was."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from posattn.checkpoints import from_pretrained, import_checkpoint
from posattn.cli.app import app
from posattn.cli.main import run
from posattn.errors import CheckpointError, RecipeError
from posattn.recipe.check import check_recipe
from posattn.recipe.run import train_recipe
from posattn.recipe.schema import load_recipe
from posattn.training.durable import read_json

from .originals import KINDS, made, sample
from .test_sentence import sentence_encoder

QUICK = [
    *("data.max_length=8", "train.steps=1", "train.batch_size=8"),
    *("objective.probability=0.9", "train.evaluation_tokens=2000"),
]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "the", "of", "is"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A BERT with a tokenizer, imported."""
    made(KINDS["bert"]).save_pretrained(tmp_path / "theirs")
    (tmp_path / "theirs" / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    return tmp_path / "ours"


def test_the_command_prints_the_account_and_writes_four_files(tmp_path: Path, folder: Path) -> None:
    given = ["import", str(tmp_path / "theirs"), "--out"]
    shown = CliRunner().invoke(app, [*given, str(tmp_path / "first")])
    assert shown.exit_code == 0
    assert "58 tensors mapped, 0 copies of these" in shown.stdout
    assert {path.name for path in (tmp_path / "first").iterdir()} == {
        "recipe.yaml",
        "model.safetensors",
        "tokenizer.json",
        "import.json",
    }
    as_json = CliRunner().invoke(app, [*given, str(tmp_path / "second"), "--json"])
    record = json.loads(as_json.stdout)
    assert record == read_json(tmp_path / "second" / "import.json")
    assert (record["family"], record["unused"], record["new"]) == ("bert", [], [])
    assert len(record["tensors"]) == 58
    assert record["tokenizer"]["vocab_size"] == len(WORDS)
    assert record["digests"].keys() == {"config.json", "model.safetensors"}


def test_the_command_takes_overrides_and_names_that_are_accepted(tmp_path: Path) -> None:
    made(KINDS["bert"]).save_pretrained(tmp_path / "theirs")
    words = ["import", str(tmp_path / "theirs"), "--out", str(tmp_path / "ours")]
    words += ["--set", "encoder.mechanism=rope"]
    refused = CliRunner().invoke(app, words)
    assert isinstance(refused.exception, CheckpointError)
    assert "unused: bert.embeddings.position_embeddings.weight" in str(refused.exception)
    assert not (tmp_path / "ours").exists()
    done = CliRunner().invoke(app, [*words, "--accept-unused", "*.position_embeddings.*"])
    assert done.exit_code == 0
    assert "unused, as accepted" in done.stdout
    found = from_pretrained(tmp_path / "ours")
    assert found.recipe.encoder.mechanism[0].name == "rope"


def test_a_folder_that_holds_something_is_left_alone(folder: Path, tmp_path: Path) -> None:
    before = (folder / "import.json").read_bytes()
    with pytest.raises(RecipeError, match="is not empty"):
        import_checkpoint(tmp_path / "theirs", folder)
    assert (folder / "import.json").read_bytes() == before


def test_training_goes_on_from_the_folder_wherever_it_is(folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.move(folder, moved)
    recipe = load_recipe(moved / "recipe.yaml", [*QUICK, "train.learning_rate=1e-12"])
    assert check_recipe(recipe).parameters > 0
    result = train_recipe(recipe, tmp_path / "run")
    described = read_json(result.folder / "parameters.json")
    assert described["start"]["path"] == str(moved)
    assert described["start"]["new"] == described["start"]["unused"] == []
    first, trained = from_pretrained(moved), from_pretrained(result.folder / "final")
    assert first.masked_lm is not None
    assert trained.masked_lm is not None
    ids, visible, segments = sample(6)
    one, other = (
        model.masked_lm(ids, visible=visible, segments=segments).logits
        for model in (first, trained)
    )
    assert torch.allclose(one, other, atol=1e-5)
    assert trained.tokenizer is not None


def test_an_encoder_without_a_head_starts_one_and_says_so_in_the_recipe(tmp_path: Path) -> None:
    sentence_encoder(tmp_path / "theirs", {"pooling_mode": "mean"})
    report = import_checkpoint(tmp_path / "theirs", tmp_path / "ours")
    assert any("no masked-token head" in note for note in report.notes)
    recipe = load_recipe(tmp_path / "ours" / "recipe.yaml", QUICK)
    start = recipe.train.start
    assert start is not None
    assert (start.accept_new, start.accept_unused) == (("decoder.*", "head.*"), ("tasks.*",))
    result = train_recipe(recipe, tmp_path / "run")
    described = read_json(result.folder / "parameters.json")["start"]
    assert all(name.startswith("head.") for name in described["new"])
    assert all(name.startswith("tasks.pooled.") for name in described["unused"])


def test_an_imported_folder_takes_another_mechanism_if_what_changes_is_named(folder: Path) -> None:
    with pytest.raises(CheckpointError, match=r"unused: encoder\.position\.mechanisms\.learned"):
        from_pretrained(folder, overrides=["encoder.mechanism=t5"])
    found = from_pretrained(
        folder,
        overrides=["encoder.mechanism=t5"],
        accept_unused=["*.learned.*"],
        accept_new=["*.t5.*"],
    )
    assert found.report.new == ("encoder.position.mechanisms.t5.table.weight",)
    again = from_pretrained(
        folder,
        overrides=["encoder.mechanism=t5"],
        accept_unused=["*.learned.*"],
        accept_new=["*.t5.*"],
    )
    name = "encoder.position.mechanisms.t5.table.weight"
    assert torch.equal(found.tensors()[name], again.tensors()[name])


def test_a_runs_final_weights_can_be_imported_with_its_own_tokenizer(tmp_path: Path) -> None:
    tiny = ["encoder.hidden_size=16", "encoder.num_heads=2", "encoder.num_layers=1"]
    data = ["data.corpus=pydoc", "data.tokenizer={name: characters, vocab_size: 64}"]
    run_ = train_recipe(load_recipe("rope", [*tiny, *data, *QUICK]), tmp_path / "run")
    import_checkpoint(run_.folder / "final", tmp_path / "ours")
    recipe = load_recipe(tmp_path / "ours" / "recipe.yaml")
    assert recipe.data.tokenizer.name == "file"
    again = train_recipe(recipe, tmp_path / "again")
    assert read_json(again.folder / "parameters.json")["start"]["new"] == []


def test_rows_that_are_no_number_are_refused(tmp_path: Path) -> None:
    made(KINDS["bert"]).save_pretrained(tmp_path / "theirs")
    with pytest.raises(CheckpointError, match=r"token_rows is null"):
        from_pretrained(tmp_path / "theirs", overrides=["encoder.token_rows=null"])


def test_a_folder_without_a_token_table_is_no_model(folder: Path) -> None:
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"holds no encoder\.tokens\.weight"):
        from_pretrained(folder)


def test_families_and_heads_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    for kind, name in (("families", "deberta_v2"), ("tasks", "choice")):
        with pytest.raises(SystemExit) as end:
            run(["list", kind])
        assert end.value.code in (0, None)
        assert name in capsys.readouterr().out
