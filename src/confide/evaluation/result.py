"""An evaluation in words, as it is printed.

An evaluation as a value: what it holds, and the JSON that it becomes.
"""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypedDict

from confide.errors import InputError
from confide.evaluation.parts import Counted, Division, Subgroup
from confide.evaluation.worst import WorstPart, surely_below, worst_parts
from confide.guarantee import coverage_text
from confide.releases import Release
from confide.sets import CoverageEstimate, Shortfall, count_shortfall
from confide.support import Level, Shown, aligned, exact_level

_SHOWN = {
    "mean_size": "classes per set, on average",
    "singletons": "sets with one class",
    "empty": "sets without any",
    "mean_width": "width of intervals, on average",
}
_SHARES = ("singletons", "empty")
_MOST_SUBGROUPS, _MOST_NAMED = 30, 10


def in_words(found: Counted, promise: str, loss: tuple[str, float] | None = None) -> str:
    """Coverage beside the promise, sizes, and a table of what has thresholds of its own.

    Where a loss is bounded, its name and largest value say what coverage stands for.
    """
    c = found.coverage
    rows = [("coverage", str(c))] if loss is None else [(f"loss {loss[0]!r}", _loss(c, loss[1]))]
    rows.append(("promise", promise))
    sizes = ((name, getattr(found, name)) for name in _SHOWN)
    told = {name: f"{100 * v:.1f} %" if name in _SHARES else _figure(v) for name, v in sizes if v is not None}
    rows += [(_SHOWN[name], text) for name, text in told.items()]
    own: Sequence[Subgroup] = found.classes if found.by == "class" else found.groups
    below = set(surely_below(own, found.promised))
    rows += [(f"{found.by} {part.name}" if found.by != "side" else part.name, _own(part, below)) for part in own]
    broken = [] if found.shortfall is None else [found.shortfall.sentence]
    if loss is not None:
        return "\n".join([*broken, aligned([*rows, *_subgroup_losses(found, loss[1])])])
    below = set(surely_below(found.subgroups, found.promised))
    rows += [(f"group {part.name}", _own(part, below, found.promised)) for part in _least_covered(found.subgroups)]
    worst = worst_parts(found)
    for one in worst:
        if one.part not in (*own, *found.subgroups):  # these have their rows
            rows += _worst(one)
    return "\n".join([*broken, aligned(rows), *(one.sentence for one in worst if one.below)])


def _least_covered(parts: Sequence[Subgroup]) -> Sequence[Subgroup]:
    """All of them, or of very many the least covered, the worst first."""
    if len(parts) <= _MOST_SUBGROUPS:
        return parts
    return sorted(parts, key=lambda part: part.coverage.value)[:_MOST_SUBGROUPS]


def _worst(one: WorstPart) -> list[tuple[str, str]]:
    """The least covered part, and those that are surely below, if they are others."""
    others = [part for part in one.below if part != one.part][:_MOST_NAMED]
    return [
        (f"worst {one.kind}", f"{one.part.name}: {_against(one.part, one)}"),
        *((f"{one.kind} {part.name}", _against(part, one)) for part in others),
    ]


def _against(part: Subgroup, one: WorstPart) -> str:
    promised = one.promised if part.promised is None else part.promised
    return f"{part.coverage}{_below(promised) if part in one.below else ''}"


def _below(promised: float) -> str:
    return f", below {coverage_text(promised)} beyond chance"


def _subgroup_losses(found: Counted, bound: float) -> list[tuple[str, str]]:
    """What each group loses, for a bound on a loss."""
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


def _own(part: Subgroup, below: Collection[Subgroup] = (), promised: float | None = None) -> str:
    """The row of a part, which may have a promise of its own; what all are promised otherwise."""
    size = "" if part.mean_size is None else f", {_figure(part.mean_size)} classes per set"
    width = "" if part.mean_width is None else f", width {_figure(part.mean_width)}"
    own = "" if part.promised is None else f"; coverage at least {coverage_text(part.promised)} is promised"
    level = part.promised if promised is None else promised
    short = _below(level) if part in below and level is not None else ""
    return f"{part.coverage}{size}{width}{own}{short}"


