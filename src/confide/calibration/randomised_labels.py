"""The tool of whoever keeps true labels: each is randomised on its own, before anybody else sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_array, as_labels, class_names
from confide.errors import InputError
from confide.mechanisms import PrivacyStatement
from confide.releases import LabelStatement, read_label_epsilon
from confide.selection import check_sampler, randomised_response
from confide.support import (
    Shown,
    canonical,
    check_versions,
    library_versions,
    positive_integer,
    public_classes,
    several,
    tell,
)

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger

MECHANISM = "labelling by randomised-response"


@dataclass(frozen=True, eq=False, repr=False)
class RandomisedLabels(Shown):
    """Labels that may leave, and what is to be stated of them. An array of them is `labels`, or `numpy.asarray(self)`.

    Parameters
    ----------
    labels
        Shape (n,): class names, or positions from 0 where only the number of classes was given.
    statement
        The loss, the classes, and how many labels there are: all public.
    """

    labels: NDArray[Any]
    statement: LabelStatement

    @property
    def epsilon(self) -> float:
        """The loss of one label."""
        return self.statement.epsilon

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.labels, dtype=dtype) if copy or dtype is not None else self.labels

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels.tolist())

    def __str__(self) -> str:
        return str(self.statement)

    def _brief(self) -> str:
        return f"n {len(self)}, classes {self.statement.width}, epsilon {self.epsilon:g} of each label"


def randomise_labels(
    labels: ArrayLike,
    classes: Sequence[object] | int,
    epsilon: float,
    *,
    ledger: Ledger | None = None,
    dataset: str | Dataset | None = None,
    again: bool = False,
) -> RandomisedLabels:
    """Randomise labels one by one: K-ary randomised response, drawn by OpenDP's secure sampler, never seeded.

    With probability e^epsilon/(e^epsilon + K - 1) a label stays, and else it becomes one of the other K - 1 classes,
    all alike. Whatever is computed from the result costs nothing more: any number of calibrations, scores, levels. Two
    calls cost the sum of their epsilons, for each label.

    Parameters
    ----------
    labels
        The true labels, shape (n,): class names, or integers from 0 to K-1 where `classes` is the number K.
    classes
        All K class names, a public list that is not taken from the labels; or their number; at least two.
    epsilon
        Loss of each label, between 1e-6 and 30. It is that of replacing one label; features are not protected, nor
        that there is such a record.
    ledger, dataset
        A `confide.Ledger`, and the name under which it keeps the budget of these labels: epsilon is charged durably
        under `replace_one`, before a label is drawn. The same request about the same labels returns the labels that
        were drawn then, and costs nothing.
    again
        Draw anew, and charge it, although the ledger has answered an identical request.

    Returns
    -------
    RandomisedLabels
        The labels, and their public statement.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used; no label is quoted.
    OtherDataError, BudgetError, LedgerError
        As in `confide.calibrate`.

    Examples
    --------
    >>> noisy = randomise_labels(["no", "yes", "no"], ["no", "yes"], epsilon=1.0)
    >>> len(noisy), set(noisy) <= {"no", "yes"}
    (3, True)
    >>> noisy
    RandomisedLabels(n 3, classes 2, epsilon 1 of each label)
    """
    names, k = _classes(classes)
    array = as_array("labels", labels)
    positions = as_labels("labels", labels, array.shape[0] if array.ndim == 1 else 0, k, names)
    if not len(positions):
        raise InputError("labels must have at least one entry; found none")
    public = k if names is None else public_classes("classes", names)
    statement = LabelStatement(read_label_epsilon("epsilon", epsilon), public, len(positions), library_versions())
    check_sampler()

    def draw(seen: NDArray[np.int64]) -> NDArray[np.int64]:
        return randomised_response(seen, k, statement.epsilon)

    if ledger is None and dataset is None:
        drawn = draw(positions)
    else:
        from confide.ledger import make_payment, pay

        spent = PrivacyStatement("replace_one", statement.epsilon, 1, None, statement.epsilon, None)
        named = k if names is None else [canonical(name) for name in names]  # type: ignore[arg-type]
        asked = {"kind": "labelling", "epsilon": statement.epsilon, "classes": named, "n": statement.n}
        payment = make_payment(spent, MECHANISM, asked, ledger, dataset, again=again)
        text = pay(
            payment,
            lambda: positions,
            lambda seen: seen.tobytes(),
            lambda seen: json.dumps([draw(seen).tolist(), dict(statement.versions)], separators=(",", ":")),
        )
        drawn, versions = _kept(text)
        statement = replace(statement, versions=versions)
    tell("labels", "randomised", n=statement.n, classes=k, epsilon=statement.epsilon)
    return RandomisedLabels(drawn if names is None else _named(names, drawn), statement)


def _kept(text: str) -> tuple[NDArray[np.int64], dict[str, str]]:
    """The positions that a ledger keeps and the versions that drew them; of older ledgers the positions alone."""
    kept = json.loads(text)
    drawn, versions = kept if len(kept) == 2 and isinstance(kept[1], dict) else (kept, {})
    return np.array(drawn, dtype=np.int64), check_versions("ledger's answer", versions)


def _classes(classes: Sequence[object] | int) -> tuple[tuple[object, ...] | None, int]:
    """The class names, or None where only their number is given, and the number."""
    if isinstance(classes, int | np.integer) and not isinstance(classes, bool):
        names, k = None, positive_integer("classes", int(classes))
    else:
        listed = several("classes", classes)
        names, k = class_names(listed, len(listed)), len(listed)
        if public_classes("classes", listed) == k:  # names that only count
            names = None if names == tuple(range(k)) else names
    if k < 2:
        raise InputError("classes must be at least two: with one there is nothing to hide; found 1")
    return names, k


def _named(names: tuple[object, ...], positions: NDArray[np.int64]) -> NDArray[Any]:
    """The names at these positions, as an array of their own type."""
    return np.asarray(names if len({type(name) for name in names}) == 1 else np.array(names, dtype=object))[positions]
