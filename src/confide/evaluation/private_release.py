"""Asking for a private evaluation: the public question, who pays for it, and the order in which it is answered.

The order is that of every release (`confide.ledger.Bill.settle`): refuse what the limit does not allow, compare with
what the ledger has answered, charge, draw, keep.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from confide.errors import CoverageWarning, InputError
from confide.evaluation.covered_tally import IntervalTally
from confide.evaluation.parts import CONFIDENCE
from confide.evaluation.private import SIDES, Outcome, PrivateEvaluation, Question, empty, level_name
from confide.evaluation.private_counts import CellTally
from confide.evaluation.private_findings import family_error
from confide.evaluation.private_json import question_fields
from confide.evaluation.private_parts import (
    Partition,
    arrangement,
    class_parts,
    group_parts,
    size_parts,
    width_parts,
)
from confide.evaluation.release_parts import class_keys, division_of, fingerprint
from confide.evaluation.set_tally import SetTally
from confide.evaluation.tally import Tally
from confide.mechanisms import Neighbors
from confide.releases import (
    Release,
)
from confide.support import Level, exact_level, outside, several, tell

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger, Payment

_MECHANISM = "evaluation by discrete-laplace"

PARTS = ("class", "size")
"""By what the coverage of sets may be asked besides over all and by group."""


@dataclass(frozen=True)
class Asking:
    """How a release is to be evaluated privately; all of it public.

    Parameters
    ----------
    epsilon
        Privacy loss per person.
    neighbors
        The relation: `"add_remove"` keeps the number of records secret, `"replace_one"` makes it public.
    records_per_person
        The most records of one person.
    confidence
        Probability that all intervals hold at once.
    n
        The number of records, under `replace_one` only; counted by default.
    parts
        Of sets: by what coverage is asked besides over all, out of `"class"` and `"size"`; both by default, and `()`
        for coverage over all alone. What has thresholds of its own is always asked.
    group_names
        All groups there are, a public list that is not taken from the records; a record of another group is counted in
        a part of its own, `"(other)"`.
    width_bins
        Of intervals: public numbers between which widths are counted.
    ledger, dataset, again
        As in `confide.calibrate`.
    """

    epsilon: float
    neighbors: Neighbors = "add_remove"
    records_per_person: int = 1
    confidence: Level = CONFIDENCE
    n: int | None = None
    parts: Sequence[str] | None = None
    group_names: Sequence[str | int] | None = None
    width_bins: Sequence[float] | None = None
    ledger: "Ledger | None" = None
    dataset: "str | Dataset | None" = None
    again: bool = False

    def __post_init__(self) -> None:
        for name in ("parts", "group_names", "width_bins"):
            values = getattr(self, name)
            if values is not None and not isinstance(values, str):
                object.__setattr__(self, name, tuple(several(name, values)))

    def question(self, release: Release, tally: Tally, n: int | None) -> Question:
        """The question about a release, checked; `n` is used where it is public."""
        if self.n is not None and self.neighbors != "replace_one":
            raise InputError("n must be left out under neighbors='add_remove': it is secret")
        partitions = _partitions(self, release, tally)
        outcome, statements = private_statements(release)
        question = Question(
            calibration=fingerprint(release),
            neighbors=self.neighbors,
            epsilon=self.epsilon,
            records_per_person=self.records_per_person,
            n=n if self.neighbors == "replace_one" else None,
            outcome=outcome,
            statements=statements,
            partitions=partitions,
            tables=arrangement([len(partition) for partition in partitions]),
            loss=release.bounded,
        )
        family_error(partitions, len(statements), 1 - float(exact_level("confidence", self.confidence)))
        return question


def answer(
    asking: Asking,
    release: Release,
    tally: Tally,
    count: Callable[[Callable[..., None]], None],
    *,
    charge_first: bool = False,
) -> PrivateEvaluation:
    """Count, charge and draw.

    Parameters
    ----------
    asking, release
        What is asked of which release.
    tally
        What says of records whether they are covered.
    count
        Hands all records to the function that it is given, `CellTally.add`.
    charge_first
        Charge before anybody looks at the records, because an engine does.
    """
    first = asking.question(release, tally, asking.n or 1)
    _payment(asking, first)  # an account that keeps n secret refuses whatever n is
    confidence = float(exact_level("confidence", asking.confidence))

    def counted() -> CellTally:
        cells = CellTally(tally, first)
        count(cells.add)
        if asking.n is not None and cells.total != asking.n:
            raise InputError(
                f"n must be the number of records that count; found {cells.total}, and n={asking.n} was given"
            )
        return cells

    _point_out_same_people(asking)
    _point_out_many_of_one_person(asking)
    known = None
    if asking.neighbors == "replace_one" and asking.n is None:
        if charge_first and asking.ledger is not None:
            raise InputError("n must be given under neighbors='replace_one' with a ledger, to charge it beforehand")
        known = counted()
        if not known.total:
            raise InputError("there must be records under neighbors='replace_one'; found none")
    question = first if known is None else asking.question(release, tally, known.total)
    payment = _payment(asking, question)
    tell("evaluation", "evaluating privately", epsilon=question.epsilon, neighbors=question.neighbors)
    _refuse_unwritable(question, confidence, kept=payment is not None)
    look = counted if known is None else lambda: known
    if payment is None:
        return look().draw(question, confidence).judged(release)
    from confide.ledger import pay

    text = pay(
        payment,
        look,
        CellTally.content,
        lambda cells: _compact(cells.draw(question, confidence)),
        charge_first=charge_first,
    )
    return replace(PrivateEvaluation.from_json(text), confidence=confidence).judged(release)


def _compact(evaluation: PrivateEvaluation) -> str:
    """The text that a ledger keeps: that of the file, without blanks."""
    return json.dumps(json.loads(evaluation.to_json()), separators=(",", ":"))


def _refuse_unwritable(question: Question, confidence: float, *, kept: bool) -> None:
    """Refuse, before anything is charged or drawn, what cannot be written; and what no ledger keeps, where one must.

    Numbers take at most twice the room of empty ones.
    """
    written = _compact(empty(question, confidence))
    if not kept:
        return
    from confide.ledger import MOST_RELEASE

    if 2 * len(written) > MOST_RELEASE:
        raise InputError(
            f"parts must be fewer with a ledger, which keeps at most {MOST_RELEASE:,} characters of a release; ask for "
            "parts=()"
        )


def _payment(asking: Asking, question: Question) -> "Payment | None":
    if asking.ledger is None and asking.dataset is None:
        if asking.again:
            raise InputError("again must be left out without a ledger: nothing is remembered, and every call is new")
        return None
    from confide.ledger import make_payment

    content = {"private evaluation": question_fields(question)}
    return make_payment(question.privacy, _MECHANISM, content, asking.ledger, asking.dataset, again=asking.again)


def _point_out_same_people(asking: Asking) -> None:
    """Warn if a data set was calibrated on: evaluation records should be others."""
    if asking.ledger is None or asking.dataset is None:
        return
    from confide.ledger import Dataset, known

    name = asking.dataset.name if isinstance(asking.dataset, Dataset) else asking.dataset
    account = known(asking.ledger.accounts(), name)
    if account is not None and any(entry.kind == "calibration" for entry in account.entries):
        text = (
            f"dataset {account.dataset!r} has a calibration in the ledger: if these are the records that the threshold "
            "was made from, it covers them better than new ones, and the intervals do not hold; evaluate on others"
        )
        warnings.warn(text, CoverageWarning, stacklevel=outside())


def _point_out_many_of_one_person(asking: Asking) -> None:
    """Warn if records of one person are counted as if they were independent."""
    if asking.records_per_person > 1:
        text = (
            f"records_per_person is {asking.records_per_person}: the privacy holds, but the intervals take all records "
            "for independent, and those of one person may not be; keep one record of each person"
        )
        warnings.warn(text, CoverageWarning, stacklevel=outside())


def private_statements(release: Release) -> tuple[Outcome, dict[str, float]]:
    """What is seen of a record, and what a release promises, by the names of a private evaluation."""
    if release.by == "level":
        return "levels", {level_name(alpha): part.promised for alpha, part in release.parts.items()}
    if release.by == "side":
        stated = release.promised, *(part.coverage for part in release.parts.values())
        return "sides", dict(zip(SIDES, stated, strict=True))
    return "covered", {"": release.promised}


def _partitions(asking: Asking, release: Release, tally: Tally) -> tuple[Partition, ...]:
    several = release.by == "level"
    division = division_of(release)
    wanted = _wanted(asking, tally, several)
    found: list[Partition] = []
    if isinstance(tally, SetTally):
        names = tally.levels[0].names
        own = None
        if division == "class":
            own = [release.parts[key].coverage for key in class_keys(release, names)]
        if own is not None or "class" in wanted:
            found.append(class_parts(names, own))
        if "size" in wanted:
            found.append(size_parts(len(names)))
    if release.asks_groups(sets=isinstance(tally, SetTally)):
        if asking.group_names is not None:
            raise InputError(f"group_names must be left out: the release names every {division}")
        promised = [part.coverage for part in release.parts.values()]
        names = list(map(str, release.parts))
        found.append(class_parts(names, promised) if division == "class" else group_parts(names, promised))
    elif asking.group_names is not None:
        found.append(group_parts(asking.group_names))
    if asking.width_bins is not None:
        if not isinstance(tally, IntervalTally) or several:
            raise InputError("width_bins belong to the intervals of a release with one level")
        found.append(width_parts(asking.width_bins))
    return tuple(found)


def _wanted(asking: Asking, tally: Tally, several: bool) -> tuple[str, ...]:
    """By what coverage is asked besides over all and by group."""
    if not isinstance(tally, SetTally):
        if asking.parts:
            raise InputError("parts must be left out: class and size belong to sets of a classification score")
        return ()
    if asking.parts is None:
        return ("class",) if several else PARTS
    named = [asking.parts] if isinstance(asking.parts, str) else asking.parts
    unknown = [one for one in named if one not in PARTS]
    if isinstance(asking.parts, str) or unknown:
        found = "a text instead of a list" if not unknown else repr(unknown[0])
        raise InputError(f"parts must be out of {', '.join(PARTS)}, or none; found {found}")
    if several and "size" in asking.parts:
        raise InputError(
            "parts must not have 'size' for several levels: each level has sets of its own, and each would cost its "
            "share; evaluate one level"
        )
    return tuple(asking.parts)
