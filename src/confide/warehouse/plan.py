"""What is asked of a table that this process never reads: the request, what is counted for it, and over what.

Candidates follow from the request alone, so the query and the calibration of what comes back count over the same ones.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

from confide.calibration import Counted, Request, prepare, release, split_options
from confide.candidates import BUILDERS, AnyCandidates, Candidates
from confide.counting import ScoreHistogram
from confide.errors import FormatError, InputError, InputTypeError
from confide.planning import CONCENTRATED
from confide.support import (
    Level,
    Place,
    aligned,
    canonical,
    check_names,
    exact_level,
    positive_integer,
    read_as,
    refuse_first_of_pair,
    write_text,
)
from confide.tables import SIDES, Classified, People, Regressed, Scored, What, class_keys
from confide.warehouse.plan_json import OPTIONS, columns_fields, read, unusable, written

Names = tuple[str | int, ...]

_DEFAULTS: Mapping[str, Any] = {"neighbors": "add_remove", "n_min": 1, "records_per_person": 1, "mechanism": "slopes"}
_ELSEWHERE = "compute it where the model runs, keep it in a column, and count that with --score-column"


@dataclass(frozen=True)
class Division:
    """Groups or classes that get a threshold each: the column that names them, and all their public names."""

    by: Literal["group", "class"]
    column: str
    names: Names


@dataclass(frozen=True)
class CountingPlan:
    """A request, and what a warehouse counts for it; made by `CountingPlan.of`.

    Parameters
    ----------
    what
        The columns of the score: of `Classified` one column per class, named one by one.
    alphas
        The miscoverage levels.
    candidates
        The public candidates that follow from the request.
    n
        The public number of records under `replace_one`, else None.
    division
        What thresholds depend on, or None.
    people
        Bounds the records that count of each person, or None.
    skip_incomplete
        Whether records with missing values are left out.
    options
        The other choices, as in `calibrate`: those of `OPTIONS`.
    """

    what: Scored | Classified | Regressed
    alphas: tuple[Fraction, ...]
    candidates: Candidates
    n: int | None = None
    division: Division | None = None
    people: People | None = None
    skip_incomplete: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        what: What,
        alpha: Level | Sequence[Level],
        epsilon: float | None = None,
        *,
        by: str | None = None,
        groups: Sequence[str | int] | None = None,
        by_class: bool = False,
        n: int | None = None,
        candidates: AnyCandidates = None,
        unit: float | None = None,
        people: People | None = None,
        skip_incomplete: bool = False,
        **options: Any,
    ) -> "CountingPlan":
        """Check a request, decide its candidates, and price it, as `calibrate_table` does; nothing is read or charged.

        Parameters
        ----------
        what
            `Scored`, `Classified` (LAC; its pattern is filled with each of `classes`) or `Regressed`.
        n
            The public number of records: needed under `replace_one`, from which candidates follow.
        alpha, epsilon, by, groups, by_class, candidates, unit, people, skip_incomplete, **options
            As in `calibrate_table`; candidates of a kind that a recipe makes.

        Raises
        ------
        InputError, InputTypeError
            If a choice cannot be used, or a score cannot be computed in SQL.

        Examples
        --------
        >>> plan = CountingPlan.of(Classified("p_*", "y", ("cat", "dog")), 0.1, 1.0)
        >>> plan.what.probabilities, plan.bins > 30
        (('p_cat', 'p_dog'), True)
        """
        if unknown := sorted(set(options) - set(OPTIONS)):
            raise InputError(f"options must be among {', '.join(OPTIONS)}; found {', '.join(unknown)}")
        counted = _in_sql(what)
        division = _division(counted, by, groups, by_class)
        chosen = {**dict.fromkeys(OPTIONS[1:]), **_DEFAULTS, **options, "epsilon": epsilon}
        if people is not None:
            if options.get("records_per_person") not in (None, 1, people.most):
                raise InputError("records_per_person must be left out with people, which bounds the records itself")
            chosen["records_per_person"] = people.most
        several = isinstance(alpha, Sequence) and not isinstance(alpha, str)
        alphas = tuple(exact_level("alpha", one) for one in (alpha if several else [alpha]))  # type: ignore[union-attr, arg-type]
        if not alphas:
            raise InputError("alpha must be one level or more; found none")
        if chosen["delta"] is not None:
            chosen["delta"] = exact_level("delta", chosen["delta"])
        _check_number(n, public=_is_public(chosen), divided=division is not None)
        asked = cls(counted, alphas, Candidates.unit(2), n, division, people, skip_incomplete, chosen)
        request = asked._request(candidates=candidates, unit=unit)
        made = replace(asked, candidates=request.counted_over(n))
        if made.candidates.recipe["kind"] not in BUILDERS:
            raise InputError("candidates must be spread, or made by a recipe: a list of your own does not fit a plan")
        prepare(made.request, n)
        return made

    @property
    def request(self) -> Request:
        """What is asked of the counts."""
        return self._request(candidates=self.candidates)

    def _request(self, **more: Any) -> Request:
        kinds = {
            "level": len(self.alphas) > 1,
            "group": self.division is not None and self.division.by == "group",
            "class": self.division is not None and self.division.by == "class",
            "side": len(self.scores) > 1,
        }
        found = [name for name, asked in kinds.items() if asked]
        if len(found) > 1:
            raise InputError("one of several levels, groups or classes, and two sides may be asked for; found more")
        own = {name: value for name, value in self.options.items() if value is not None}
        own |= {"alpha": self.alphas if kinds["level"] else self.alphas[0], "by": found[0] if found else None}
        own |= {"classes": self.classes, "score": None if kinds["side"] else self.score}
        return Request(names=() if self.division is None else self.division.names, **own, **more)

    @property
    def score(self) -> str | None:
        """The score's name; `cqr_sides` for both of its sides."""
        return SIDES if len(self.scores) > 1 else self.scores[0]

    @property
    def scores(self) -> tuple[str | None, ...]:
        """The name of each score of a record: one, or two for two sides."""
        return tuple(kind.name for kind in self.what.kinds) if isinstance(self.what, Regressed) else (self.what.score,)

    @property
    def classes(self) -> Names | None:
        """The names of all classes; None for other scores."""
        return self.what.classes if isinstance(self.what, Classified) else None

    @property
    def parts(self) -> Names | tuple[str | None, ...]:
        """What has counts of its own, in the order of `part` in the query: groups, classes, sides, or one thing."""
        return self.scores if self.division is None else self.division.names

    @property
    def bins(self) -> int:
        """The number of bins, which count from 0."""
        return self.candidates.size

    @cached_property
    def digest(self) -> str:
        """Twelve digits for what is counted, over which candidates: they stand in every row that comes back."""
        text = json.dumps(self._counted | {"edges": self.candidates.digest}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def _counted(self) -> dict[str, Any]:
        """What is counted, over which candidates, as plain values: plans that agree in it have the same counts."""
        people, division = self.people, self.division
        return {
            "columns": columns_fields(self.what),
            "candidates": dict(self.candidates.recipe),
            "by": None
            if division is None
            else {"kind": division.by, "column": division.column, "names": list(division.names)},
            "people": None if people is None else {**vars(people), "order": list(people.order)},
            "skip_incomplete": self.skip_incomplete,
        }

    def calibrate(self, counted: Mapping[Any, ScoreHistogram], **more: Any) -> Any:
        """Release what was asked for from the counts of `read_counts`; `more` is `ledger`, `dataset`, `about`, etc.

        Raises
        ------
        InputError
            If there are other than `n` records under `replace_one`; then nothing was released or charged.

        Examples
        --------
        >>> import numpy as np
        >>> plan = CountingPlan.of(Scored("s", "lac"), 0.1, 1.0, neighbors="replace_one", n=3000)
        >>> counts = ScoreHistogram.from_scores(np.linspace(0, 1, 3000), plan.candidates)
        >>> plan.calibrate({"lac": counts}).score
        'lac'
        """
        if self.n is not None and any(one.total != self.n for one in counted.values()):
            raise InputError(f"n must be the number of records that count; n={self.n} was given, and found is another")
        payer, said = split_options("CountingPlan.calibrate", more, "partition")
        if self.people is not None:
            payer = replace(payer, dataset=self.people.payer(payer.dataset))
        rows = dict(counted) if set(counted) == set(self.request.rows) else {None: next(iter(counted.values()))}
        return release(Counted(rows), self._request(candidates=self.candidates, **said), payer)

    def __str__(self) -> str:
        """What is counted over what, and what is asked of the counts, as `confide show` prints it."""
        asked = self.options
        loss = f"epsilon {asked['epsilon']:g}" if asked["rho"] is None else f"rho {asked['rho']:g}"
        loss += ", no epsilon" if asked["mechanism"] in CONCENTRATED else ""
        rows = [
            ("score", ", ".join(map(str, self.scores))),
            ("columns", ", ".join(self._columns)),
            ("candidates", str(self.bins)),
            ("alpha", ", ".join(f"{float(alpha):g}" for alpha in self.alphas)),
            ("loss", f"{loss}, {asked['neighbors']}" if asked["mechanism"] != "none" else "NOT PRIVATE"),
            ("records", "secret" if self.n is None else str(self.n)),
        ]
        if asked["delta"] is not None:
            rows.append(("delta", f"{float(asked['delta']):g}"))
        if self.division is not None:
            rows.append(("by", f"{self.division.by} {self.division.column}: {len(self.division.names)} of them"))
        if self.people is not None:
            rows.append(("records per person", f"{self.people.most}, by {self.people.person}"))
        return f"counting plan {self.digest}\n{aligned(rows)}"

    @property
    def _columns(self) -> list[str]:
        what = self.what
        if isinstance(what, Scored):
            return [what.column]
        if isinstance(what, Classified):
            return [*what.probabilities, str(what.label)]
        return [*what.predictions, str(what.target)]

    def to_json(self) -> str:
        """The plan as a JSON document with a schema version and a checksum; it holds nothing private."""
        delta = self.options["delta"]
        asked = {**self.options, "delta": None if delta is None else str(delta)}
        return written(self._counted, {"alpha": list(map(str, self.alphas)), "n": self.n, **asked}, self.digest)

    @classmethod
    def from_json(cls, text: str) -> "CountingPlan":
        """Read what `to_json` wrote, and check it again.

        Raises
        ------
        FormatError
            If the text is no such plan, is damaged or of a newer schema, or asks for what cannot be asked.

        Examples
        --------
        >>> plan = CountingPlan.of(Scored("s"), 0.1, 1.0)
        >>> CountingPlan.from_json(plan.to_json()) == plan
        True
        """
        arguments, digest = read(text)
        try:
            made = cls.of(**arguments)
        except (InputError, InputTypeError) as error:
            raise unusable(error) from None
        if made.digest != digest:
            raise FormatError("the counting plan is damaged: its digest is not that of what it says is counted")
        return made

    def save(self, path: str | Place, *, overwrite: bool = False) -> None:
        """Write `to_json()` to a file, atomically."""
        write_text(path, self.to_json(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Place) -> "CountingPlan":
        """Read a file written by `save`."""
        return read_as(path, cls.from_json)


def _is_public(options: Mapping[str, Any]) -> bool:
    return bool(options["neighbors"] == "replace_one") or options["mechanism"] == "none"


def _check_number(n: int | None, *, public: bool, divided: bool) -> None:
    """The number of records is public, and then known, or secret, and then not stated."""
    if n is not None:
        positive_integer("n", n)
    if public and not divided and n is None:
        raise InputError("n must be given where the number of records is public: candidates follow from it")
    if n is not None and (divided or not public):
        raise InputError("n must be left out: the number of records, or of those in each group, is secret")


def _in_sql(what: What) -> Scored | Classified | Regressed:
    """The same with all columns named, of a score that SQL computes."""
    if isinstance(what, Scored):
        return what
    if isinstance(what, Regressed):
        if what.target is None:
            raise InputError("target must be given: the column of the true numbers")
        named = {kind.name for kind in what.kinds}
        if not named <= {"absolute_residual", "cqr", "cqr_low", "cqr_high"}:
            raise InputError(f"score {what.score!r} is not computed in SQL; {_ELSEWHERE}")
        needed = 1 if named == {"absolute_residual"} else 2
        if len(what.predictions) != needed:
            raise InputError(f"prediction must name {needed} column(s) for the score {what.kind.name!r}")
        return replace(what, score=SIDES if len(named) > 1 else what.kind.name)
    if not isinstance(what, Classified):
        raise InputError(f"losses, and sets of several labels, are not computed in SQL; {_ELSEWHERE}")
    if what.logits:
        raise InputError(f"logits must be left out: their softmax is not computed in SQL; {_ELSEWHERE}")
    if what.score != "lac":
        raise InputError(f"score {what.score!r} is not computed in SQL, which has lac; {_ELSEWHERE}")
    if what.label is None:
        raise InputError("label must be given: the column of the true classes")
    if what.classes is None:
        raise InputError("classes must be given, all of them: no table is read that could tell")
    classes = check_names("classes", what.classes)
    return replace(what, classes=classes, probabilities=_columns(what.probabilities, classes))


def _columns(named: str | tuple[str, ...], classes: Names) -> tuple[str, ...]:
    """One column per class, or of two classes the one of the second."""
    if isinstance(named, str) and named.count("*") == 1:
        return tuple(named.replace("*", canonical(name)) for name in classes)
    columns = (named,) if isinstance(named, str) else tuple(named)
    if len(columns) == 1:
        refuse_first_of_pair(columns[0], classes)
    if len(columns) != len(classes) and (len(columns), len(classes)) != (1, 2):
        raise InputError(
            f"probabilities must name one column per class, as 'p_*' or 'p_a,p_b'; found {len(columns)} for "
            f"{len(classes)} classes; of a column of lists, make a view with a column for each entry"
        )
    return columns


def _division(what: What, by: str | None, groups: Sequence[str | int] | None, by_class: bool) -> Division | None:
    if by_class:
        if by is not None or groups is not None:
            raise InputError("by and groups must be left out with by_class")
        if not isinstance(what, Classified) or what.label is None or what.classes is None:
            raise InputError("by_class needs the probabilities and the label of every record")
        return Division("class", what.label, class_keys(tuple(what.classes)))
    if by is None and groups is None:
        return None
    if by is None or groups is None:
        raise InputError("by and groups must be given together: a column, and the public list of its values")
    if isinstance(groups, str):
        raise InputTypeError("groups must be a list of names; found one text")
    return Division("group", by, check_names("groups", groups))
