"""Errors and warnings of the library.

Every error has one form, ``<argument>: <requirement>; got <public value>. <remedy>``, and carries its parts, so that
programs and tests read `argument` instead of words. What was got is a count and a first position, a type, or a public
value, never a private one. All errors of the library are `ConfideError`; bad values are also `ValueError`, bad types
`TypeError`.
"""

__all__ = [
    "BudgetError", "ConfideDeprecationWarning", "ConfideError", "CoverageWarning", "EarlierReleaseWarning",
    "FormatError", "InputError", "InputTypeError", "LedgerError", "MissingExtraError", "OtherDataError",
    "OtherDataWarning", "RetrainedWarning", "SimilarNameWarning",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)


class ConfideError(Exception):
    """Base of every error that the library raises on purpose.

    Parameters
    ----------
    argument
        What was refused: the name of an argument, of an option, or the path of a field in a document.
    requirement
        What it must be, or what went wrong.
    got
        What was found instead: a type, a count and a first position, or a public value. Never a private one.
    remedy
        What to do, as a sentence without its full stop.

    Examples
    --------
    >>> error = InputError("epsilon", "must be a positive, finite number", got="-1.0")
    >>> str(error), error.argument
    ('epsilon: must be a positive, finite number; got -1.0', 'epsilon')
    >>> str(InputError("groups", "must name the group of each record", got="3 without one", remedy="Drop them"))
    'groups: must name the group of each record; got 3 without one. Drop them'
    """

    def __init__(self, argument: str, requirement: str, got: str = "", remedy: str = "") -> None:
        super().__init__(argument, requirement, got, remedy)  # all of them, so that an error can be pickled
        self.argument, self.requirement, self.got, self.remedy = argument, requirement, got, remedy

    def __str__(self) -> str:
        found = f"; got {self.got}" if self.got else ""
        then = f". {self.remedy[0].upper()}{self.remedy[1:]}" if self.remedy else ""
        return f"{self.argument}: {self.requirement}{found}{then}"


class InputError(ConfideError, ValueError):
    """An argument has a value that cannot be used."""


class InputTypeError(ConfideError, TypeError):
    """An argument has a type that cannot be used."""


class FormatError(InputError):
    """A stored calibration or a data file is damaged, foreign, altered or too new."""


class MissingExtraError(ConfideError, ImportError):
    """A call needs an optional package that is not installed; the message names the extra that brings it."""


class CoverageWarning(UserWarning):
    """A threshold is +inf, or nearly so: the promise holds, but sets or intervals exclude nothing, or hardly anything.

    Given where a release is made, and wherever it is applied. A program that knows it silences it by its class.
    """


class ConfideDeprecationWarning(FutureWarning):
    """Something public is used that goes, two minor releases later at the earliest; the message says what to use.

    A `FutureWarning`, because jobs run the library from modules, where Python shows no `DeprecationWarning`.
    """


class OtherDataError(InputError):
    """A request that a ledger has answered before, about other data than these. Nothing was released nor charged."""


class EarlierReleaseWarning(UserWarning):
    """A ledger has answered this very request about these very data: its release was returned, nothing was charged.

    Attributes
    ----------
    made
        When the releases were charged, UTC, ISO 8601, one for each threshold.
    """

    def __init__(self, message: str, made: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.made = made


class OtherDataWarning(UserWarning):
    """A silo was asked a plan again and holds other data than those of its answer: the old answer was returned."""


class SimilarNameWarning(UserWarning):
    """A data set that is new to a ledger has nearly the name of a known one: its people may have two budgets."""


class RetrainedWarning(UserWarning):
    """An estimator that was fitted already is trained anew on part of the records, because `prefit` was not given."""


class LedgerError(ConfideError):
    """A privacy-budget ledger cannot be read or written: locked, read-only, on a full disk, damaged or foreign."""


class BudgetError(LedgerError, ValueError):
    """A release would cost more than its data set has left. Nothing was released and nothing charged."""
