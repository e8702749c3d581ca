"""Text for people: numbers, and aligned columns for screens."""

import math
from collections.abc import Sequence
from decimal import Decimal

from confide.support.foreign_text import one_line


def decimal_text(value: float, digits: int = 4) -> str:
    """A number with a few significant digits, and without an exponent unless it is astronomical.

    Examples
    --------
    >>> decimal_text(1e6), decimal_text(1e-6), decimal_text(0.123456)
    ('1,000,000', '0.000001', '0.1235')
    """
    text = f"{value:.{digits}g}"
    return text if math.isinf(value) or not 1e-15 < abs(value) < 1e15 else f"{Decimal(text):,f}"


def aligned(rows: Sequence[tuple[str, str]]) -> str:
    """Two aligned columns, one line for each row, whatever its cells hold.

    Examples
    --------
    >>> print(aligned([("alpha", "0.1"), ("epsilon", "1")]))
      alpha    0.1
      epsilon  1
    """
    cells = [(one_line(name), one_line(value)) for name, value in rows]
    width = max(len(name) for name, _ in cells)
    return "\n".join(f"  {name:<{width}}  {value}".rstrip() for name, value in cells)
