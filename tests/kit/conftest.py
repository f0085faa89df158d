"""Fixtures: a package installed with pip into a folder of its own, and posattn run beside it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


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
    """A function that runs the command line in a process that sees the folder `site`."""

    def call(site, *arguments):
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(site)]),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "posattn", *map(str, arguments)]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
        )

    return call
