"""The exceptions a user can meet. Each carries the exit code that the command line returns for it."""


class PosattnError(Exception):
    """Any error that is the user's to mend; its text says the value, the limit and the alternatives."""

    exit_code = 1


class RecipeError(PosattnError):
    """A recipe, study or override that cannot be run as written."""

    exit_code = 2


class UnknownName(RecipeError):
    """A name that no registry entry has."""


class DuplicateName(RecipeError):
    """A registry name that is already taken."""


class PluginError(RecipeError):
    """A plug-in that a recipe needs and that cannot be loaded."""


class IncompatibleParts(RecipeError):
    """Parts that are each right and cannot be combined, or an input that a mechanism cannot take."""


class BackendRefusal(RecipeError):
    """A backend that cannot run what the recipe asks of it."""


class ControlError(RecipeError):
    """A study whose arms differ in more than it declares."""


class DataError(PosattnError):
    """Text that is missing, empty, unreadable or too short."""

    exit_code = 3


class RunFailed(PosattnError):
    """A training run that did not finish: diverged, ran out of disk, or was killed."""

    exit_code = 4


class CheckpointError(RunFailed):
    """No complete checkpoint, or one that does not fit this recipe."""


class StudyIncomplete(PosattnError):
    """A comparison in which some runs did not finish; the report covers the others."""

    exit_code = 5


class SuiteIncomplete(StudyIncomplete):
    """A suite of which some tasks did not succeed; `exit_code` is that of the worst."""

    def __init__(self, message: str, exit_code: int) -> None:
        """Take the message with the tasks, and the exit code."""
        super().__init__(message)
        self.exit_code = exit_code
