"""CSV cells that a spreadsheet would run: an apostrophe before them makes them texts.

Columns of the input are kept in the output, so a cell such as `=cmd|...` that a stranger typed would reach whoever
opens it. Numbers, dates, telephone numbers and a single dash stay as they are, and so do
Parquet and Arrow files.
"""

from typing import Any

_RUNS = r"^[=@\t\r]|^[+\-].*[^0-9 .,:()/eE+\-]"
"""What a spreadsheet takes for a formula: a sign counts if anything follows that numbers and dates do not have."""
_NUMBER = r"(?i)^[+\-](inf|infinity|nan)$"


def without_formulas(table: Any) -> Any:
    """A `pyarrow.Table` whose texts, names of columns included, no spreadsheet runs.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = without_formulas(pa.table({"note": ["=1+1", "-1.5e-3", "+49 170", "-", "-A1", "-inf", None]}))
    >>> table["note"].to_pylist()
    ["'=1+1", '-1.5e-3', '+49 170', '-', "'-A1", '-inf', None]
    """
    import re

    import pyarrow as pa
    import pyarrow.compute as pc

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(place)
            runs = pc.match_substring_regex(column, f"(?s){_RUNS}")
            runs = pc.and_not(runs, pc.match_substring_regex(column, _NUMBER))
            if pc.any(runs).as_py():
                marked = pc.binary_join_element_wise(pa.scalar("'", field.type), column, pa.scalar("", field.type))
                table = table.set_column(place, field, pc.if_else(runs, marked, column))
    names = [f"'{name}" if re.match(_RUNS, name, re.DOTALL) else name for name in table.column_names]
    return table if names == table.column_names else table.rename_columns(names)
