"""The request of a table that this process never reads, what is counted for it, and the candidates.

Candidates follow from the request only. The query and the calibration therefore count over the same candidates. If a
noisy number of records is released, they are the union of the lists among which its design chooses.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Unpack

from confide.candidates import AnyCandidates, Candidates, Spread, spread_of
from confide.core import (
    LONGEST,
    By,
    GivenCounts,
    Options,
    Release,
    Request,
    is_several,
    prepare,
    release,
    split_options,
)
from confide.counting import ScoreHistogram
from confide.errors import FormatError, InputError, InputTypeError
from confide.scores import SCORE
from confide.support import (
    Described,
    Fields,
    FileLocation,
    Form,
    Level,
    Section,
    canonical_name,
    check_names,
    positive_integer,
    read_as,
    refuse_first_of_pair,
    shapes,
    write_text,
)
from confide.tables import (
    SIDES,
    ClassColumns,
    ColumnSpec,
    ContributionBound,
    ScoreColumn,
    TargetColumns,
    class_keys,
)

OPTIONS = ("rho", "neighbors", "n_min", "delta", "records_per_person", "mechanism", "epsilon", "unit")
"""The options of `calibrate` that a plan contains."""

Names = tuple[str | int, ...]

_ELSEWHERE = "compute it where the model runs, keep it in a column, and count that with --score-column"


@dataclass(frozen=True)
class CountingPlan(Described):
    """A request, and what a warehouse counts for it; created by `CountingPlan.of`.

    Parameters
    ----------
    what
        The columns of the score; for `ClassColumns` one column per class, named one by one.
    request
        The request, the same as for a table.
    n
        The public number of records under `replace_one`, otherwise None.
    column
        The column with the group or class of each record, if each gets a threshold, or None.
    people
        The bound on the number of records that count for each person, or None.
    skip_incomplete
        Whether records with missing values are left out.
    """

    what: ScoreColumn | ClassColumns | TargetColumns
    request: Request
    n: int | None = None
    column: str | None = None
    people: ContributionBound | None = None
    skip_incomplete: bool = False

    @classmethod
    def of(
        cls,
        what: ColumnSpec,
        alpha: Level | Sequence[Level],
        epsilon: float | None = None,
        *,
        by: str | None = None,
        groups: Sequence[str | int] | None = None,
        by_class: bool = False,
        n: int | None = None,
        candidates: AnyCandidates = None,
        people: ContributionBound | None = None,
        skip_incomplete: bool = False,
        **options: Unpack[Options],
    ) -> "CountingPlan":
        """Check a request, choose candidates, compute the cost as `calibrate_table` does; nothing is read or charged.

        Parameters
        ----------
        what
            `ScoreColumn`, `ClassColumns` (LAC; each of `classes` is inserted into its pattern) or `TargetColumns`.
        n
            The public number of records. It is required under `replace_one`, where candidates follow from it.
        alpha, epsilon, by, groups, by_class, candidates, people, skip_incomplete, **options
            As in `calibrate_table`; a plan accepts some of its options. Candidates must be of a kind with a recipe.

        Raises
        ------
        InputError, InputTypeError
            If an argument cannot be used, or a score cannot be computed in SQL.

        Examples
        --------
        >>> plan = CountingPlan.of(ClassColumns("p_*", "y", ("cat", "dog")), 0.1, 1.0)
        >>> plan.what.probabilities, plan.bins > 30
        (('p_cat', 'p_dog'), True)
        """
        counted = _in_sql(what)
        if unknown := sorted(set(options) - {*OPTIONS}):
            raise InputError("options", f"must be among {', '.join(OPTIONS)}", got=str(", ".join(unknown)))
        request_options: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        if people is not None:
            stated = request_options.get("records_per_person")
            request_options["records_per_person"] = people.bound(None if stated == 1 else stated)
        several = is_several(alpha)
        levels = tuple(alpha) if several else (alpha,)  # type: ignore[arg-type]
        if not levels:
            raise InputError("alpha", "must be one level or more", got="none")
        scores = _scores(counted)
        column, divided = _division(counted, by, groups, by_class)
        several_of: dict[By, bool] = {"level": len(levels) > 1, "side": len(scores) > 1}
        kinds = [*divided, *(name for name, asks in several_of.items() if asks)]
        if len(kinds) > 1:
            raise InputError(
                "by", "only one of several levels, groups or classes, and two sides can be requested", got="more"
            )
        request = Request(
            alpha=levels if len(levels) > 1 else levels[0],
            epsilon=epsilon,
            by=kinds[0] if kinds else None,
            names=next(iter(divided.values()), ()),
            score=None if len(scores) > 1 else scores[0],
            classes=counted.classes if isinstance(counted, ClassColumns) else None,
            candidates=candidates,
            **request_options,
        )
        if n is not None:
            positive_integer("n", n)
            if not request.public_n:
                raise InputError("n", "must be left out: the number of records, or of those in each group, is secret")
        elif request.public_n:
            raise InputError("n", "must be given where the number of records is public: candidates follow from it")
        if not request.counted_over(n).is_built:
            raise InputError(
                "candidates", "must be spread, or made by a recipe: a list of your own does not fit a plan"
            )
        prepare(request, n)
        return cls(counted, request, n, column, people, skip_incomplete)

    @cached_property
    def candidates(self) -> Candidates:
        """The candidates over which scores are counted."""
        return self._bounded.counted_over(self.n)

    @cached_property
    def _bounded(self) -> Request:
        """The request, with lists of candidates for which a query does not exceed the limits of engines."""
        request, spread = self.request, next(iter(self.request.terms.values())).spread
        if not isinstance(spread, Spread) or request.counted_over(self.n).recipe["size"] <= LONGEST:
            return request
        return replace(request, candidates=replace(spread, most=LONGEST), unit=None)

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
        """The parts with separate counts, in the order of `part` in the query: groups, classes, sides, or one part."""
        return self.scores if self.column is None else tuple(self.request.names)

    @property
    def numbers(self) -> list[str]:
        """The columns of the score that are read as numbers."""
        what = self.what
        if isinstance(what, ScoreColumn):
            return [what.column]
        return list(what.probabilities) if isinstance(what, ClassColumns) else [*what.predictions, str(what.target)]

    @property
    def labels(self) -> list[str]:
        """The column of labels, if the score needs one."""
        return [str(self.what.label)] if isinstance(self.what, ClassColumns) else []

    @property
    def bins(self) -> int:
        """The number of bins, which are counted from 0."""
        return self.candidates.size

    @cached_property
    def digest(self) -> str:
        """Twelve digits that identify the counts and the candidates; every returned row contains them."""
        text = json.dumps(self._counted | {"edges": self.candidates.digest}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def _counted(self) -> dict[str, Any]:
        """The counts and candidates as plain values; plans with equal values have the same counts."""
        return shapes.write_shape(self, _COUNTED)

    def calibrate(self, counted: Mapping[Any, ScoreHistogram], **more: Unpack[Options]) -> Release:
        """Make the requested release from the counts of `read_counts`; `more` is `ledger`, `dataset`, `about`, etc.

        Raises
        ------
        InputError
            If the number of records is not `n` under `replace_one`. Then nothing was released or charged.

        Examples
        --------
        >>> import numpy as np
        >>> plan = CountingPlan.of(ScoreColumn("s", "lac"), 0.1, 1.0, neighbors="replace_one", n=3000)
        >>> counts = ScoreHistogram.from_scores(np.linspace(0, 1, 3000), plan.candidates)
        >>> plan.calibrate({"lac": counts}).score
        'lac'
        """
        if self.n is not None and any(one.total != self.n for one in counted.values()):
            raise InputError(
                "n", f"must be the number of records that count: n={self.n} was given, and found is another"
            )
        payer, options = split_options("CountingPlan.calibrate", more, "partition")
        if self.people is not None:
            payer = replace(payer, dataset=self.people.payer(payer.dataset))
        rows = dict(counted) if set(counted) == set(self.request.rows) else {None: next(iter(counted.values()))}
        released = release(GivenCounts(rows), replace(self._bounded, **options), payer)
        return replace(released, request=replace(self.request, **options).stated())

    def _section(self) -> Section:
        request = self.request
        loss = f"epsilon {request.epsilon:g}" if request.rho is None else f"rho {request.rho:g}"
        rows = [
            ("score", ", ".join(map(str, self.scores))),
            ("columns", ", ".join([*self.numbers, *self.labels])),
            ("candidates", str(self.bins)),
            ("alpha", ", ".join(f"{float(alpha):g}" for alpha in self._levels)),
            ("loss", f"{loss}, {request.neighbors}" if request.mechanism != "none" else "NOT PRIVATE"),
            ("records", str(self.n or ("secret; a noisy number is released first" if request.sized else "secret"))),
        ]
        if request.delta is not None:
            rows.append(("delta", f"{float(request.delta):g}"))
        if self.column is not None:
            rows.append(("by", f"{request.by} {self.column}: {len(request.names)} of them"))
        if self.people is not None:
            rows.append(("records per person", f"{self.people.most}, by {self.people.person}"))
        return Section("Counting plan", f"counting plan {self.digest}", parts=(Section("", facts=tuple(rows)),))

    @property
    def _levels(self) -> tuple[Fraction, ...]:
        return self.request.alpha if self.request.by == "level" else (self.request.alpha,)

    def to_json(self) -> str:
        """The plan as a JSON document with a schema version and a checksum; it contains nothing private."""
        options = {name: getattr(self.request, name) for name in OPTIONS}
        options["delta"] = None if self.request.delta is None else str(self.request.delta)
        levels = list(map(str, self._levels))
        return _FORM.write({"digest": self.digest, **self._counted, "alpha": levels, "n": self.n, **options})

    @classmethod
    def from_json(cls, text: str) -> "CountingPlan":
        """Read the output of `to_json`, and check it again.

        Raises
        ------
        FormatError
            If the text is not such a plan, is damaged or of another schema, or contains an invalid request.

        Examples
        --------
        >>> plan = CountingPlan.of(ScoreColumn("s"), 0.1, 1.0)
        >>> CountingPlan.from_json(plan.to_json()) == plan
        True
        """
        return _FORM.read(text, _read)

    def save(self, path: str | FileLocation, *, overwrite: bool = False) -> None:
        """Write `to_json()` to a file, atomically."""
        write_text(path, self.to_json(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | FileLocation) -> "CountingPlan":
        """Read a file written by `save`."""
        return read_as(path, cls.from_json)


def _scores(what: ColumnSpec) -> tuple[str | None, ...]:
    return tuple(kind.name for kind in what.kinds) if isinstance(what, TargetColumns) else (what.kind.name,)


def _in_sql(what: ColumnSpec) -> ScoreColumn | ClassColumns | TargetColumns:
    """The same columns with all names, for a score that SQL computes."""
    if isinstance(what, ScoreColumn):
        return what
    if isinstance(what, TargetColumns):
        if what.target is None:
            raise InputError("target", "must be given: the column of the true numbers")
        named = {kind.name for kind in what.kinds}
        if not named <= {"absolute_residual", "cqr", "cqr_low", "cqr_high"}:
            raise InputError("score", f"{what.score!r} is not computed in SQL", remedy=_ELSEWHERE)
        needed = 1 if named == {"absolute_residual"} else 2
        if len(what.predictions) != needed:
            raise InputError("prediction", f"must name {needed} column(s) for the score {what.kind.name!r}")
        return replace(what, score=SIDES if len(named) > 1 else what.kind.name)
    if not isinstance(what, ClassColumns):
        raise InputError("losses", "losses, and sets of several labels, are not computed in SQL", remedy=_ELSEWHERE)
    if what.logits:
        raise InputError("logits", "must be left out: their softmax is not computed in SQL", remedy=_ELSEWHERE)
    if what.score != "lac":
        raise InputError("score", f"{what.score!r} is not computed in SQL, which has lac", remedy=_ELSEWHERE)
    if what.label is None:
        raise InputError("label", "must be given: the column of the true classes")
    if what.classes is None:
        raise InputError("classes", "must be given, all of them: no table is read that has their names")
    classes = check_names("classes", what.classes)
    return replace(what, classes=classes, probabilities=_columns(what.probabilities, classes))


def _columns(named: str | tuple[str, ...], classes: Names) -> tuple[str, ...]:
    """One column per class, or for two classes the column of the second."""
    if isinstance(named, str) and named.count("*") == 1:
        return tuple(named.replace("*", canonical_name(name)) for name in classes)
    columns = (named,) if isinstance(named, str) else tuple(named)
    if len(columns) == 1:
        refuse_first_of_pair(columns[0], classes)
    if len(columns) != len(classes) and (len(columns), len(classes)) != (1, 2):
        raise InputError(
            "probabilities",
            "must name one column per class, as 'p_*' or 'p_a,p_b'",
            got=f"{len(columns)} for {len(classes)} classes",
            remedy="Of a column of lists, make a view with a column for each entry",
        )
    return columns


def _division(
    what: ColumnSpec, by: str | None, groups: Sequence[str | int] | None, by_class: bool
) -> tuple[str | None, dict[By, Names]]:
    """The column that divides the records, and the names of its groups or classes."""
    if by_class:
        if by is not None or groups is not None:
            raise InputError("by", "by and groups must be left out with by_class")
        if not isinstance(what, ClassColumns) or what.label is None or what.classes is None:
            raise InputError("by_class", "needs the probabilities and the label of every record")
        return what.label, {"class": class_keys(tuple(what.classes))}
    if by is None and groups is None:
        return None, {}
    if by is None or groups is None:
        raise InputError("by", "by and groups must be given together: a column, and the public list of its values")
    if not isinstance(by, str) or isinstance(groups, Mapping):
        raise InputError("by", "must name one column: a query counts groups that divide the records", got="several")
    if isinstance(groups, str):
        raise InputTypeError("groups", "must be a list of names", got="one text")
    return by, {"group": check_names("groups", groups)}


def _columns_shape(content: Mapping[str, Any]) -> shapes.Shape:
    """The fields of the columns of a score, by kind."""
    kind = content.get("kind")
    known = kind if isinstance(kind, str) and kind in _COLUMNS else None
    return {"kind": shapes.choice(*_COLUMNS), **({} if known is None else _COLUMNS[known])}


def _read_columns(values: dict[str, Any]) -> ScoreColumn | ClassColumns | TargetColumns:
    match values.pop("kind"):
        case "score":
            return ScoreColumn(**values)
        case "classes":
            return ClassColumns(**values)
    named = values.pop("predictions")
    if len(named) not in (1, 2):
        raise InputError("predictions", "must name one or two columns")
    return TargetColumns(named[0] if len(named) == 1 else named, **values)


def _write_columns(what: ScoreColumn | ClassColumns | TargetColumns) -> dict[str, Any]:
    kind = {ScoreColumn: "score", ClassColumns: "classes", TargetColumns: "numbers"}[type(what)]
    return {"kind": kind, **shapes.write_shape(what, _COLUMNS[kind])}


def _read_division(values: dict[str, Any]) -> dict[str, Any]:
    if values["kind"] == "class":
        return {"by_class": True}
    return {"by": values["column"], "groups": values["names"]}


def _read_candidates(recipe: dict[str, Any]) -> Candidates | Spread:
    if recipe.get("kind") == "spread" and "size" not in recipe:
        most = recipe.pop("most", None)
        return replace(spread_of(Candidates.from_recipe({**recipe, "size": LONGEST}).recipe), most=most)
    return Candidates.from_recipe(recipe)


def _write_candidates(candidates: Candidates | Spread) -> dict[str, Any]:
    """A recipe; without a size for a spread, of which the design chooses a list."""
    if isinstance(candidates, Candidates):
        return dict(candidates.recipe)
    most = {} if candidates.most is None else {"most": candidates.most}
    recipe = Candidates.quantiles(candidates, LONGEST).recipe
    return {name: value for name, value in recipe.items() if name != "size"} | most


def _write_division(plan: CountingPlan) -> dict[str, Any] | None:
    if plan.column is None:
        return None
    return {"kind": plan.request.by, "column": plan.column, "names": list(plan.request.names)}


_NAMES = shapes.Field("a list of names", (list,), tuple, list)
_BOOL = shapes.Field("true or false", (bool,))
_COLUMNS: Mapping[str, shapes.Shape] = {
    "score": shapes.shape_of(ScoreColumn, score=shapes.nullable(SCORE)),
    "classes": {
        "probabilities": shapes.listed(shapes.TEXT),
        "classes": _NAMES,
        "label": shapes.TEXT,
        "label_positions": _BOOL,
    },
    "numbers": {"predictions": shapes.listed(shapes.TEXT), "target": shapes.TEXT, "score": shapes.TEXT},
}
_COUNTED: shapes.Shape = {
    "columns": shapes.Field(
        "columns of a score", (dict,), _read_columns, _write_columns, attribute="what", shape=_columns_shape
    ),
    "candidates": shapes.Field(
        "candidates that a recipe makes",
        (dict,),
        _read_candidates,
        _write_candidates,
        null=True,
        attribute="request.candidates",
    ),
    "by": shapes.Field(
        "a division of records",
        (dict,),
        _read_division,
        _write_division,
        null=True,
        attribute="",
        shape=lambda _: {"kind": shapes.choice("group", "class"), "column": shapes.TEXT, "names": _NAMES},
    ),
    "people": shapes.nullable(shapes.record(ContributionBound, shapes.shape_of(ContributionBound))),
    "skip_incomplete": _BOOL,
}
"""The fields that determine the counts and the candidates."""
_SHAPE: shapes.Shape = {
    "digest": shapes.TEXT,
    **_COUNTED,
    "alpha": shapes.listed(shapes.TEXT),
    "n": shapes.nullable(shapes.INTEGER),
    **dict.fromkeys(OPTIONS, shapes.optional(shapes.Field("a text or a number", (str, int, float), null=True))),
}
_FORM = Form(
    "confide/counting-plan",
    "counting_plan",
    hint="`CountingPlan.save` writes one",
    most_characters=10_000_000,
)


def _read(fields: Fields) -> CountingPlan:
    values = shapes.read_shape(fields, _SHAPE)
    names = ("digest", "columns", "by", "alpha")
    digest, what, division, levels = (values.pop(name) for name in names)
    alpha = levels[0] if len(levels) == 1 else levels
    made = CountingPlan.of(what, alpha, **(division or {}), **values)
    if made.digest != digest:
        raise FormatError("counting_plan.digest", "must be that of the stated counts", remedy="Get the original")
    return made
