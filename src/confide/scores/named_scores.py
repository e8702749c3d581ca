"""Arrays of scores that carry their name and classes, so that a release made from them records both."""

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.scores.names import score_kind
from confide.support import Classes, class_count, public_classes


class NamedScores(np.ndarray[Any, np.dtype[np.float64]]):
    """An array of nonconformity scores, float64, shape (n,), that carries the score's name and its classes.

    Slices and copies carry them, too. Arithmetic returns plain arrays, because its results are another score.

    Parameters
    ----------
    score
        The score's name.
    classes
        For classification, the class names or their number; None for regression.
    """

    score: str | None
    classes: Classes | None

    @classmethod
    def of(cls, scores: NDArray[np.float64], score: str | None, classes: Iterable[Any] | int | None = None) -> Self:
        """The same numbers with a name; no copy is made."""
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


def name_of_scores(
    scores: Any, score: str | None, classes: Iterable[Any] | int | None
) -> tuple[str | None, Classes | None]:
    """The name of scores and their classes: those that they carry, or those that are given, which must agree.

    Examples
    --------
    >>> name_of_scores(NamedScores.of(np.array([0.5]), "aps", 3), None, ["a", "b", "c"])
    ('aps', ('a', 'b', 'c'))
    """
    # Scores that carry no name.
    given = None if classes is None else public_classes("classes", classes)
    score_kind(score)  # raises an error for what is no name
    if not isinstance(scores, NamedScores):
        return score, given

    # What they carry and what is given must agree; names of classes state more than their number.
    if score is not None and scores.score is not None and _meaning(score) != _meaning(scores.score):
        raise InputError(
            "score", f"must be left out, or be {scores.score!r}, the name of these scores", got=repr(score)
        )
    carried = scores.classes
    if given is not None and carried is not None and class_count(given) != class_count(carried):
        raise InputError("classes", f"must be the {class_count(carried)} of these scores", got=str(class_count(given)))
    if isinstance(given, tuple) and isinstance(carried, tuple) and sorted(map(str, given)) != sorted(map(str, carried)):
        raise InputError("classes", "must be those of these scores", got="other names")
    name = scores.score if score is None else score
    has_names = isinstance(carried, tuple)  # which say more than a number of classes
    return name, carried if has_names or given is None else given


def _meaning(score: str | None) -> Any:
    """The computed score: names that differ only in how a number is written are equal."""
    kind = score_kind(score)
    return kind.name if kind.family is None else (kind.family, kind.randomised, dict(kind.parameters))
