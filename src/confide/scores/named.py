"""Scores that know what they are: which score, and of which classes, so that a release made of them knows it too."""

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.scores.kinds import score_kind
from confide.support import Classes, public_classes


class NamedScores(np.ndarray[Any, np.dtype[np.float64]]):
    """An array of conformity scores, float64, shape (n,), that carries the score's name and its classes.

    Slices and copies are named as well. Arithmetic gives plain arrays, for its results are another score.

    Parameters
    ----------
    score
        The score's name.
    classes
        For classification, the class names or their number; None for regression.

    Examples
    --------
    >>> scores = NamedScores.of(np.array([0.25, 0.5]), "lac", ["cat", "dog"])
    >>> scores, scores[:1].score, scores.classes
    (array([0.25, 0.5 ]), 'lac', ('cat', 'dog'))
    >>> type(1 - scores).__name__
    'ndarray'
    """

    score: str | None
    classes: Classes | None

    @classmethod
    def of(cls, scores: NDArray[np.float64], score: str | None, classes: Iterable[Any] | int | None = None) -> Self:
        """The same numbers, named; no copy is made."""
        named = scores.view(cls)
        named.score = score
        named.classes = None if classes is None else public_classes("classes", classes)
        return named

    def __array_finalize__(self, source: Any) -> None:
        self.score = getattr(source, "score", None)
        self.classes = getattr(source, "classes", None)

    def __array_ufunc__(self, ufunc: np.ufunc, method: Any, *inputs: Any, **options: Any) -> Any:
        if "out" in options:
            options["out"] = tuple(map(_plain, options["out"]))
        return getattr(ufunc, method)(*map(_plain, inputs), **options)

    def __repr__(self) -> str:
        return repr(_plain(self))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return type(self).of, (_plain(self), self.score, self.classes)


def _plain(array: Any) -> Any:
    return array.view(np.ndarray) if isinstance(array, NamedScores) else array


def named_by(scores: Any, score: str | None, classes: Iterable[Any] | int | None) -> tuple[str | None, Classes | None]:
    """The name of scores and their classes: what they carry, or what is said of them.

    Raises
    ------
    InputError
        If the scores carry another name, or other classes, than is said.

    Examples
    --------
    >>> named_by(NamedScores.of(np.array([0.5]), "aps", 3), None, ["a", "b", "c"])
    ('aps', ('a', 'b', 'c'))
    """
    said = None if classes is None else public_classes("classes", classes)
    score_kind(score)
    if not isinstance(scores, NamedScores):
        return score, said
    if None not in (score, scores.score) and _meaning(score) != _meaning(scores.score):
        raise InputError(f"score must be left out or be {scores.score!r}, which these scores are; found {score!r}")
    known = scores.classes
    if said is not None and known is not None and _count(said) != _count(known):
        raise InputError(f"classes must be the {_count(known)} that these scores are of; found {_count(said)}")
    if isinstance(said, tuple) and isinstance(known, tuple) and sorted(map(str, said)) != sorted(map(str, known)):
        raise InputError("classes must be those that these scores are of; found other names")
    return scores.score if score is None else score, known if isinstance(known, tuple) or said is None else said


def _count(classes: Classes) -> int:
    return classes if isinstance(classes, int) else len(classes)


def _meaning(score: str | None) -> Any:
    """What is computed: names that differ in how a number is written are one."""
    kind = score_kind(score)
    return kind.name if kind.family is None else (kind.family, kind.randomised, dict(kind.parameters))
