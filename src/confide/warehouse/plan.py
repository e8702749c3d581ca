"""What is asked of a table that this process never reads: the request, what is counted for it, and over what.

Candidates follow from the request alone, so the query and the calibration of what comes back count over the same ones.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Unpack

from confide.calibration import By, Counted, Options, Request, prepare_thresholds, release, split_options
from confide.candidates import BUILDERS, AnyCandidates, Candidates
from confide.counting import ScoreHistogram
from confide.errors import FormatError, InputError, InputTypeError
from confide.planning import CONCENTRATED
from confide.support import (
    Fields,
    Level,
    Place,
    aligned,
    canonical,
    check_names,
    exact_level,
    parse_object,
    positive_integer,
    read_as,
    refuse_first_of_pair,
    write_text,
)
from confide.tables import SIDES, Classified, People, Regressed, Scored, What, class_keys, grouping_of

OPTIONS = ("rho", "neighbors", "n_min", "n_typical", "delta", "records_per_person", "selector", "mechanism", "epsilon")
"""What a plan keeps of the options of `calibrate`."""

_KIND, _SCHEMA, _MOST_CHARACTERS = "confide.counting-plan", 1, 10_000_000


Names = tuple[str | int, ...]

_ELSEWHERE = "compute it where the model runs, keep it in a column, and count that with --score-column"


@dataclass(frozen=True)
class CountingPlan:
    """A request, and what a warehouse counts for it; made by `CountingPlan.of`.

    Parameters
    ----------
    what
        The columns of the score: of `Classified` one column per class, named one by one.
    request
        What is asked of the counts, over the public candidates that follow from it.
    n
        The public number of records under `replace_one`, else None.
    column
        The column that names the group or class of each record, where each gets a threshold, or None.
    people
        Bounds the records that count of each person, or None.
    skip_incomplete
        Whether records with missing values are left out.
    """

    what: Scored | Classified | Regressed
    request: Request
    n: int | None = None
    column: str | None = None
    people: People | None = None
    skip_incomplete: bool = False

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
        people: People | None = None,
        skip_incomplete: bool = False,
        **options: Unpack[Options],
    ) -> "CountingPlan":
        """Check a request, decide its candidates, and price it, as `calibrate_table` does; nothing is read or charged.

        Parameters
        ----------
        what
            `Scored`, `Classified` (LAC; its pattern is filled with each of `classes`) or `Regressed`.
        n
            The public number of records: needed under `replace_one`, from which candidates follow.
        alpha, epsilon, by, groups, by_class, candidates, people, skip_incomplete, **options
            As in `calibrate_table`, of whose options a plan keeps some; candidates of a kind that a recipe makes.

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
        counted = _in_sql(what)
        if unknown := sorted(set(options) - {*OPTIONS, "unit"}):
            raise InputError(f"options must be among {', '.join(OPTIONS)}; found {', '.join(unknown)}")
        asked: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        if people is not None:
            stated = asked.get("records_per_person")
            asked["records_per_person"] = people.bound(None if stated == 1 else stated)
        several = isinstance(alpha, Sequence) and not isinstance(alpha, str)
        levels = tuple(exact_level("alpha", one) for one in (alpha if several else [alpha]))  # type: ignore[union-attr, arg-type]
        if not levels:
            raise InputError("alpha must be one level or more; found none")
        if "delta" in asked:
            asked["delta"] = exact_level("delta", asked["delta"])
        scores = _scores(counted)
        column, divided = _division(counted, by, groups, by_class)
        several_of: dict[By, bool] = {"level": len(levels) > 1, "side": len(scores) > 1}
        kinds = [*divided, *(name for name, asks in several_of.items() if asks)]
        if len(kinds) > 1:
            raise InputError("one of several levels, groups or classes, and two sides may be asked for; found more")
        request = Request(
            alpha=levels if len(levels) > 1 else levels[0],
            epsilon=epsilon,
            by=kinds[0] if kinds else None,
            names=next(iter(divided.values()), ()),
            score=None if len(scores) > 1 else scores[0],
            classes=counted.classes if isinstance(counted, Classified) else None,
            candidates=candidates,
            **asked,
        )
        if n is not None:
            positive_integer("n", n)
            if not request.public_n:
                raise InputError("n must be left out: the number of records, or of those in each group, is secret")
        elif request.public_n:
            raise InputError("n must be given where the number of records is public: candidates follow from it")
        request = replace(request, candidates=request.counted_over(n), unit=None)
        made = cls(counted, request, n, column, people, skip_incomplete)
        if made.candidates.recipe["kind"] not in BUILDERS:
            raise InputError("candidates must be spread, or made by a recipe: a list of your own does not fit a plan")
        prepare_thresholds(request, n)
        return made

    @property
    def candidates(self) -> Candidates:
        """What is counted over."""
        assert isinstance(self.request.candidates, Candidates)
        return self.request.candidates

    @property
    def score(self) -> str | None:
        """The score's name; `cqr_sides` for both of its sides."""
        return SIDES if len(self.scores) > 1 else self.scores[0]

    @property
    def scores(self) -> tuple[str | None, ...]:
        """The name of each score of a record: one, or two for two sides."""
        return _scores(self.what)

    @property
    def parts(self) -> tuple[Any, ...]:
        """What has counts of its own, in the order of `part` in the query: groups, classes, sides, or one thing."""
        return self.scores if self.column is None else tuple(self.request.names)

    @property
    def numbers(self) -> list[str]:
        """The columns of the score that are read as numbers."""
        what = self.what
        if isinstance(what, Scored):
            return [what.column]
        return list(what.probabilities) if isinstance(what, Classified) else [*what.predictions, str(what.target)]

    @property
    def labels(self) -> list[str]:
        """The column of labels, where the score needs one."""
        return [str(self.what.label)] if isinstance(self.what, Classified) else []

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
        people, column = self.people, self.column
        return {
            "columns": _columns_fields(self.what),
            "candidates": dict(self.candidates.recipe),
            "by": None
            if column is None
            else {"kind": self.request.by, "column": column, "names": list(self.request.names)},
            "people": None if people is None else {**vars(people), "order": list(people.order)},
            "skip_incomplete": self.skip_incomplete,
        }

    def calibrate(self, counted: Mapping[Any, ScoreHistogram], **more: Unpack[Options]) -> Any:
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
        return release(Counted(rows), replace(self.request, **said), payer)

    def __str__(self) -> str:
        """What is counted over what, and what is asked of the counts, as `confide show` prints it."""
        asked = self.request
        loss = f"epsilon {asked.epsilon:g}" if asked.rho is None else f"rho {asked.rho:g}"
        loss += ", no epsilon" if asked.mechanism in CONCENTRATED else ""
        rows = [
            ("score", ", ".join(map(str, self.scores))),
            ("columns", ", ".join([*self.numbers, *self.labels])),
            ("candidates", str(self.bins)),
            ("alpha", ", ".join(f"{float(alpha):g}" for alpha in self._levels)),
            ("loss", f"{loss}, {asked.neighbors}" if asked.mechanism != "none" else "NOT PRIVATE"),
            ("records", "secret" if self.n is None else str(self.n)),
        ]
        if asked.delta is not None:
            rows.append(("delta", f"{float(asked.delta):g}"))
        if self.column is not None:
            rows.append(("by", f"{asked.by} {self.column}: {len(asked.names)} of them"))
        if self.people is not None:
            rows.append(("records per person", f"{self.people.most}, by {self.people.person}"))
        return f"counting plan {self.digest}\n{aligned(rows)}"

    @property
    def _levels(self) -> tuple[Fraction, ...]:
        return self.request.alpha if self.request.by == "level" else (self.request.alpha,)

    def to_json(self) -> str:
        """The plan as a JSON document with a schema version and a checksum; it holds nothing private."""
        asked = {name: getattr(self.request, name) for name in OPTIONS}
        asked["delta"] = None if self.request.delta is None else str(self.request.delta)
        asked = {"alpha": list(map(str, self._levels)), "n": self.n, **asked}
        content = {"kind": _KIND, "schema": _SCHEMA, "digest": self.digest, **self._counted, **asked}
        return json.dumps({**content, "sha256": _checksum(content)}, indent=2, allow_nan=False) + "\n"

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
        arguments, digest = _read(text)
        try:
            made = cls.of(**arguments)
        except (InputError, InputTypeError) as error:
            raise _unusable(error) from None
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


