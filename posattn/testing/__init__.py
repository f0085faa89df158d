"""The conformance checks that authors of mechanisms and backends run on their own work."""

from posattn.testing.backend_checks import backend_checks as backend_checks
from posattn.testing.backend_checks import check_backend as check_backend
from posattn.testing.checks import Check as Check
from posattn.testing.checks import CheckResult as CheckResult
from posattn.testing.mechanism_case import MechanismCase as MechanismCase
from posattn.testing.mechanism_checks import check_mechanism as check_mechanism
from posattn.testing.mechanism_checks import mechanism_checks as mechanism_checks
