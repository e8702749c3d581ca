"""The random numbers of records: for randomised scores, for risk control, for splitting records.

They must be independent of the data, and a record's number must not depend on which other records exist. Then
neighbouring data sets share the numbers of their common records, and differ in one score. New random numbers satisfy
this: without any one record, the numbers of the others have the same distribution. Numbers of a seeded generator do
not, because they are assigned by position. Removing a record would shift the numbers of all later records, and the
privacy loss would not be the stated one.
"""

import os
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays.checked import as_vector
from confide.errors import InputTypeError
from confide.support import raise_for_rows, require


class ExperimentalUniforms:
    """Reproducible random numbers, **for experiments on public data only**: the privacy statement does not hold.

    Every use draws the next numbers, in the order of the records.

    Parameters
    ----------
    seed
        A seed for `numpy.random.default_rng`: an integer, or a Generator.

    Examples
    --------
    >>> first, second = ExperimentalUniforms(0), ExperimentalUniforms(0)
    >>> bool((first.draw(3) == second.draw(3)).all())
    True
    """

    def __init__(self, seed: "int | np.random.Generator") -> None:
        self._generator = np.random.default_rng(seed)

    def draw(self, n: int) -> NDArray[np.float64]:
        """The next n numbers in [0, 1), float64, shape (n,)."""
        return self._generator.random(n)


# None draws new numbers; an array has one number in [0, 1] per record, fixed to the record and not to its position.
Uniforms: TypeAlias = ArrayLike | ExperimentalUniforms | None


def fresh_uniforms(n: int) -> NDArray[np.float64]:
    """Unpredictable numbers in [0, 1) from the operating system, which cannot be drawn again; float64, shape (n,).

    Examples
    --------
    >>> numbers = fresh_uniforms(1000)
    >>> bool(0 <= numbers.min() and numbers.max() < 1 and 0.3 < numbers.mean() < 0.7)
    True
    """
    bits = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def as_uniforms(name: str, u: Uniforms, n: int, needed: bool) -> NDArray[np.float64]:
    """Random numbers in [0, 1], one per record, shape (n,): new ones by default; ones if the score uses none."""
    if not needed:
        require(name, u is None, "must be left out: the score is not randomised", remedy="aps, raps and saps are")
        return np.ones(n)
    if u is None:
        return fresh_uniforms(n)
    if isinstance(u, ExperimentalUniforms):
        return u.draw(n)
    refuse_generator(name, u)
    values = as_vector(name, u, empty=True).astype(np.float64)
    require(name, len(values) == n, "must have one entry per record", f"{len(values)} for {n} records")
    raise_for_rows(name, ~((values >= 0) & (values <= 1)), "must lie in [0, 1]", "outside")
    return values


def refuse_generator(name: str, u: object) -> None:
    """Reject generators that assign numbers by position: those of numpy and torch, `random.Random`, functions."""
    if callable(u) or hasattr(u, "random") or hasattr(u, "manual_seed"):
        got = (
            f"{type(u).__name__}, which ties numbers to positions: removing a record would change those of the others, "
            f"and the privacy loss would not be the stated one. Leave {name} out for fresh numbers"
        )
        remedy = "For experiments pass confide.ExperimentalUniforms(seed)"
        raise InputTypeError(name, "must be left out, or hold one number per record", got, remedy)
