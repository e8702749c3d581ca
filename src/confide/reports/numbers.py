"""Numbers for people: shares in per cent, figures, and how many of a hundred."""

import math


def percent(level: float) -> str:
    r"""A share in per cent, without needless digits, with a space that does not break.

    Examples
    --------
    >>> percent(0.9), percent(0.999), percent(0.0712345)
    ('90\xa0%', '99.9\xa0%', '7.1235\xa0%')
    """
    return f"{100 * level:.4f}".rstrip("0").rstrip(".") + "\u00a0%"


def number(value: float) -> str:
    """A number for people: five significant digits, +inf in words of mathematics.

    Examples
    --------
    >>> number(0.912345678), number(float("inf"))
    ('0.91235', '+∞')
    """
    if math.isinf(value):
        return "+∞" if value > 0 else "−∞"
    return f"{value:.5g}".replace("-", "−")


def dots(coverage: float) -> int | None:
    """How many of a hundred dots are covered; None where a hundred are too few to show the level."""
    whole = math.floor(100 * coverage + 1e-9)
    return whole if abs(100 * coverage - whole) < 1e-6 and 0 < whole < 100 else None
