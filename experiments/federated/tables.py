"""Any CSV as numbers: texts are encoded, not dropped; a file without a header is recognised."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

_NUMERIC = 0.9
"""A column of texts of which so large a share are numbers is one of numbers, with missing values."""
_FEW = 20
"""So few different texts become a column each, more of them one column with their frequencies."""


def read(path: Path) -> pd.DataFrame:
    """The table; without a header its columns are named 1, 2, ... by place, which is said."""
    table = pd.read_csv(path, low_memory=False)
    if np.mean([_is_number(name) for name in table.columns]) >= 0.5:
        table = pd.read_csv(path, header=None, low_memory=False)
        table.columns = [str(place) for place in range(1, len(table.columns) + 1)]
        sys.stderr.write(f"{path.name} has no header: its columns are called 1 to {len(table.columns)}\n")
    return table


def _is_number(name: str) -> bool:
    """Whether a column's name is a value: pandas numbers those that occur twice, as in 0.12.1."""
    return pd.notna(pd.to_numeric(name, errors="coerce")) or name == "?" or name.startswith("Unnamed")


def column(table: pd.DataFrame, name: str, what: str) -> pd.Series:
    """A column by name; SystemExit with the names that there are."""
    if name not in table:
        raise SystemExit(f"the CSV has no column {name!r} for {what}; its columns are: {_listed(table.columns)}")
    return table[name]


def _listed(names) -> str:
    return ", ".join(map(repr, list(names)[:20])) + (", ..." if len(names) > 20 else "")


def as_numbers(values: pd.Series) -> pd.Series | None:
    """The column as numbers, NaN where there is none; None if it holds texts."""
    numbers = pd.to_numeric(values, errors="coerce")
    return numbers if numbers.notna().sum() >= _NUMERIC * max(values.notna().sum(), 1) else None


def features(table: pd.DataFrame, left_out: list[str]) -> np.ndarray:
    """All other columns as numbers, float64 of shape (rows, columns); numbers that count the rows are left out."""
    made = []
    for name in table.columns:
        if name in left_out or _counts_rows(table[name]):
            continue
        numbers = as_numbers(table[name])
        made += encoded(table[name]) if numbers is None else [numbers.fillna(numbers.median()).to_numpy(np.float64)]
    if not made:
        raise SystemExit(f"the CSV needs another column than {_listed(left_out)}; it has {_listed(table.columns)}")
    return np.column_stack(made)


def _counts_rows(values: pd.Series) -> bool:
    whole = pd.api.types.is_integer_dtype(values)
    return whole and len(values) > 1 and values.nunique() == len(values) == values.max() - values.min() + 1


def encoded(values: pd.Series) -> list[np.ndarray]:
    """Texts as numbers: a column for each if they are few, else how frequent each is; missing ones are a text, too."""
    texts = values.astype("string").fillna("")
    names = sorted(texts.unique())
    if len(names) <= _FEW:
        return [(texts == name).to_numpy(np.float64) for name in names]
    return [texts.map(texts.value_counts(normalize=True)).to_numpy(np.float64)]
