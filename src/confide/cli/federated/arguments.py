"""What several commands of `confide federated` are given: keys, plans, a silo's budget and its records."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from confide.candidates import Candidates
from confide.cli import options as o
from confide.cli.columns import Columns
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.federated import RECORDS, Refusal, Silo, SiloLedger
from confide.ledger import file_of
from confide.mechanisms import practically_none
from confide.releases import class_list, names_among
from confide.support import Classes, Kind, Name, kind_of, read_text
from confide.tables import Classified, Losses, Regressed, What, class_histograms, group_histograms, score_histogram

Budget = Annotated[
    float, typer.Option(help="Privacy loss that all releases about these records together may cost.", min=0)
]
SiloLedgerPlace = Annotated[
    str,
    typer.Option(
        metavar="LEDGER",
        help="This silo's budget ledger: a file, made if new, or postgresql://ROLE@HOST/DB. Keep it.",
    ),
]
NamedLedger = Annotated[
    str | None,
    typer.Option(
        metavar="LEDGER",
        help="Name this silo's budget ledger (made if new) in the public file: copies of the keys need it, too.",
    ),
]
Keys = Annotated[Path, typer.Option(metavar="FILE", help="Private keys, written by keygen.")]
PlanFile = Annotated[Path, typer.Option(metavar="FILE", help="The signed plan.")]


@dataclass(frozen=True)
class SiloRecords:
    """Where it is kept what a silo's records have paid."""

    ledger: SiloLedgerPlace
    dataset: Annotated[str, typer.Option(help="The name of these records in the ledger.")] = RECORDS

    @property
    def file(self) -> Path | None:
        """The ledger, if it is a file."""
        return file_of(self.ledger)

    def open(self) -> SiloLedger:
        """The ledger, for these records."""
        return SiloLedger(self.ledger, self.dataset)

    def spent(self, budget: float) -> str:
        """What these records have cost until now, in words, of what they may."""
        spent = self.open().spent
        if math.isinf(spent):
            return f"spent so far: +inf, for an answer was not private; the budget was {budget:g}"
        weak = practically_none(spent)
        return f"spent so far: {spent:.6g} of {budget:g}{f', {weak}' if weak else ''}"


def read_messages(paths: Sequence[Path], kind: Kind, *, drop_refused: bool = False) -> list[str]:
    """The messages in files.

    Raises
    ------
    Refusal
        If a file is of another kind that is known, unless such files are to be dropped by whoever reads the texts.
    """
    for path in paths:
        if not drop_refused and (found := kind_of(path)) not in (kind, Kind.OTHER):
            raise Refusal("malformed", f"file {str(path)!r} is {found}, not {kind}; leave it out")
    return [read_text(path) for path in paths]


def identity_of(ledger: str | None) -> str | None:
    """What a public file says of a ledger."""
    return None if ledger is None else SiloLedger(ledger).identity


def read_silo(path: Path) -> Silo:
    """A public file of a silo or of the coordinator."""
    try:
        return Silo.from_json(read_text(path))
    except Refusal as refusal:
        raise InputError(f"file {str(path)!r} cannot be used: {refusal}") from None


def public_files(paths: Sequence[Path]) -> list[Path]:
    """The files that are named, and the public files of silos in the folders that are named; others there are not read.

    Raises
    ------
    InputError
        If a folder holds no public file.
    """
    found = []
    for path in paths:
        inside = sorted(one for one in path.iterdir() if kind_of(one) is Kind.SILO) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"folder {str(path)!r} holds no public file of a silo; keygen writes one")
        found += inside
    return found


def read_named(paths: Sequence[Path]) -> list[Silo]:
    """The public files in files and folders, one silo a name; another copy of the same file is the same silo."""
    found: dict[str, tuple[Path, Silo]] = {}
    for path in public_files(paths):
        silo = read_silo(path)
        other, before = found.setdefault(silo.name, (path, silo))
        if before != silo:
            raise InputError(
                f"the name {silo.name!r} is in two public files that differ, {str(other)!r} and {str(path)!r}; keep "
                "the one whose fingerprint and size are right, and move the other out of the way"
            )
    return [silo for _, silo in found.values()]


def invited(paths: Sequence[Path], coordinator: Silo) -> tuple[list[Silo], list[Path]]:
    """The silos of a plan, and what is none of them: the coordinator's own public file, where a folder holds it."""
    alone = {path for path in paths if not path.is_dir()}

    def is_silo(path: Path) -> bool:
        found = read_silo(path)
        return path in alone or (found.name != coordinator.name and found.signing != coordinator.signing)

    files = {path: is_silo(path) for path in public_files(paths)}
    return read_named([path for path, yes in files.items() if yes]), [path for path, yes in files.items() if not yes]


def what_of(columns: Columns, people: o.PeopleOptions) -> What | None:
    """What is read of each record; a plan states its loss for one record of a person, and one threshold for all."""
    what = columns.what()
    if isinstance(what, Losses):
        raise InputError(
            "a federation calibrates one score of each record; --truth and --losses belong to `confide calibrate`"
        )
    if isinstance(what, Regressed) and len(what.kinds) > 1:
        raise InputError("a federation calibrates one threshold; plan --score cqr_low and --score cqr_high one by one")
    if people.people is not None and people.people.most > 1:
        raise InputError("--max-records-per-person must be 1 in a federation: its plan states the loss of one record")
    return what


def check_score(of: str, wanted: str | None, what: What | None) -> None:
    """Refuse columns that give another score than a plan, or a threshold, is for."""
    if what is None or (found := what.kind.name) == wanted:
        return
    if wanted is None:
        raise InputError(f"{of} names no score; these columns give {found!r}: leave --score out")
    named = "a column whose score is not named" if found is None else repr(found)
    raise InputError(f"{of} is for the score {wanted!r}; these columns give {named}; --score {wanted} says so")


def counted(
    source: o.Source,
    what: What | None,
    columns: Columns,
    people: o.PeopleOptions,
    candidates: Candidates,
    classes: Classes | None,
) -> ScoreHistogram:
    """The silo's scores, counted where its table lives; of the plan's classes only."""
    with source.open("reading", what, columns.ways) as (opened, what, progress):
        if isinstance(what, Classified) and classes is not None:
            names = what.columns(opened)[1]
            try:
                names_among(classes, names, len(names))
            except InputError as error:
                raise InputError(f"the plan is for other classes: {error}") from None
        return score_histogram(
            opened,
            what,
            candidates,
            people=people.people,
            skip_incomplete=source.skip_incomplete,
            progress=progress,
        )


def counted_by_group(
    source: o.Source,
    what: What | None,
    columns: Columns,
    people: o.PeopleOptions,
    candidates: Candidates,
    names: tuple[Name, ...],
    by: str | None,
) -> dict[Name, ScoreHistogram]:
    """The silo's scores, one histogram for each group of the plan, or without `by` for each class, in one pass."""
    with source.open("reading", what, columns.ways) as (opened, what, progress):
        asked: dict[str, Any] = {
            "people": people.people,
            "skip_incomplete": source.skip_incomplete,
            "progress": progress,
        }
        if by is not None:
            return group_histograms(opened, what, by, names, candidates, **asked)
        found = class_histograms(opened, what, candidates, **asked)
    if set(found) != set(names):
        raise InputError(f"the plan is for the classes {class_list(names)}; found {class_list(tuple(found))}")
    return found