def _figure(value: float) -> str:
    if math.isinf(value):
        return f"{value:+}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


KIND = "confide.evaluation"
SCHEMAS = (1, 2)
"""The second one has subgroups."""
MOST_EXAMPLES = 1000
NOT_PRIVATE = "These numbers come straight from the records: they are not private."


@dataclass(frozen=True)
class Example:
    """One record that the user asked to see as it is: its set, its true label, and its group if that matters."""

    members: tuple[str, ...]
    truth: str
    group: str | None = None


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """Coverage and sizes on labelled records. Every number here is a function of them, without noise.

    Parameters
    ----------
    calibration
        SHA-256 of the release's JSON.
    promised
        The coverage that it guarantees.
    coverage
        Share of records whose truth is covered, with its exact interval.
    mean_size, singletons, empty
        Mean number of classes per set, share of sets with one class, share without any; None without sets.
    mean_width
        Mean width of the intervals; None without intervals.
    classes, sizes
        The classes that occur, and the set sizes that occur; empty without sets.
    groups
        The groups that occur, or the two ends of intervals, if each has a threshold of its own.
    by
        What has a threshold of its own; None if the release has one threshold.
    examples
        Records that the user chose to show; usually none.
    subgroups
        Groups of records, by any column, that have no threshold of their own: a check whom the average leaves out.
    shortfall
        Where coverage over all lies below the promise, and luck in calibrating does not explain it: what was found.
        It follows from the counts and the release, and is in no file.
    """

    calibration: str
    promised: float
    coverage: CoverageEstimate
    mean_size: float | None = None
    singletons: float | None = None
    empty: float | None = None
    mean_width: float | None = None
    classes: tuple[Subgroup, ...] = ()
    sizes: tuple[Subgroup, ...] = ()
    groups: tuple[Subgroup, ...] = ()
    by: Division | None = None
    examples: tuple[Example, ...] = ()
    subgroups: tuple[Subgroup, ...] = ()
    shortfall: Shortfall | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{in_words(self, self._promise)}\n{NOT_PRIVATE}"

    def judged(self, release: Release) -> "Evaluation":
        """The same with its shortfall, from the release that was evaluated; files do not say it."""
        c = self.coverage
        return replace(self, shortfall=count_shortfall(release, round(c.value * c.n), c.n))

    @property
    def shortfalls(self) -> dict[str, Shortfall]:
        """The shortfall, if there is one, under the name "": as of several levels, and of a private evaluation."""
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
        """The evaluation as a JSON document with a schema version."""
        return _json(self.fields())

    def fields(self) -> dict[str, Any]:
        """As JSON values; what does not apply is left out."""
        return {**_head([self]), **self.counted_fields()}

    def counted_fields(self) -> dict[str, Any]:
        """The same without what every evaluation begins with."""
        counted = {**asdict(self.coverage), "covered": round(self.coverage.value * self.coverage.n)}
        found: dict[str, Any] = {"calibration": self.calibration, "promised": self.promised, "coverage": counted}
        for name in ("mean_size", "singletons", "empty", "mean_width"):
            value = getattr(self, name)
            if value is not None:
                found[name] = _number(value)
        for name in ("classes", "sizes", "groups", "subgroups"):
            parts: tuple[Subgroup, ...] = getattr(self, name)
            if parts:
                found[name] = [_subgroup_fields(part) for part in parts]
        if self.by is not None:
            found["by"] = self.by
        if self.examples:
            found["examples"] = [_example_fields(one) for one in self.examples]
        return found


