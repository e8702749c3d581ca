"""Numbers that are allowed, and that are mostly typed by mistake: what a reader of another library would mean by them.

Every front says the same of them, before anything is drawn: they are read off the request, never off the records.
"""

from fractions import Fraction

_SMALL_DELTA = 0.001


def unusual(alpha: Fraction | None, delta: float | None = None) -> tuple[str, ...]:
    """What is to be said of a level (None where it is of no coverage) and a failure probability; empty if nothing is.

    Examples
    --------
    >>> unusual(Fraction(1, 10), 0.05)
    ()
    >>> unusual(Fraction(9, 10))
    ('alpha=0.9 is the share of new records that may be missed: coverage of only 0.1 is promised. For coverage of ...',)
    """
    found = []
    if alpha is not None and alpha > Fraction(1, 2):
        kept = 1 - alpha
        found.append(
            f"alpha={float(alpha):g} is the share of new records that may be missed: coverage of only "
            f"{float(kept):g} is promised. For coverage of {float(alpha):g} write alpha={float(kept):g}"
        )
    if delta is not None and delta < _SMALL_DELTA:
        found.append(
            f"delta={delta:g} is the chance that this calibration covers less than promised. It is not the delta of "
            "differential privacy, which is 0 here. Common values are 0.05 and 0.1; smaller ones make sets larger"
        )
    return tuple(found)
