"""Studies of several tasks: one ordinary study for each, and what they say together."""

from posattn.comparison.suite.run import SuiteResult, TaskOutcome, run_suite

__all__ = ["SuiteResult", "TaskOutcome", "run_suite"]
