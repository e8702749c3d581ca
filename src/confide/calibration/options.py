"""Which arguments the kin of `calibrate` take besides their own: a call that is misspelled is told so by its name."""

from collections.abc import Iterable

from confide.errors import InputError
from confide.planning import OPTIONS

OF_CALIBRATE = frozenset(OPTIONS - {"alpha", "candidates", "epsilon", "n", "population"}) | frozenset(
    {"about", "again", "class_weights", "classes", "dataset", "labels", "ledger", "weight_bound", "weights"}
)
"""The arguments of `calibrate` that its kin pass on. Not `score`, `candidates` and `unit`, which are their own."""


def check_options(function: str, options: Iterable[str], own: Iterable[str] = ()) -> None:
    """Refuse arguments that a call does not take; `own` are those that it takes besides.

    Raises
    ------
    InputError
        If there are others.

    Examples
    --------
    >>> check_options("calibrate_levels", ["delta", "ledger"])
    >>> check_options("calibrate_levels", ["n"])
    Traceback (most recent call last):
        ...
    confide.errors.InputError: options of calibrate_levels must be those of calibrate; found n, which is the number...
    """
    if unknown := sorted(set(options) - OF_CALIBRATE - set(own)):
        hint = ", which is the number of records that are given: leave it out" if "n" in unknown else ""
        raise InputError(f"options of {function} must be those of calibrate; found {', '.join(unknown)}{hint}")
