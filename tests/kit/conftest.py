"""Fixtures: a package installed with pip into a folder of its own, and posattn run beside it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRIVER = """
import contextlib, io, json, sys
from posattn.cli.main import run
results = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run(arguments)
        except SystemExit as end:
            results.append((end.code or 0, out.getvalue(), err.getvalue()))
print(json.dumps(results))
"""


@pytest.fixture
def install(tmp_path):
    """A function that installs a package folder, offline, and returns where its modules lie."""

    def put(source):
        site = tmp_path / "site"
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir"]
        command = [sys.executable, "-m", "pip", "install", *options, "--target", str(site)]
        done = subprocess.run([*command, str(source)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return site

    return put


@pytest.fixture
def posattn_beside(tmp_path):
    """A function that runs command lines one after the other in a process that sees `site`.

    It returns (exit code, stdout, stderr) of each.
    """

    def call(site, *commands):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)]),
            "OMP_NUM_THREADS": "1",
        }
        words = [[str(word) for word in command] for command in commands]
        command = [sys.executable, "-c", DRIVER, json.dumps(words)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stderr
        return [tuple(result) for result in json.loads(done.stdout.splitlines()[-1])]

    return call