@dataclass(frozen=True, repr=False)
class LevelEvaluation(Shown):
    """Coverage and sizes at each of several levels, on the same records.

    Parameters
    ----------
    calibration
        SHA-256 of the release's JSON.
    levels
        Miscoverage level to `Evaluation`, levels decreasing; each names the calibration of its level.
    """

    calibration: str
    levels: Mapping[Fraction, Evaluation] = field(hash=False)

    def __post_init__(self) -> None:
        ordered = dict(sorted(self.levels.items(), reverse=True))
        found = list(ordered.values())
        if not found or len({(one.coverage.n, len(one.examples)) for one in found}) != 1:
            raise InputError("levels must be one or more evaluations of the same records")
        shares = [one.coverage.value for one in found]
        if shares != sorted(shares):
            raise InputError("levels must cover more, the smaller alpha is; found a smaller set that covers more")
        object.__setattr__(self, "levels", MappingProxyType(ordered))

    def judged(self, release: Release) -> "LevelEvaluation":
        """The same with the shortfall of each level, from the release that was evaluated."""
        return replace(self, levels={alpha: one.judged(release.parts[alpha]) for alpha, one in self.levels.items()})

    @property
    def shortfalls(self) -> dict[str, Shortfall]:
        """The levels that cover surely less than they promise, by name."""
        return {f"alpha {float(a):g}": one.shortfall for a, one in self.levels.items() if one.shortfall is not None}

    def __getitem__(self, alpha: Level) -> Evaluation:
        level = exact_level("alpha", alpha)
        if level not in self.levels:
            known = ", ".join(f"{float(a):g}" for a in self.levels)
            raise InputError(f"alpha must be one of the levels {known}; found {float(level):g}")
        return self.levels[level]

    def __iter__(self) -> Iterator[Fraction]:
        return iter(self.levels)

    def __len__(self) -> int:
        return len(self.levels)

    def __str__(self) -> str:
        told = [f"alpha {float(alpha):g}\n{in_words(one, one._promise)}" for alpha, one in self.levels.items()]
        return "\n".join([*told, NOT_PRIVATE])

    def _brief(self) -> str:
        levels = ", ".join(f"alpha {float(alpha):g}: {one.coverage.value:.3f}" for alpha, one in self.levels.items())
        short = ", SURELY LESS THAN PROMISED" if self.shortfalls else ""
        return f"coverage {levels}{short}, n={next(iter(self.levels.values())).coverage.n}, not private"

    def to_json(self) -> str:
        """The evaluation as a JSON document with a schema version."""
        return _json(self.fields())

    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        levels = [{"alpha": str(alpha), **one.counted_fields()} for alpha, one in self.levels.items()]
        return {**_head(self.levels.values()), "calibration": self.calibration, "levels": levels}


def _head(evaluations: Iterable[Evaluation]) -> dict[str, Any]:
    """How a document begins: with subgroups, which version 0.1 did not know, it says so by its schema."""
    return {"kind": KIND, "schema": SCHEMAS[any(one.subgroups for one in evaluations)], "private": False}


class _Sizes(TypedDict, total=False):
    mean_size: float
    singletons: float
    empty: float


def shares(classes: Sequence[Subgroup], sizes: Sequence[Subgroup], n: int) -> _Sizes:
    """Mean size, singletons and empty sets, from the parts."""
    having = {part.name: part.n for part in sizes}
    return {
        "mean_size": sum(part.members or 0 for part in classes) / n,
        "singletons": having.get("1", 0) / n,
        "empty": having.get("0", 0) / n,
    }


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _number(value: float) -> float | str:
    return "+inf" if value == math.inf else value


def _subgroup_fields(part: Subgroup) -> dict[str, Any]:
    c = part.coverage
    found: dict[str, Any] = {"name": part.name, "n": part.n, "covered": part.covered}
    for name in ("members", "promised", "mean_width"):
        value = getattr(part, name)
        if value is not None:
            found[name] = _number(value)
    return {**found, "coverage": c.value, "low": c.low, "high": c.high}


def _example_fields(one: Example) -> dict[str, Any]:
    found: dict[str, Any] = {"set": list(one.members), "truth": one.truth}
    return found if one.group is None else {**found, "group": one.group}
