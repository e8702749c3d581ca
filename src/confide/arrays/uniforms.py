"""The random numbers that belong to records: for randomised scores, for risk control, for splitting records.

They have to be independent of the data, and no record's number may depend on which other records there are: then
neighbouring data sets share the numbers of their common records, and differ in one score. Fresh numbers are like that:
whichever record is left out, the others' have the same law. Numbers of a seeded generator are not, because it deals
them out by position: a removed record moves those of all that follow, and the privacy loss is not the stated one.
"""

import os
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays.checked import as_vector
from confide.errors import InputError, InputTypeError
from confide.support import refuse_marked


class ExperimentalUniforms:
    """Numbers that can be drawn again, **for experiments on public data only**: the privacy statement does not hold.

    Every use draws the next ones, in the order of the records.

    Parameters
    ----------
    seed
        Whatever `numpy.random.default_rng` takes: an integer, or a Generator.

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


Uniforms: TypeAlias = ArrayLike | ExperimentalUniforms | None
"""None draws fresh numbers; an array holds one per record, in [0, 1], that belongs to the record, not to its place."""


def fresh_uniforms(n: int) -> NDArray[np.float64]:
    """Numbers in [0, 1) that nobody can foresee or draw again, float64, shape (n,): the operating system's.

    Examples
    --------
    >>> numbers = fresh_uniforms(1000)
    >>> bool(0 <= numbers.min() and numbers.max() < 1 and 0.3 < numbers.mean() < 0.7)
    True
    """
    bits = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def as_uniforms(name: str, u: Uniforms, n: int, needed: bool) -> NDArray[np.float64]:
    """Random numbers in [0, 1], one per record, shape (n,): fresh ones by default, ones where the score uses none."""
    if not needed:
        if u is not None:
            raise InputError(f"{name} must be left out: the score is not randomised; name the randomised one to use it")
        return np.ones(n)
    if u is None:
        return fresh_uniforms(n)
    if isinstance(u, ExperimentalUniforms):
        return u.draw(n)
    refuse_generator(name, u)
    values = as_vector(name, u, empty=True).astype(np.float64)
    if len(values) != n:
        raise InputError(f"{name} must have one entry per record; found {len(values)} for {n} records")
    refuse_marked(~((values >= 0) & (values <= 1)), f"{name} must lie in [0, 1]", "outside")
    return values


def refuse_generator(name: str, u: object) -> None:
    """Refuse whatever deals out numbers by position: numpy's and torch's generators, `random.Random`, functions."""
    if callable(u) or hasattr(u, "random") or hasattr(u, "manual_seed"):
        raise InputTypeError(
            f"{name} must be left out, or hold one number per record; found {type(u).__name__}, which ties numbers to "
            "positions: removing a record would change those of the others, and the privacy loss would not be the "
            f"stated one. Leave {name} out for fresh numbers; for experiments pass confide.ExperimentalUniforms(seed)"
        )
