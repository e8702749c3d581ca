"""Any table as numbers: texts are encoded, not dropped."""

import numpy as np
import pandas as pd

_NUMERIC = 0.9
"""A column of texts of which so large a share are numbers is one of numbers, with missing values."""
_FEW = 20
"""So few different texts become a column each, more of them one column with their frequencies."""


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
