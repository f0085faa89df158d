"""The command line called in this process, and a small recipe for it."""

import pytest

from posattn.cli.main import run

TINY = """\
encoder: {hidden_size: 32, num_layers: 2, num_heads: 4, mechanism: {name: rope}}
data: {corpus: {name: pydoc}, tokenizer: {name: characters, vocab_size: 50}, max_length: 16}
train: {steps: 3, batch_size: 4, evaluation_tokens: 200}
"""


@pytest.fixture
def tiny(tmp_path):
    """The path of a small recipe."""
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return str(path)


@pytest.fixture
def posattn_command(capsys):
    """A function from arguments to (exit code, stdout, stderr)."""

    def call(*arguments):
        with pytest.raises(SystemExit) as end:
            run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return end.value.code or 0, captured.out, captured.err

    return call
