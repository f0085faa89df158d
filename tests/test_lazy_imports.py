"""P-2: what costs time is imported when it is used."""

import os
import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "datasets", "tokenizers", "accelerate", "scipy", "matplotlib")


def loaded_after(code: str) -> set[str]:
    """Return the heavy packages that a fresh process has imported after running `code`."""
    probe = f"""
import sys
try:
    {code}
except SystemExit as end:
    assert not end.code, end.code
print("LOADED", *[name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, timeout=120, check=True
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    "code",
    [
        "import posattn",
        "import posattn; posattn.__version__; dir(posattn)",
        "from posattn.cli.main import run; run(['--help'])",
        "from posattn.cli.main import run; run(['--version'])",
        "from posattn.cli.main import run; run(['compare', '--help'])",
        "from posattn.cli.main import run; run(['list', 'recipes'])",
    ],
)
def test_nothing_heavy_is_imported(code):
    assert loaded_after(code) == set()


def test_help_answers_at_once_in_a_warm_process():
    command = [sys.executable, "-m", "posattn", "--help"]
    seconds = []
    for _ in range(4):  # in processor time: other work on the machine does not count
        before = os.times()
        subprocess.run(command, capture_output=True, check=True, timeout=60)
        after = os.times()
        user = after.children_user - before.children_user
        seconds.append(user + after.children_system - before.children_system)
    assert min(seconds) < 0.5


def test_the_public_names_are_there_when_asked_for():
    import posattn

    assert posattn.load_recipe("rope").name == "rope"
    assert "rope" in posattn.mechanisms.names()
    assert "eager" in posattn.backends.names()
    assert callable(posattn.build)
    assert "load_recipe" in dir(posattn)


def test_an_unknown_name_says_what_there_is():
    import posattn

    with pytest.raises(AttributeError, match="load_recipe"):
        _ = posattn.load_recipes
