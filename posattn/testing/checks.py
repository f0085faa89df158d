"""`Check` and `CheckResult`: one promise put to the test, and what came of it."""

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import torch


@final
@dataclass(frozen=True)
class Check:
    """One promise about one named part. Calling it raises AssertionError if the promise is broken."""

    name: str
    about: str  # the promise, in a sentence
    run: Callable[[], None]
    failure_means: str = ""  # what its user would meet, in a sentence

    def __call__(self) -> None:
        """Put the promise to the test."""
        self.run()

    def problem(self) -> str:
        """Return how the promise is broken, whatever the part raises; empty if it is kept."""
        try:
            self.run()
        except AssertionError as broken:
            return str(broken) or "an assertion without words failed"
        except Exception as error:  # whatever is wrong with a plug-in, the other checks still run
            return f"{type(error).__name__}: {error}"
        return ""

    def __str__(self) -> str:
        return self.name


@contextmanager
def uncompiled() -> Iterator[None]:
    """Let what a backend compiles run uncompiled: the checks ask what it computes, and not how fast."""
    with torch.compiler.set_stance("force_eager"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile")
        yield


@final
@dataclass(frozen=True)
class CheckResult:
    """What one check found; `problem` is empty if it passed."""

    name: str
    problem: str

    @property
    def passed(self) -> bool:
        """Return whether the promise held."""
        return not self.problem


def bind(function: Callable[..., None], *arguments: object) -> Check:
    """Return the check that calls `function(*arguments)`, named and described as the function is.

    The first line of the docstring is the promise; what follows "If not: " says what a failure means.
    """

    def run() -> None:
        function(*arguments)

    name = function.__name__.removeprefix("check_")
    text = inspect.getdoc(function) or name
    about, _, failure = text.partition("\n\nIf not: ")
    means = " ".join(failure.split()) or f"This does not hold: {about.splitlines()[0]}"
    return Check(name, about.splitlines()[0], run, means)


def run_all(subject: str, checks: Sequence[Check]) -> list[CheckResult]:
    """Run every check and return the results, or raise one AssertionError that lists every failure."""
    results = [CheckResult(check.name, check.problem()) for check in checks]
    failed = [result for result in results if not result.passed]
    if failed:
        lines = [f"  {result.name}: {result.problem}" for result in failed]
        raise AssertionError(
            f"{subject} fails {len(failed)} of {len(results)} checks:\n" + "\n".join(lines)
        )
    return results
