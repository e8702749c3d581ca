"""Rows that cannot be used, counted by the engine: how many, and why. Never what they hold."""

from collections.abc import Mapping
from enum import IntEnum

from confide.errors import InputError
from confide.scores.kinds import ScoreKind


class Finding(IntEnum):
    """Why a row has no score. Where several hold, the largest is reported."""

    MISSING = 1
    OUTSIDE = 2
    LABEL = 3
    LENGTH = 4
    GROUP = 5
    PERSON = 6
    TIE = 7


def refuse(found: Mapping[Finding, int], kind: ScoreKind, *, first: int | None = None) -> None:
    """Raise if rows were found that cannot be used; `first` is the first of them, where rows have an order.

    Examples
    --------
    >>> from confide.scores.kinds import score_kind
    >>> refuse({Finding.MISSING: 2}, score_kind("lac"))
    Traceback (most recent call last):
    confide.errors.InputError: every row must have a usable score; found 2 rows whose score is missing or NaN; correct
    them where they are computed
    """
    wrong = {finding: count for finding, count in found.items() if count}
    if not wrong:
        return
    words = {
        Finding.MISSING: "whose score is missing or NaN",
        Finding.OUTSIDE: f"whose score is not a number {kind.range_text}",
        Finding.LABEL: "whose label is none of the classes",
        Finding.LENGTH: "whose list of probabilities has another length",
        Finding.GROUP: "whose group is none of the names",
        Finding.PERSON: "that name no person",
        Finding.TIE: "that their person's order does not tell apart",
    }
    parts = [f"{count} {'row' if count == 1 else 'rows'} {words[finding]}" for finding, count in sorted(wrong.items())]
    where = "" if first is None else f", the first is row {first} (rows count from 0)"
    raise InputError(
        f"every row must have a usable score; found {', '.join(parts)}{where}; correct them where they are computed"
    )
