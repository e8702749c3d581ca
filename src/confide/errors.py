"""Errors and warnings of the library.

Every error has one form, ``<argument>: <requirement>; got <public value>. <remedy>``, and its parts as attributes, so
that programs and tests can use `argument` instead of words. `got` is a count and a first position, a type, or a public
value, never a private one. All errors of the library are `ConfideError`. Errors about values are also `ValueError`, and
errors about types `TypeError`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = [
    "BudgetError", "ConfideDeprecationWarning", "ConfideError", "CoverageWarning", "EarlierReleaseWarning",
    "FormatError", "InputError", "InputTypeError", "LedgerError", "MissingExtraError", "OtherDataError",
    "OtherDataWarning", "RetrainedWarning", "SimilarNameWarning",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)


class ConfideError(Exception):
    """Base class of all errors that the library raises on purpose.

    Parameters
    ----------
    argument
        The name of the argument or option, or the path of a field in a document.
    requirement
        The requirement that is not met, or the failure.
    got
        The actual value: a type, a count and a first position, or a public value. Never a private one.
    remedy
        Advice, as a sentence without its full stop.

    Examples
    --------
    >>> error = InputError("epsilon", "must be a positive, finite number", got="-1.0")
    >>> str(error), error.argument
    ('epsilon: must be a positive, finite number; got -1.0', 'epsilon')
    >>> str(InputError("groups", "must name the group of each record", got="3 without one", remedy="Drop them"))
    'groups: must name the group of each record; got 3 without one. Drop them'
    """

    def __init__(self, argument: str, requirement: str, got: str = "", remedy: str = "") -> None:
        super().__init__(argument, requirement, got, remedy)  # all four, so that an error can be pickled
        self._column: str | None = None  # a column that a table lacks, by which the command line names an option
        self.argument = argument
        self.requirement = requirement
        self.got = got
        self.remedy = remedy

    def __str__(self) -> str:
        actual = f"; got {self.got}" if self.got else ""
        then = f". {self.remedy[0].upper()}{self.remedy[1:]}" if self.remedy else ""
        return f"{self.argument}: {self.requirement}{actual}{then}"


class InputError(ConfideError, ValueError):
    """An argument has a value that cannot be used."""


class InputTypeError(ConfideError, TypeError):
    """An argument has a type that cannot be used."""


class FormatError(InputError):
    """A stored release or a data file is damaged, of another kind, altered or too new."""


class MissingExtraError(ConfideError, ImportError):
    """A call requires an optional package that is not installed; the message names the extra that contains it."""


@contextmanager
def replaced_errors(instead: Callable[[Exception], BaseException | None]) -> Iterator[None]:
    """Replace every error within the block for which `instead` returns another one, and drop the replaced error.

    The texts of errors of libraries can quote values of records. ``raise ... from None`` in a handler would keep the
    replaced error as `__context__`, where logs and debuggers show it.

    Examples
    --------
    >>> with replaced_errors(lambda error: InputError("scores", "must hold real numbers")):
    ...     float("secret 7")
    Traceback (most recent call last):
    confide.errors.InputError: scores: must hold real numbers
    """
    try:
        yield
    except Exception as error:
        replacement = instead(error)
        if replacement is None:
            raise
    else:
        return
    context = replacement.__context__
    try:
        raise replacement
    finally:  # the block's own error is still being handled, and `raise` has attached it
        replacement.__context__ = context


class CoverageWarning(UserWarning):
    """A threshold is +inf, or nearly so: the coverage guarantee holds, but sets or intervals exclude next to nothing.

    The library warns when it makes such a release, and whenever it applies one. A program can silence this class.
    """


class ConfideDeprecationWarning(FutureWarning):
    """Something public is deprecated; the message contains its replacement. Removal takes two minor releases or more.

    A `FutureWarning`, because jobs run the library from modules, where Python shows no `DeprecationWarning`.
    """


class OtherDataError(InputError):
    """A ledger has answered the same request with other records. Nothing was released or charged."""


class EarlierReleaseWarning(UserWarning):
    """A ledger has answered the same request with the same records: its release was returned, and nothing was charged.

    Attributes
    ----------
    charged_at
        The times at which the releases were charged, UTC, ISO 8601, one for each threshold.
    """

    def __init__(self, message: str, charged_at: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.charged_at = charged_at


class ChargedAgainWarning(UserWarning):
    """An earlier run of the same request was charged and ended before its release was stored: both are charged."""


class OtherDataWarning(UserWarning):
    """A silo received a plan again and has other records than for its answer: the old answer was returned."""


class SimilarNameWarning(UserWarning):
    """A data set that is new to a ledger has nearly the name of another one: its people may have two budgets."""


class RetrainedWarning(UserWarning):
    """A fitted estimator is trained again on part of the records, because `prefit` was not given."""


class LedgerError(ConfideError):
    """A ledger cannot be read or written: locked, read-only, on a full disk, damaged or of another kind."""


class BudgetError(LedgerError, ValueError):
    """A release would cost more than the remaining budget of its data set. Nothing was released or charged."""