def _scores(what: What) -> tuple[str | None, ...]:
    return tuple(kind.name for kind in what.kinds) if isinstance(what, Regressed) else (what.kind.name,)


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


def _division(
    what: What, by: str | None, groups: Sequence[str | int] | None, by_class: bool
) -> tuple[str | None, dict[By, Names]]:
    """The column that divides the records, and the names of the groups or classes that it divides them into."""
    if by_class:
        if by is not None or groups is not None:
            raise InputError("by and groups must be left out with by_class")
        if not isinstance(what, Classified) or what.label is None or what.classes is None:
            raise InputError("by_class needs the probabilities and the label of every record")
        return what.label, {"class": class_keys(tuple(what.classes))}
    if by is None and groups is None:
        return None, {}
    if by is None or groups is None:
        raise InputError("by and groups must be given together: a column, and the public list of its values")
    if grouping_of(by) is not None:
        raise InputError(f"by must name a column of the warehouse; {by!r} is a function of Python, not of SQL")
    if isinstance(groups, str):
        raise InputTypeError("groups must be a list of names; found one text")
    return by, {"group": check_names("groups", groups)}


def _columns_fields(what: Scored | Classified | Regressed) -> dict[str, Any]:
    """The columns of a score, as plain values."""
    if isinstance(what, Scored):
        return {"kind": "score", "column": what.column, "score": what.score}
    if isinstance(what, Classified):
        names = {"probabilities": list(what.probabilities), "classes": list(what.classes or ())}
        return {"kind": "classes", **names, "label": what.label, "label_positions": what.label_positions}
    return {"kind": "numbers", "predictions": list(what.predictions), "target": what.target, "score": what.score}


