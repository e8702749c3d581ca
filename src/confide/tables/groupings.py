"""Groups that follow from the values of a column by a registered function, such as `weekday(date)`."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from confide.errors import InputError

_CALL = re.compile(r"(\w+)\((.+)\)", re.DOTALL)


@dataclass(frozen=True)
class Grouping:
    """A function of values, by its name."""

    name: str
    function: Callable[[Any], Any]

    def names(self, values: Any) -> Any:
        """The group of each value of an Arrow array, texts or integers, null where there is no value or no group.

        The function is called with the distinct values, so that no group can depend on how often a value occurs.
        """
        import pyarrow as pa

        held = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        encoded = held if pa.types.is_dictionary(held.type) else held.dictionary_encode()
        distinct = encoded.dictionary.to_numpy(zero_copy_only=False)
        try:
            found = np.asarray(self.function(distinct)) if len(distinct) else np.array([], np.str_)
            names = pa.array(found.tolist(), None if len(found) else pa.string())
        except Exception as error:  # whose text may quote a value
            raise InputError("name", f"{self.name!r} failed: {type(error).__name__}") from None
        if found.shape != distinct.shape:
            raise InputError("name", f"{self.name!r} must return an array with a name for each value")
        return names.take(encoded.indices)


_REGISTERED: dict[str, Grouping] = {}


def register_grouping(name: str, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a function of a column's values available as groups, wherever `by` names a column of a table.

    `by="name(column)"` then groups the records of `calibrate_table`, `recalibrate_table`, `evaluate_table`,
    `predict_table` and of the command line (`--by`). A package registers one for every process, the command line's
    among them, by an entry point of the group `confide.groupings`.

    Parameters
    ----------
    name
        An identifier; a later function of the same name replaces the earlier one.
    function
        From an array of values, shape (k,), to the name of the group of each: texts or integers, and None for no group.
        Dates are `datetime64`, texts objects. The group of a record must follow from its own value alone; it is what
        makes groups disjoint, and with them the privacy statement true. Missing values are not handed over. Spark sends
        a function to its executors by its name if they can import it, and a lambda as it is.

    Returns
    -------
    The function, for arrays: `calibrate_groups(scores, function(values), names, ...)`.

    Raises
    ------
    InputError
        If the name is no identifier.

    Examples
    --------
    >>> import confide, pyarrow, numpy as np
    >>> from confide.tables import Scored, calibrate_table
    >>> decade = confide.register_grouping("decade", lambda years: years // 10 * 10)
    >>> table = pyarrow.table({"s": np.linspace(0, 1, 2000), "year": [1987, 1994] * 1000})
    >>> list(calibrate_table(table, Scored("s", "lac"), 0.1, 1.0, by="decade(year)", groups=[1980, 1990]).parts)
    ['1980', '1990']
    """
    if not name.isidentifier():
        raise InputError("name", "must be an identifier, such as weekday", got=repr(name))
    _REGISTERED[name] = Grouping(name, function)
    return function


def grouping_of(by: str) -> tuple[Grouping, str] | None:
    """The registered grouping and the column that a text such as `weekday(date)` names; None if it names none."""
    call = _CALL.fullmatch(by) if isinstance(by, str) else None
    if call is None:
        return None
    name, column = call.groups()
    if name not in _REGISTERED:
        for installed in entry_points(group="confide.groupings", name=name):
            register_grouping(name, installed.load())
    return (_REGISTERED[name], column) if name in _REGISTERED else None
