"""An evaluation that is not private: value, text and JSON.

A file contains shares and intervals for its readers. The library recomputes them from the counts, and raises
`FormatError` if counts contradict each other.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypedDict

from confide.core import Release
from confide.errors import ConfideError, FormatError, InputError
from confide.evaluation.parts import (
    CONFIDENCE,
    MOST_NAMED,
    SIDES,
    Division,
    Part,
    PartName,
    WorstPart,
    exact_parts,
    surely_below,
    worst_part,
)
from confide.guarantee import coverage_text
from confide.sets import CoverageEstimate, Shortfall, count_limit, count_shortfall, coverage_from_counts
from confide.support import (
    SCHEMA,
    Described,
    Facts,
    Fields,
    Level,
    Section,
    check_schema,
    exact_level,
    foreign_file,
    parse_object,
    shapes,
    short_number,
)
from confide.support import FileKind as FileKind

_SHOWN = {
    "mean_size": "classes per set, on average",
    "singletons": "sets with one class",
    "empty": "sets without any",
    "mean_width": "width of intervals, on average",
}
_SHARES = ("singletons", "empty")
_MOST_SUBGROUPS = 30


def described(found: "Evaluation", promise: str, loss: tuple[str, float] | None = None, title: str = "") -> Section:
    """Coverage, promise, sizes, and parts with their own thresholds.

    For risk control `loss` gives the name and the largest value of the loss, which is shown instead of coverage.
    """
    rows = list(total_facts(found, promise, loss))
    own: Sequence[Part] = found.classes if found.by == "class" else found.groups
    below = set(surely_below(own, found.promised))
    rows += [(f"{found.by} {part.name}" if found.by != "side" else part.name, _own(part, below)) for part in own]
    broken = () if found.shortfall is None else (found.shortfall.sentence,)
    if loss is not None:
        return Section(title, facts=(*rows, *_subgroup_losses(found, loss[1])), warnings=broken)
    below = set(surely_below(found.subgroups, found.promised))
    rows += [(f"group {part.name}", _own(part, below, found.promised)) for part in _least_covered(found.subgroups)]
    rows += worst_facts(found, (*own, *found.subgroups))  # these have their rows
    notes = tuple(one.sentence for one in worst_parts(found) if one.below)
    return Section(title, facts=tuple(rows), warnings=broken, notes=notes)


def promise_text(found: "Evaluation", release: Release) -> str:
    """The promise of the evaluated release; for the two ends of intervals, that of both together."""
    if release.by == "side":
        return found._promise
    return "; ".join(f"for {name}: {text}" if name else text for name, text in release.promises.items())


def total_facts(found: "Evaluation", promise: str, loss: tuple[str, float] | None = None) -> Facts:
    """Coverage of all records, or their loss, the promise, and the sizes of all sets or intervals."""
    c = found.coverage
    first = ("coverage", str(c)) if loss is None else (f"loss {loss[0]!r}", _loss(c, loss[1]))
    sizes = ((name, getattr(found, name)) for name in _SHOWN)
    texts = {name: f"{100 * v:.1f} %" if name in _SHARES else short_number(v) for name, v in sizes if v is not None}
    return (first, ("promise", promise), *((_SHOWN[name], text) for name, text in texts.items()))


def worst_facts(found: "Evaluation", others: Collection[Part] = ()) -> Facts:
    """The least covered part of each kind, unless it is among the others."""
    return tuple(row for one in worst_parts(found) if one.part not in others for row in _worst(one))


def _least_covered(parts: Sequence[Part]) -> Sequence[Part]:
    """All parts, or the least covered ones, the worst first, if there are very many."""
    if len(parts) <= _MOST_SUBGROUPS:
        return parts
    return sorted(parts, key=lambda part: part.coverage.value)[:_MOST_SUBGROUPS]


def _worst(one: WorstPart) -> list[tuple[str, str]]:
    """Rows of the least covered part, and of other parts that are below the promise beyond chance."""
    others = [part for part in one.below if part != one.part][:MOST_NAMED]
    return [
        (f"worst {one.kind}", f"{one.part.name}: {_against(one.part, one)}"),
        *((f"{one.kind} {part.name}", _against(part, one)) for part in others),
    ]


def _against(part: Part, one: WorstPart) -> str:
    promised = one.promised if part.promised is None else part.promised
    return f"{part.coverage}{_below(promised) if part in one.below else ''}"


def _below(promised: float) -> str:
    return f", below {coverage_text(promised)} beyond chance"


def _subgroup_losses(found: "Evaluation", bound: float) -> list[tuple[str, str]]:
    """Loss of each group, for risk control."""
    above = surely_below(found.subgroups, found.promised)
    return [
        (
            f"group {part.name}",
            _loss(part.coverage, bound) + (", above what is promised beyond chance" if part in above else ""),
        )
        for part in _least_covered(found.subgroups)
    ]


def _loss(c: CoverageEstimate, bound: float) -> str:
    loss, low, high = (bound * (1 - share) for share in (c.value, c.high, c.low))
    return f"{loss:.3f} ({100 * c.confidence:g} % interval {low:.3f} to {high:.3f}, n={c.n})"


def _own(part: Part, below: Collection[Part] = (), promised: float | None = None) -> str:
    """Row of a part, with its own promise; `promised` is the common promise otherwise."""
    size = "" if part.mean_size is None else f", {short_number(part.mean_size)} classes per set"
    width = "" if part.mean_width is None else f", width {short_number(part.mean_width)}"
    own = "" if part.promised is None else f"; coverage at least {coverage_text(part.promised)} is promised"
    level = part.promised if promised is None else promised
    short = _below(level) if part in below and level is not None else ""
    return f"{part.coverage}{size}{width}{own}{short}"


KIND = "confide/evaluation"
MOST_EXAMPLES = 1000
NOT_PRIVATE = "These numbers are computed from the records without noise: they are not private."


@dataclass(frozen=True)
class Example:
    """A record that the user chose to show: its set, its true label, and its group if groups have thresholds."""

    members: tuple[str, ...]
    truth: str
    group: str | None = None


@dataclass(frozen=True, repr=False)
class Evaluation(Described):
    """Coverage and sizes on labelled records. All numbers are computed from the records without noise.

    Parameters
    ----------
    calibration
        SHA-256 of the release's JSON.
    promised
        Coverage that the release guarantees.
    coverage
        Share of records whose true label is covered, with its exact interval.
    mean_size, singletons, empty
        Mean number of classes in a set, share of sets with one class, share of empty sets; None without sets.
    mean_width
        Mean width of the intervals; None without intervals.
    classes, sizes
        Classes that occur, and set sizes that occur; empty without sets.
    groups
        Groups that occur, or the two ends of intervals, if each has its own threshold.
    by
        Kind of the parts with their own thresholds; None if the release has one threshold.
    examples
        Records that the user chose to show; usually empty.
    subgroups
        Groups of records, by any column, without thresholds of their own. They show which groups are covered less.
    shortfall
        Finding that coverage over all records lies below the promise by more than chance in calibration explains; else
        None. It follows from the counts and the release, and is not stored in files.
    """

    calibration: str
    promised: float
    coverage: CoverageEstimate
    mean_size: float | None = None
    singletons: float | None = None
    empty: float | None = None
    mean_width: float | None = None
    classes: tuple[Part, ...] = ()
    sizes: tuple[Part, ...] = ()
    groups: tuple[Part, ...] = ()
    by: Division | None = None
    examples: tuple[Example, ...] = ()
    subgroups: tuple[Part, ...] = ()
    shortfall: Shortfall | None = field(default=None, compare=False)

    def _section(self) -> Section:
        return Section("Evaluation", parts=(described(self, self._promise),), notes=(NOT_PRIVATE,))

    def with_shortfall(self, release: Release) -> "Evaluation":
        """Return a copy with its shortfall, computed from the evaluated release; files do not contain it."""
        c = self.coverage
        return replace(self, shortfall=count_shortfall(release, round(c.value * c.n), c.n))

    @property
    def shortfalls(self) -> dict[str, Shortfall]:
        """The shortfall under the name "", or no entry; the form is that of several levels."""
        return {} if self.shortfall is None else {"": self.shortfall}

    @property
    def _promise(self) -> str:
        return f"coverage at least {coverage_text(self.promised)}"

    def _brief(self) -> str:
        size = "" if self.mean_size is None else f", mean size {self.mean_size:.4g}"
        width = "" if self.mean_width is None else f", mean width {self.mean_width:.4g}"
        short = "" if self.shortfall is None else ", SURELY LESS THAN PROMISED"
        return f"coverage {self.coverage}, {coverage_text(self.promised)} is promised{short}{size}{width}, not private"

    def to_json(self) -> str:
        """Return the evaluation as a JSON document with a schema version."""
        return _json(self.fields())

    def fields(self) -> dict[str, Any]:
        """JSON values; fields that do not apply are left out."""
        return {**_HEADER, **self.counted_fields()}

    def counted_fields(self) -> dict[str, Any]:
        """JSON values without the header."""
        return shapes.write_shape(self, _COUNTED)


@dataclass(frozen=True, repr=False)
class LevelEvaluation(Described):
    """Coverage and sizes at several levels, on the same records.

    Parameters
    ----------
    calibration
        SHA-256 of the release's JSON.
    levels
        Miscoverage level to `Evaluation`, levels decreasing; each contains the checksum of its own level.
    """

    calibration: str
    levels: Mapping[Fraction, Evaluation] = field(hash=False)

    def __post_init__(self) -> None:
        ordered = dict(sorted(self.levels.items(), reverse=True))
        found = list(ordered.values())
        if not found or len({(one.coverage.n, len(one.examples)) for one in found}) != 1:
            raise InputError("levels", "must be one or more evaluations of the same records")
        shares = [one.coverage.value for one in found]
        if shares != sorted(shares):
            raise InputError("levels", "must cover more at a smaller alpha", got="a smaller alpha that covers less")
        object.__setattr__(self, "levels", MappingProxyType(ordered))

    def with_shortfall(self, release: Release) -> "LevelEvaluation":
        """Return a copy with the shortfall of each level, computed from the evaluated release."""
        return replace(
            self, levels={alpha: one.with_shortfall(release.at(alpha)) for alpha, one in self.levels.items()}
        )

    @property
    def shortfalls(self) -> dict[str, Shortfall]:
        """Levels that cover less than promised beyond chance, by name."""
        return {f"alpha {float(a):g}": one.shortfall for a, one in self.levels.items() if one.shortfall is not None}

    def __getitem__(self, alpha: Level) -> Evaluation:
        level = exact_level("alpha", alpha)
        if level not in self.levels:
            known = ", ".join(f"{float(a):g}" for a in self.levels)
            raise InputError("alpha", f"must be one of the levels {known}", got=f"{float(level):g}")
        return self.levels[level]

    def __iter__(self) -> Iterator[Fraction]:
        return iter(self.levels)

    def __len__(self) -> int:
        return len(self.levels)

    def _section(self) -> Section:
        return Section(
            "LevelEvaluation",
            parts=tuple(
                described(one, one._promise, title=f"alpha {float(alpha):g}") for alpha, one in self.levels.items()
            ),
            notes=(NOT_PRIVATE,),
        )

    def _brief(self) -> str:
        levels = ", ".join(f"alpha {float(alpha):g}: {one.coverage.value:.3f}" for alpha, one in self.levels.items())
        short = ", SURELY LESS THAN PROMISED" if self.shortfalls else ""
        return f"coverage {levels}{short}, n={next(iter(self.levels.values())).coverage.n}, not private"

    def to_json(self) -> str:
        """Return the evaluation as a JSON document with a schema version."""
        return _json(self.fields())

    def fields(self) -> dict[str, Any]:
        """JSON values."""
        return {**_HEADER, **shapes.write_shape(self, _LEVELS)}


_HEADER = {"kind": KIND, "schema": SCHEMA, "private": False}


class Sizes(TypedDict, total=False):
    """Sizes of all sets together."""

    mean_size: float
    singletons: float
    empty: float


def shares(classes: Sequence[Part], sizes: Sequence[Part], n: int) -> Sizes:
    """Mean size, and shares of sets with one class and of empty sets, from the parts."""
    having = {part.name: part.n for part in sizes}
    return {
        "mean_size": sum(part.members or 0 for part in classes) / n,
        "singletons": having.get("1", 0) / n,
        "empty": having.get("0", 0) / n,
    }


def worst_parts(found: Evaluation) -> tuple[WorstPart, ...]:
    """Least covered class, group and set size of an evaluation, with all parts below the promise beyond chance.

    Empty sets are left out, because they cover no record; their share is reported separately.

    Examples
    --------
    >>> import confide, numpy as np
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> p = np.tile([0.99, 0.01], (200, 1))
    >>> worst, *_ = worst_parts(confide.evaluate_sets(released, p, ["cat"] * 100 + ["dog"] * 100, ["cat", "dog"]))
    >>> worst.part.name, worst.sentence
    ('dog', '1 of 2 classes is covered less than 0.9 beyond chance (95 %, all classes at once): dog.')
    """
    kinds: tuple[tuple[PartName, tuple[Part, ...]], ...] = (
        ("class", found.classes),
        ("end" if found.by == "side" else "group", found.groups),
        ("group", found.subgroups),
        ("set size", tuple(part for part in found.sizes if part.name != "0")),
    )
    broken = found.shortfall is not None
    return tuple(worst_part(kind, parts, found.promised, broken=broken) for kind, parts in kinds if parts)


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


# As JSON

MOST_PARTS = 100_000
MOST_LEVELS = 1000
_MOST_RECORDS, _MOST_MEMBERS = 2**48, 2**62
_NOT_READ = ("worst", "warnings", "left_out", "shortfalls")
"""Further fields of `confide evaluate --json`, which follow from the rest or describe the run."""


def _covers(values: Mapping[str, Any]) -> bool:
    covers: bool = values["covered"] <= values["n"]
    return covers


def _read_parts(rows: Sequence[Mapping[str, Any]]) -> tuple[Part, ...]:
    """Parts with recomputed shares and intervals."""
    if not 0 < len(rows) <= MOST_PARTS or not all(map(_covers, rows)):
        raise ValueError
    parts = exact_parts(
        [row["name"] for row in rows],
        [(row["n"], row["covered"], 0.0) for row in rows],
        [row["promised"] for row in rows],
    )
    return tuple(
        replace(part, members=row["members"], mean_width=row["mean_width"])
        for part, row in zip(parts, rows, strict=True)
    )


_RECORDS = {"n": shapes.integer(_MOST_RECORDS), "covered": shapes.integer(_MOST_RECORDS, 0)}
_WIDTH = shapes.optional(shapes.or_infinite(shapes.number()))
_PART: shapes.Shape = {
    "name": shapes.TEXT,
    **_RECORDS,
    "members": shapes.optional(shapes.integer(_MOST_MEMBERS, 0)),
    "promised": shapes.optional(shapes.number(0, 1)),
    "mean_width": _WIDTH,
    "coverage": replace(shapes.number(), attribute="value"),
    "low": shapes.number(),
    "high": shapes.number(),
}
_PARTS = shapes.Field(
    f"a list of 1 to {MOST_PARTS} parts, each of which covers at most its records",
    (list,),
    _read_parts,
    lambda parts: [shapes.write_shape(part, _PART) for part in parts],
    optional=True,
    entry=shapes.Field("a part", (dict,), shape=_PART),
)
_TOTAL: shapes.Shape = {
    **{name: shapes.number() for name in ("value", "low", "high", "confidence")},
    **_RECORDS,
}
_COUNTED: shapes.Shape = {
    "calibration": shapes.TEXT,
    "promised": shapes.number(0, 1),
    "coverage": shapes.Field(
        "counts of records that cover at most all of them",
        (dict,),
        shapes.reads_if(_covers),
        lambda found: {**asdict(found), "covered": round(found.value * found.n)},
        shape=lambda _: _TOTAL,
    ),
    **{name: shapes.optional(shapes.number()) for name in Sizes.__annotations__},
    "mean_width": _WIDTH,
    **dict.fromkeys(("classes", "sizes", "groups", "subgroups"), _PARTS),
    "by": shapes.optional(shapes.choice("group", "class", "side")),
    "examples": shapes.optional(
        shapes.listed(
            shapes.Field(
                "a record",
                (dict,),
                lambda record: Example(record["set"], record["truth"], record["group"]),
                shape={
                    "set": replace(shapes.listed(shapes.TEXT), attribute="members"),
                    "truth": shapes.TEXT,
                    "group": shapes.optional(shapes.TEXT),
                },
            )
        )
    ),
}


def _evaluation(values: Mapping[str, Any]) -> Evaluation:
    """Evaluation from the fields of a document, whose counts must agree."""
    stated = dict(values)
    for name in ("classes", "sizes", "groups", "subgroups", "examples"):
        stated[name] = stated[name] or ()
    total = stated.pop("coverage")
    n, covered = total["n"], total["covered"]
    sets = {name: stated.pop(name) for name in Sizes.__annotations__}
    promised, high = stated["promised"], count_limit(covered, n)
    found = Evaluation(
        **stated,
        coverage=coverage_from_counts(covered, n, CONFIDENCE),
        shortfall=Shortfall(covered / n, high, n, promised, "not read") if high < promised else None,
    )
    if any((value is not None) != bool(found.sizes) for value in sets.values()):
        raise FormatError("evaluation.sizes", f"must be stated where {', '.join(sets)} are, and only there")
    _check_parts(found, n, covered)
    return replace(found, **shares(found.classes, found.sizes, n)) if found.sizes else found


def _check_parts(found: Evaluation, n: int, covered: int) -> None:
    """Raise `FormatError` if parts contradict each other or the whole."""
    if (found.by in ("group", "side")) != bool(found.groups):
        raise FormatError("evaluation.by", "must be 'group' or 'side' if and only if there are groups")
    has_sets, members = bool(found.sizes), sum(part.members or 0 for part in found.sizes)
    for name in ("classes", "sizes", "subgroups", *(["groups"] if found.by == "group" else [])):
        parts: tuple[Part, ...] = getattr(found, name)
        if not parts:
            continue
        if any((part.members is not None) != has_sets for part in parts):
            raise FormatError(
                f"evaluation.{name}", "must count labels in sets if and only if the evaluation is of sets"
            )
        times = max(1, sum(part.n for part in parts) // n) if name == "groups" else 1  # once for each column of groups
        if sum(part.n for part in parts) != times * n or sum(part.covered for part in parts) != times * covered:
            raise FormatError(f"evaluation.{name}", "must add up to all records, and to all covered records")
        if has_sets and sum(part.members or 0 for part in parts) != times * members:
            raise FormatError(f"evaluation.{name}", "must add up to the labels in all sets")
    if found.by == "side":
        _check_sides(found.groups, n, covered)
    if has_sets:
        _check_sizes(found)
    if len(found.examples) > min(MOST_EXAMPLES, n):
        raise FormatError("evaluation.examples", f"must be at most {MOST_EXAMPLES}, and no more than the records")


def _check_sides(ends: Sequence[Part], n: int, covered: int) -> None:
    """Check the two ends of intervals; a true value is covered if both hold."""
    if tuple(part.name for part in ends) != SIDES or any(part.n != n for part in ends):
        raise FormatError("evaluation.groups", "must be the lower and the upper end of the intervals of all records")
    low, high = (part.covered for part in ends)
    if not max(0, low + high - n) <= covered <= min(low, high):
        raise FormatError("evaluation.groups", "must be ends that both hold for the covered records")


def _check_sizes(found: Evaluation) -> None:
    if not found.classes or found.mean_width is not None:
        raise FormatError("evaluation.sizes", "must be stated with classes and without mean_width")
    for part in found.sizes:
        if not (part.name.isascii() and part.name.isdigit() and len(part.name) < 10):
            raise FormatError("evaluation.sizes", "must be named by numbers")
        if part.members != int(part.name) * part.n or (part.name == "0" and part.covered):
            raise FormatError(
                "evaluation.sizes", "must have as many labels as their names state; empty sets cover no label"
            )
    if len({int(part.name) for part in found.sizes}) != len(found.sizes):
        raise FormatError("evaluation.sizes", "must be different numbers")


def _read_levels(rows: Sequence[dict[str, Any]]) -> dict[Fraction, Evaluation]:
    if len(rows) > MOST_LEVELS:
        raise ValueError
    levels = {row.pop("alpha"): _evaluation(row) for row in rows}
    if len(levels) != len(rows):
        raise FormatError("evaluation.levels", "must be different")
    return levels


def _write_levels(levels: Mapping[Fraction, Evaluation]) -> list[dict[str, Any]]:
    return [{"alpha": str(alpha), **one.counted_fields()} for alpha, one in levels.items()]


_LEVELS: shapes.Shape = {
    "calibration": shapes.TEXT,
    "levels": shapes.Field(
        f"a list of at most {MOST_LEVELS} levels",
        (list,),
        _read_levels,
        _write_levels,
        entry=shapes.Field("an evaluation at a level", (dict,), shape={"alpha": shapes.LEVEL, **_COUNTED}),
    ),
}
_HEAD: shapes.Shape = {
    "kind": shapes.choice(KIND),
    "schema": shapes.integer(SCHEMA),
    "private": shapes.Field("false", (bool,), shapes.reads_if(lambda private: not private)),
}


def read_evaluation(text: str) -> Evaluation | LevelEvaluation:
    """Read an evaluation, of one level or of several.

    Raises
    ------
    FormatError
        If the text is not an evaluation, or contradicts itself.
    """
    try:
        content = parse_object(text)
    except (TypeError, ValueError):
        raise FormatError("file", "must be an evaluation, as one JSON object") from None
    check_schema(content, KIND, "evaluation")
    if content.get("kind") != KIND:
        raise foreign_file(text, FileKind.EVALUATION, "Make one with `confide evaluate --out FILE`")
    fields = Fields("evaluation", {name: value for name, value in content.items() if name not in _NOT_READ})
    shape: shapes.Shape = {**_HEAD, **(_LEVELS if "levels" in fields else _COUNTED)}
    values = shapes.read_shape(fields, shape)
    values = {name: value for name, value in values.items() if name not in _HEAD}
    try:
        return LevelEvaluation(**values) if "levels" in values else _evaluation(values)
    except FormatError:
        raise
    except ConfideError as error:
        raise FormatError(f"evaluation.{error.argument}", error.requirement, error.got, error.remedy) from None
