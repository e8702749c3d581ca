"""A private evaluation as a value: a public query and noisy counts. Nothing else in it depends on records.

The statements follow from the noisy counts and public numbers (`confide.evaluation.intervals`). A file contains them
and the reader recomputes them. Computed numbers are compared within 1e-6, because machines may round the last digits
differently.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.core import Document, Release, documents
from confide.errors import FormatError, InputError
from confide.evaluation.count_query import MOST_NOISY, QUERY, SIDES, CountQuery, level_name, query_fields
from confide.evaluation.intervals import (
    Cells,
    PrivateFinding,
    PrivateMean,
    family_error,
    over_all,
    statements_from_cells,
)
from confide.evaluation.parts import Part, interval_text
from confide.evaluation.values import Evaluation, LevelEvaluation, read_evaluation
from confide.guarantee import coverage_text
from confide.mechanisms import PrivacyStatement
from confide.sets import CHANCE, Shortfall, sentence_of, shortfall_at
from confide.support import (
    VERSIONS,
    Facts,
    Fields,
    Level,
    Section,
    exact_level,
    library_versions,
    parse_object,
    read_as,
    shapes,
)

KIND = "confide/private-evaluation"


@dataclass(frozen=True, repr=False)
class PrivateEvaluation(Document):
    """Coverage on labelled records with a differential-privacy guarantee, so that it may be published.

    `confide.evaluate` with an epsilon returns it. Intervals hold for finite samples and include the noise. All of them
    hold at once with probability `confidence`, if records are independent of each other and of the calibration set.

    Parameters
    ----------
    query
        The public query.
    confidence
        Probability that all intervals hold at once.
    counts
        Noisy counts of each table, in the order of its cells.
    versions
        Versions of the libraries that drew the counts; empty if the file does not state them.
    shortfalls
        Findings by statement that coverage over all records lies below the promise by more than chance in calibration
        explains. They follow from the counts and the release, and are not stored in files.

    Examples
    --------
    >>> import confide
    >>> rng = np.random.default_rng(0)
    >>> released = confide.calibrate(rng.random(2000), alpha=0.1, epsilon=1.0, score="lac")
    >>> found = confide.evaluate(released, scores=rng.random(5000), epsilon=1.0)
    >>> print(found.privacy)
    1-differential privacy for adding or removing one record
    >>> 0.87 < found.coverage.low < found.coverage.high < 0.93
    True
    """

    query: CountQuery
    confidence: float
    counts: tuple[tuple[int, ...], ...]
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    shortfalls: Mapping[str, Shortfall] = field(default_factory=dict, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))
        object.__setattr__(self, "shortfalls", MappingProxyType(dict(self.shortfalls)))
        object.__setattr__(self, "confidence", float(exact_level("confidence", self.confidence)))
        if [len(cells) for cells in self.counts] != self.query.cells:
            raise InputError("counts", "must have one number for each cell of each table")
        family_error(self.query.partitions, len(self.query.statements), 1 - self.confidence)

    @property
    def calibration(self) -> str:
        """SHA-256 of the evaluated release."""
        return self.query.calibration

    @property
    def privacy(self) -> PrivacyStatement:
        """Privacy loss of the evaluation."""
        return self.query.privacy

    @property
    def epsilon(self) -> float:
        """Privacy loss of one person."""
        return self.query.epsilon

    @cached_property
    def findings(self) -> Mapping[str, PrivateFinding]:
        """Findings about the release as a whole (""), each level (`alpha 1/10`), and the ends of intervals."""
        return statements_from_cells(self._cells(), self.query.statements, 1 - self.confidence)

    @property
    def finding(self) -> PrivateFinding:
        """Finding about the release as a whole; see `findings` for several levels."""
        return next(iter(self.findings.values()))

    def __getitem__(self, alpha: Level) -> PrivateFinding:
        name = level_name(exact_level("alpha", alpha))
        if self.query.outcome != "levels" or name not in self.findings:
            raise InputError("alpha", "must be one of the evaluated levels", got=name)
        return self.findings[name]

    @property
    def coverage(self) -> Part:
        """Coverage over all records with its interval; for several levels, that of the first."""
        return self.finding.coverage

    @property
    def classes(self) -> tuple[Part, ...]:
        """Coverage of each public class; empty if it was not requested."""
        return self.finding.parts.get("class", ())

    @property
    def groups(self) -> tuple[Part, ...]:
        """Coverage of each public group; empty if it was not requested."""
        return self.finding.parts.get("group", ())

    @property
    def sizes(self) -> tuple[Part, ...]:
        """Coverage by set size; empty if it was not requested."""
        return self.finding.parts.get("size", ())

    @property
    def mean_size(self) -> PrivateMean | None:
        """Bounds of the mean set size; None if set sizes were not requested."""
        return self.finding.mean_size

    def with_shortfall(self, release: Release) -> "PrivateEvaluation":
        """Return a copy with its shortfalls, computed from the evaluated release."""
        releases = {"": release} | {level_name(alpha): release.at(alpha) for alpha in release.levels}
        if release.by == "side":
            releases |= dict(zip(SIDES[1:], map(release.alone, release.parts), strict=True))
        cells, shortfalls = self._cells(), {}
        for name, promised in self.query.statements.items():
            c = over_all(cells, name, promised, CHANCE / 2)
            if (
                c.value is not None
                and (short := shortfall_at(releases[name], c.value, c.high, self.query.n)) is not None
            ):
                shortfalls[name] = short
        return replace(self, shortfalls=shortfalls)

    def _cells(self) -> Cells:
        q = self.query
        noisy: list[NDArray[np.int64]] = []
        for table, counts in zip(q.tables, self.counts, strict=True):
            noisy.append(np.array(counts, dtype=np.int64).reshape((1,) if q.one_count else q.shape(table)))
        held = {name: q.statement_cells(name) for name in q.statements}
        return Cells(q.partitions, q.tables, noisy, held, q.noise, q.n, q.one_count)

    def _section(self) -> Section:
        return Section(
            "PrivateEvaluation",
            warnings=tuple(sentence_of(name, one) for name, one in self.shortfalls.items()),
            parts=described(self.findings, self.query.loss),
            notes=(hold_together(self.findings, self.confidence), f"privacy: {self.privacy}"),
        )

    def _brief(self) -> str:
        levels = f", {len(self.findings)} statements" if len(self.findings) > 1 else ""
        short = ", SURELY LESS THAN PROMISED" if self.shortfalls else ""
        return f"coverage {covered_text(self.coverage)}{short}{levels}, {self.privacy.brief}"


def empty(query: CountQuery, confidence: float) -> PrivateEvaluation:
    """Evaluation with all counts 0, from public numbers alone."""
    counts = tuple((0,) * cells for cells in query.cells)
    return PrivateEvaluation(query, confidence, counts, library_versions())


# In words

MOST_SHOWN = 30
_CALLED = {"class": "class", "group": "group", "size": "sets of size", "width": "width"}


def described(findings: Mapping[str, PrivateFinding], loss: tuple[str, float] | None) -> tuple[Section, ...]:
    """Coverage and promise of each part, one section for each level.

    Above 30 parts, those with the lowest upper interval ends are shown; files contain all parts.
    """
    return tuple(Section("", facts=_facts(name, finding, loss)) for name, finding in findings.items())


def hold_together(findings: Mapping[str, PrivateFinding], confidence: float) -> str:
    """Sentence about the simultaneous confidence of all intervals."""
    number = sum(map(_intervals, findings.values())) + _shared(next(iter(findings.values())))
    together = f"the {number} intervals hold together" if number > 1 else "the interval holds"
    return f"{together} with probability {100 * confidence:g} %, noise included"


def _facts(name: str, finding: PrivateFinding, loss: tuple[str, float] | None) -> Facts:
    first, *means = private_facts(name, finding, loss)
    rows = [first]
    for kind, parts in finding.parts.items():
        shown = sorted(parts, key=_seeming)[:MOST_SHOWN] if len(parts) > MOST_SHOWN else parts
        text_of = covered_text if loss is None else lambda part: _loss(part, loss[1])
        rows += [(f"{_CALLED[kind]} {part.name}", text_of(part)) for part in shown]
        if len(parts) > len(shown):
            rows.append((f"{len(parts) - len(shown)} more", "in the file"))
    for kind, shares in ({} if name else finding.shares).items():
        rows += [(f"share, {_CALLED[kind]} {one.name}", interval_text(one.value, one.low, one.high)) for one in shares]
    return (*rows, *means)


def private_facts(name: str, finding: PrivateFinding, loss: tuple[str, float] | None) -> Facts:
    """Coverage of all records with its promise, or their loss; for the release as a whole, also the mean set size."""
    if loss is not None:
        first = (f"loss {loss[0]!r}", _loss(finding.coverage, loss[1]))
    else:
        first = (f"coverage, {name}" if name else "coverage", covered_text(finding.coverage))
    mean = None if name else finding.mean_size
    if mean is None:
        return (first,)
    return first, ("classes per set, on average", interval_text(mean.value, mean.low, mean.high))


def covered_text(part: Part) -> str:
    """Share, interval and promise, as text."""
    below = ", below that beyond chance" if part.below else ""
    return f"{interval_text(part.value, part.low, part.high)}; {coverage_text(part.promise)} is promised{below}"


def _loss(part: Part, bound: float) -> str:
    value = None if part.value is None else bound * (1 - part.value)
    below = ", above that beyond chance" if part.below else ""
    ends = interval_text(value, bound * (1 - part.high), bound * (1 - part.low))
    return f"{ends}; at most {bound * (1 - part.promise):.6g} is promised{below}"


def _seeming(part: Part) -> tuple[float, float]:
    """Sort key of parts: upper end of the interval, then the share."""
    return part.high, 1.0 if part.value is None else part.value


def _intervals(finding: PrivateFinding) -> int:
    return 1 + sum(map(len, finding.parts.values()))


def _shared(finding: PrivateFinding) -> int:
    """Number of intervals that all promises share: shares of bins, and the mean."""
    return sum(map(len, finding.shares.values())) + (finding.mean_size is not None)


# As JSON

_NEAR = 1e-6
_ANSWER: shapes.Shape = {
    "private": shapes.Field("true", (bool,), shapes.reads_if(bool)),
    **QUERY,
    "confidence": shapes.number(),
    "counts": shapes.listed(shapes.listed(shapes.integer(MOST_NOISY, -MOST_NOISY))),
    "found": shapes.Field("an object", (dict,)),
    "versions": VERSIONS,
}


def found_fields(evaluation: PrivateEvaluation) -> dict[str, Any]:
    """JSON values of the findings, by statement."""
    return {name or "release": _finding_fields(finding) for name, finding in evaluation.findings.items()}


def _fields(evaluation: PrivateEvaluation) -> dict[str, Any]:
    return {
        "private": True,
        **query_fields(evaluation.query),
        "confidence": evaluation.confidence,
        "counts": [list(cells) for cells in evaluation.counts],
        "found": found_fields(evaluation),
        "versions": dict(evaluation.versions),
    }


def _finding_fields(finding: PrivateFinding) -> dict[str, Any]:
    fields: dict[str, Any] = {"coverage": _coverage_fields(finding.coverage)}
    fields["parts"] = {kind: [_coverage_fields(part) for part in parts] for kind, parts in finding.parts.items()}
    if finding.shares:
        fields["shares"] = {
            kind: [{name: getattr(one, name) for name in ("name", "value", "low", "high")} for one in shares]
            for kind, shares in finding.shares.items()
        }
    if finding.mean_size is not None:
        fields["mean_size"] = dict(vars(finding.mean_size))
    return fields


def _coverage_fields(part: Part) -> dict[str, Any]:
    named = {"name": part.name} if part.name else {}
    return named | {name: getattr(part, name) for name in ("value", "low", "high", "covered", "missed", "promised")}


def _read(fields: Fields) -> PrivateEvaluation:
    values = shapes.read_shape(fields, _ANSWER)
    asked = values["privacy"] | {name: values[name] for name in QUERY if name != "privacy"}
    made = PrivateEvaluation(CountQuery(**asked), values["confidence"], values["counts"], values["versions"])
    if not _same(values["found"], found_fields(made)):
        raise FormatError("evaluation.found", "must follow from the counts", remedy="Do not use the file")
    return made


def _same(stated: Any, found: Any) -> bool:
    """Whether two JSON values are equal, numbers within 1e-6."""
    if isinstance(found, Mapping):
        same_keys = isinstance(stated, Mapping) and stated.keys() == found.keys()
        return same_keys and all(_same(stated[key], value) for key, value in found.items())
    if isinstance(found, Sequence) and not isinstance(found, str):
        same_length = isinstance(stated, list) and len(stated) == len(found)
        return same_length and all(map(_same, stated, found))
    if isinstance(found, float) and isinstance(stated, float | int) and not isinstance(stated, bool):
        return math.isclose(stated, found, rel_tol=_NEAR, abs_tol=_NEAR)
    return bool(stated == found and type(stated) is type(found))


documents.register(
    PrivateEvaluation,
    documents.Kind(documents.common_form(KIND, "evaluation"), _fields, _read),
)


def load_evaluation(path: str | Path) -> Evaluation | LevelEvaluation | PrivateEvaluation:
    """Read a file that `confide evaluate --out` wrote, with or without --epsilon."""
    return read_as(path, _read_either)


def _read_either(text: str) -> Evaluation | LevelEvaluation | PrivateEvaluation:
    try:
        private = parse_object(text).get("kind") == KIND
    except (TypeError, ValueError):
        private = False
    return PrivateEvaluation.from_json(text) if private else read_evaluation(text)
