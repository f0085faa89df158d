"""Self-tests: whether every arm does what its parts promise, asked before its first step."""

from posattn.comparison.self_tests.study import RULE, check_arms_keep_promises

__all__ = ["RULE", "check_arms_keep_promises"]
