"""`confide evaluate --epsilon`: what is asked, and what is told of a private evaluation."""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import click

from confide.cli import options as o
from confide.cli.budget import LedgerOptions
from confide.cli.evaluated import shortfall_fields, shortfall_notes
from confide.cli.output import emit, say, say_left_out, warn
from confide.cli.receipt import Receipt
from confide.cli.schedule import scheduled
from confide.errors import EarlierReleaseWarning
from confide.evaluation import PARTS, Asking, PrivateEvaluation
from confide.mechanisms import NEIGHBORS
from confide.tables import People

_TOTAL = "none"


@dataclass(frozen=True)
class PrivateOptions:
    """What a private evaluation may cost, and what it is about; without --epsilon none of them."""

    epsilon: Annotated[
        float | None,
        o.privacy("NUMBER", "Evaluate privately, at this loss: counts with noise, which may be published."),
    ] = None
    neighbors: Annotated[
        str | None,
        o.privacy(
            "RELATION",
            "add_remove (default): the number of records stays secret. replace_one: it is public.",
            click_type=click.Choice(NEIGHBORS),
        ),
    ] = None
    records_per_person: Annotated[int | None, o.privacy("K", "The most records of one person (public).")] = None
    n: Annotated[
        int | None, o.privacy("N", "The public number of records under replace_one; databases need it with --ledger.")
    ] = None
    confidence: Annotated[
        str | None, o.privacy("LEVEL", "Probability that all intervals hold at once (default: 0.95).")
    ] = None
    groups: Annotated[
        str | None,
        o.grouping("A,B,C", "With --epsilon and --by: all groups, a public list, not taken from the records."),
    ] = None
    parts: Annotated[
        str | None,
        o.grouping(
            "KIND[,KIND]",
            f"Of sets: {' and '.join(PARTS)} (default: both), or {_TOTAL}, for the total alone.",
        ),
    ] = None
    width_bins: Annotated[
        str | None,
        o.grouping("NUMBER,...", "With --epsilon, of intervals: public widths between which they are counted."),
    ] = None

    def scheduled(self, file: Path | None, people: People | None) -> "PrivateOptions":
        """The same with what a schedule says of an evaluation, if one is given.

        Raises
        ------
        InputError
            If an option says something else, or more records of each person are kept than it says.
        """
        given = {name: getattr(self, name) for name in ("epsilon", "neighbors", "records_per_person")}
        return replace(self, **scheduled(file, "evaluation", given, people))

    def asking(self, people: People | None, account: Mapping[str, Any]) -> Asking | None:
        """What is asked privately; None without --epsilon, with which alone the others are allowed."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        if self.epsilon is None:
            others = [*given, *(["person"] if people is not None else []), *(["ledger"] if account else [])]
            if others:
                raise click.UsageError(f"--{others[0].replace('_', '-')} needs --epsilon: a private evaluation")
            return None
        if (groups := given.pop("groups", None)) is not None:
            given["group_names"] = tuple(o.split(groups))
        if (parts := given.pop("parts", None)) is not None:
            given["parts"] = () if parts == _TOTAL else tuple(o.split(parts))
        if (bins := given.pop("width_bins", None)) is not None:
            given["width_bins"] = _numbers(bins)
        return Asking(**given, **account)


def account_of(budget: LedgerOptions, file: str, epsilon: float | None) -> dict[str, Any]:
    """The ledger and the data set that pay, which only a private evaluation needs."""
    if epsilon is None and budget != LedgerOptions():
        raise click.UsageError("--ledger and its options need --epsilon: a private evaluation")
    return budget.account(file)


def tell(
    found: PrivateEvaluation,
    caught: list[warnings.WarningMessage],
    out: object,
    left_out: Mapping[str, Any],
    receipt: Receipt,
    *,
    as_json: bool,
) -> None:
    """Print a private evaluation: for people, or as one JSON document."""
    earlier = [one.message for one in caught if isinstance(one.message, EarlierReleaseWarning)]
    notes = [str(one.message) for one in caught if one.message not in earlier]
    notes += shortfall_notes(found) if as_json else []
    for note in dict.fromkeys(notes):
        warn(note)
    if as_json:
        made = [time for one in earlier for time in one.made]
        short = {"shortfalls": shortfall_fields(found), "earlier": made, "warnings": notes}
        emit({**json.loads(found.to_json()), **short, **receipt.fields(), **left_out})
        return
    for one in earlier:
        say(str(one))
    say(str(found))
    say_left_out(left_out)
    say(receipt.text())
    if out is not None:
        say(f"saved: {out}")
    say("These numbers are private: they may be published.")


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, o.split(text)))
    except ValueError:
        raise click.UsageError("--width-bins must be numbers between commas, such as 1,2,5") from None
