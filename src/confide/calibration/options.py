"""The options that every call of the `calibrate` family takes, typed once."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from confide.calibration.prepared import Payer
from confide.calibration.request import By
from confide.errors import InputError
from confide.planning import COMBINATIONS, Choices
from confide.support import refuse_unknown

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


class Options(Choices, total=False):
    """What `calibrate` and its kin may be asked besides; `confide.calibrate` and `confide.plan` tell what they mean."""

    about: Mapping[str, str] | None
    unit: float | None
    ledger: "Ledger | None"
    dataset: "str | Dataset | None"
    partition: str | None
    again: bool


_PAYERS = ("ledger", "dataset", "partition", "again")
_WEIGHTS = ("class_weights", "labels", "weights", "weight_bound")
_WEIGHTED = "weights are for `calibrate` and tables, which see every record; counts that are weighted take population"
_NUMBER = "the number of records is that of those which are given"


def split_options(
    function: str, options: Mapping[str, Any], *own: str, by: By | None = None
) -> tuple[Payer, dict[str, Any]]:
    """Who pays, and the other options, as fields of a `Request`; `own` are those that a call takes besides.

    Raises
    ------
    InputTypeError
        If a call does not take an option; InputError, if it would be weights of something with several thresholds.

    Examples
    --------
    >>> split_options("calibrate", {"delta": 0.1, "dataset": "clinic"})[1]
    {'delta': 0.1}
    """
    for name in _WEIGHTS:
        if name in options and (why := _why_not(by)) is not None:
            raise InputError(f"{name} must be left out {why}")
    known = (*Options.__optional_keys__, *own)
    hints = {"n": _NUMBER} | dict.fromkeys(_WEIGHTS, _WEIGHTED)
    refuse_unknown(function, options, [name for name in known if name != "partition" or name in own], hints)
    payer = Payer(**{name: options[name] for name in _PAYERS if name in options})
    return payer, {name: value for name, value in options.items() if name not in _PAYERS}


def _why_not(by: By | None) -> str | None:
    """Why there are no weights with several thresholds, as the table of combinations says it."""
    rows = (one for one in COMBINATIONS if one.given == "by" and by in one.values and "population" in one.others)
    return next((one.because for one in rows), None)
