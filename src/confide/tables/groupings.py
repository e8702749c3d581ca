"""Groups computed from the values of a column by a registered function, such as `weekday(date)`."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from confide.errors import InputError, replaced_errors

_CALL = re.compile(r"(\w+)\((.+)\)", re.DOTALL)


@dataclass(frozen=True)
class Grouping:
    """A registered function of values, with its name."""

    name: str
    function: Callable[[Any], Any]

    def names(self, values: Any) -> Any:
        """The group of each value of an Arrow array, texts or integers; null if there is no value or no group.

        The function is called with the distinct values, so that a group cannot depend on how often a value occurs.
        """
        import pyarrow as pa

        held = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        encoded = held if pa.types.is_dictionary(held.type) else held.dictionary_encode()
        distinct = encoded.dictionary.to_numpy(zero_copy_only=False)
        with replaced_errors(lambda error: InputError("name", f"{self.name!r} failed: {type(error).__name__}")):
            found = np.asarray(self.function(distinct)) if len(distinct) else np.array([], np.str_)
            names = pa.array(found.tolist(), None if len(found) else pa.string())
        if found.shape != distinct.shape:
            raise InputError("name", f"{self.name!r} must return an array with a name for each value")
        return names.take(encoded.indices)


_REGISTERED: dict[str, Grouping] = {}


def register_grouping(name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Register a function of a column's values that defines groups, for every `by` that names a column of a table.

    `by="name(column)"` then groups the records of `calibrate_table`, `recalibrate_table`, `evaluate_table`,
    `predict_table` and of the command line (`--by`). A package registers a function for every process, including the
    command line, by an entry point of the group `confide.groupings`.

    Parameters
    ----------
    name
        An identifier. A later function of the same name replaces the earlier one.
    function
        A function from an array of values, shape (k,), to the group names: texts or integers, and None for no group.
        Dates are `datetime64`, texts are objects; all cells of CSV are texts. The group of a record must depend on its
        own value only. This makes groups disjoint, which the privacy statement requires. Missing values are not passed
        to the function. Spark imports a function on its executors by its name if possible; a lambda is sent as it is.

    Returns
    -------
    The function, for use with arrays: `calibrate_groups(scores, function(values), names, ...)`.

    Raises
    ------
    InputError
        If the name is not an identifier.

    Examples
    --------
    >>> import confide, pyarrow, numpy as np
    >>> from confide.tables import ScoreColumn, calibrate_table
    >>> decade = confide.register_grouping("decade", lambda years: years // 10 * 10)
    >>> table = pyarrow.table({"s": np.linspace(0, 1, 2000), "year": [1987, 1994] * 1000})
    >>> list(calibrate_table(table, ScoreColumn("s", "lac"), 0.1, 1.0, by="decade(year)", groups=[1980, 1990]).parts)
    ['1980', '1990']
    """
    if not name.isidentifier():
        raise InputError("name", "must be an identifier, such as weekday", got=repr(name))
    _REGISTERED[name] = Grouping(name, function)
    return function


def grouping_of(by: str) -> tuple[Grouping, str] | None:
    """The registered grouping and the column in a text such as `weekday(date)`; None for other texts."""
    call = _CALL.fullmatch(by) if isinstance(by, str) else None
    if call is None:
        return None
    name, column = call.groups()
    if name not in _REGISTERED:
        for installed in entry_points(group="confide.groupings", name=name):
            register_grouping(name, installed.load())
    return (_REGISTERED[name], column) if name in _REGISTERED else None