def _read(text: str) -> tuple[dict[str, Any], str]:
    """The arguments of `CountingPlan.of` that a text states, of the right types, and the digest."""
    fields = Fields("counting plan", _intact(text))
    digest = fields.take("digest", str)
    try:
        found = {
            "what": _read_what(fields.group("columns")),
            "candidates": Candidates.made_by(fields.take("candidates", dict)),
            "skip_incomplete": fields.take("skip_incomplete", bool),
            "n": fields.optional("n", (int,), int),
            **_read_division(fields.optional_group("by")),
        }
        people = fields.optional_group("people")
        found["people"] = None if people is None else _read_people(people)
        levels = _texts(fields, "alpha")
        found["alpha"] = levels[0] if len(levels) == 1 else levels
        found |= {name: fields.take(name, (str, int, float, type(None))) for name in OPTIONS}
    except (InputError, InputTypeError) as error:
        raise _unusable(error) from None
    fields.finish()
    return found, digest


def _unusable(error: Exception) -> FormatError:
    """What is wrong with a choice, as an error of the file."""
    if isinstance(error, FormatError):
        return error
    return FormatError(f"the counting plan has a field that cannot be used: {error}")


def _intact(text: str) -> dict[str, Any]:
    """The fields of a text with a known schema and the right checksum, without these."""
    if len(text) > _MOST_CHARACTERS:
        raise FormatError(f"the counting plan has more than {_MOST_CHARACTERS} characters")
    try:
        content = parse_object(text)
    except ValueError:
        raise FormatError("the counting plan is not a JSON object as `confide sql --plan` writes it") from None
    stated = content.pop("sha256", None)
    if content.get("kind") != _KIND:
        raise FormatError("this is no counting plan as `confide sql --plan` writes it")
    if content.get("schema") != _SCHEMA:
        raise FormatError(f"the counting plan must have schema {_SCHEMA}; a newer one needs a newer confide")
    if stated != _checksum(content):
        raise FormatError("the counting plan is damaged or was altered: its checksum is wrong")
    return {key: value for key, value in content.items() if key not in ("kind", "schema")}


def _read_what(fields: Fields) -> Scored | Classified | Regressed:
    kind = fields.take("kind", str)
    what: Scored | Classified | Regressed
    if kind == "score":
        what = Scored(fields.take("column", str), fields.optional("score", (str,), str))
    elif kind == "classes":
        columns, classes = _texts(fields, "probabilities"), tuple(fields.take("classes", list))
        positions = fields.take("label_positions", bool)
        what = Classified(tuple(columns), fields.take("label", str), classes, label_positions=positions)
    elif kind == "numbers":
        predictions = _texts(fields, "predictions")
        if len(predictions) not in (1, 2):
            raise FormatError("the counting plan must name one or two columns of predictions")
        named = predictions[0] if len(predictions) == 1 else (predictions[0], predictions[1])
        what = Regressed(named, fields.take("target", str), fields.take("score", str))
    else:
        raise FormatError("the counting plan's columns are of an unknown kind")
    fields.finish()
    return what


def _read_division(fields: Fields | None) -> dict[str, Any]:
    if fields is None:
        return {}
    kind, column, names = fields.take("kind", str), fields.take("column", str), fields.take("names", list)
    fields.finish()
    if kind == "class":
        return {"by_class": True}
    if kind != "group":
        raise FormatError("the counting plan divides records by something unknown")
    return {"by": column, "groups": names}


def _read_people(fields: Fields) -> People:
    most, order = fields.take("most", int), tuple(_texts(fields, "order"))
    people = People(fields.take("person", str), most, order, fields.optional("sample", (str,), str))
    fields.finish()
    return people


def _texts(fields: Fields, key: str) -> list[str]:
    listed: list[Any] = fields.take(key, list)
    if not all(isinstance(one, str) for one in listed):
        raise FormatError(f"the counting plan's field {key!r} must hold texts")
    return listed


def _checksum(content: dict[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
