"""`posattn export`: which file is wanted must be said; what comes back is where it went and how equal."""

import pytest


@pytest.fixture
def fast(monkeypatch):
    """Writers that write nothing; what they were given is returned."""
    given = []

    def write(model, out):
        given.append((model, out))
        return 2e-7

    monkeypatch.setattr("posattn.export.save_onnx", write)
    monkeypatch.setattr("posattn.export.save_graph", write)
    return given


@pytest.mark.parametrize("option", ["--onnx", "--torch-export"])
def test_the_file_and_the_largest_difference_are_said(
    posattn_command, tiny, tmp_path, fast, option
):
    out = tmp_path / "new" / "model"
    code, text, err = posattn_command("export", tiny, option, "--out", out)
    assert (code, err) == (0, "")
    assert text == f"Exported: {out} (logits differ by at most 2.0e-07)\n"
    model, path = fast[0]
    assert path == out
    assert model.encoder.backend.name == "eager"
    assert not model.training


@pytest.mark.parametrize("options", [(), ("--onnx", "--torch-export")])
def test_one_kind_of_file_must_be_named(posattn_command, tiny, tmp_path, options):
    code, _, err = posattn_command("export", tiny, *options, "--out", tmp_path / "model")
    assert code == 2
    assert "--onnx or --torch-export" in err


def test_a_finished_run_is_exported_with_its_weights(posattn_command, tiny, tmp_path, fast):
    assert posattn_command("train", tiny, "--out", tmp_path / "run")[0] == 0
    code, _, err = posattn_command("export", tmp_path / "run", "--onnx", "--out", tmp_path / "m")
    assert code == 0, err
    posattn_command("export", tmp_path / "run" / "final", "--onnx", "--out", tmp_path / "m")
    posattn_command("export", tiny, "--onnx", "--out", tmp_path / "m")
    run, final, fresh = (made.encoder.layers[0].attention.query_proj.weight for made, _ in fast)
    assert run.equal(final)
    assert not run.equal(fresh)


def test_a_folder_without_a_model_says_so(posattn_command, tmp_path):
    code, _, err = posattn_command("export", tmp_path, "--onnx", "--out", tmp_path / "m")
    assert code == 4
    assert "holds no trained model" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--hf", "folder", "--onnx"), "say which form is wanted"),
        (("--hf", "folder", "--out", "file"), "leave --out out"),
        (("--onnx",), "name it with --out FILE"),
        (("--onnx", "--out", "file", "--encoder-only"), "belong to --hf"),
    ],
)
def test_options_of_one_form_are_refused_with_another(posattn_command, tiny, options, message):
    code, _, err = posattn_command("export", tiny, *options)
    assert code == 2
    assert message in err
