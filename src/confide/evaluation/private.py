"""A private evaluation as a value: a public question, noisy counts, and nothing else that depends on records.

Every record falls into one cell of every table: by its part of each partition, and by its outcome. Cells are counted,
and each count gets discrete Laplace noise. What is stated follows from the noisy counts and public numbers
(`private_findings.py`), and is computed again whenever a file is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.evaluation.counts import SIDE_OUTCOMES
from confide.evaluation.private_findings import (
    Cells,
    Partition,
    PrivateCoverage,
    PrivateFinding,
    PrivateMean,
    covered_text,
    family_error,
    find,
    in_words,
    over_all,
)
from confide.mechanisms import NEIGHBORS, Neighbors, PrivacyStatement
from confide.releases import Document, Release
from confide.sets import CHANCE, Shortfall, sentence_of, shortfall_at
from confide.support import (
    LEAST_LOSS,
    MOST_PER_PERSON,
    MOST_RECORDS,
    Level,
    exact_level,
    float_above,
    float_below,
    library_versions,
    one_of,
    positive_integer,
    positive_number,
    privacy_loss,
)

Outcome: TypeAlias = Literal["covered", "levels", "sides"]
"""What is seen of a record: covered or missed; the first level that covers it, or none; which ends of its interval
hold."""

KIND = "confide.private-evaluation"
SIDES = tuple(SIDE_OUTCOMES)

MOST_CELLS = 2_000_000


@dataclass(frozen=True)
class Question:
    """What is asked of labelled records, and at which price: all of it public.

    Parameters
    ----------
    calibration
        SHA-256 of the release that is evaluated.
    neighbors, epsilon, records_per_person
        Privacy: the relation, the loss of one person, and how many records a person owns at most.
    n
        The number of records if it is public (`replace_one`); None if it is secret.
    outcome
        What is seen of a record.
    statements
        What is promised, by name: "" for the release as a whole, levels as `alpha 1/10`, the ends of intervals.
    partitions
        By what records are divided.
    tables
        Which partitions are crossed in which table.
    loss
        For a bound on a loss: its name and its largest value; coverage is then that of critical thresholds.
    """

    calibration: str
    neighbors: Neighbors
    epsilon: float
    records_per_person: int
    n: int | None
    outcome: Outcome
    statements: Mapping[str, float] = field(hash=False)
    partitions: tuple[Partition, ...] = ()
    tables: tuple[tuple[int, ...], ...] = ((),)
    loss: tuple[str, float] | None = None

    def __post_init__(self) -> None:
        one_of("neighbors", self.neighbors, NEIGHBORS)
        plain = {
            "epsilon": privacy_loss("epsilon", self.epsilon),
            "records_per_person": positive_integer("records_per_person", self.records_per_person, most=MOST_PER_PERSON),
            "n": None if self.n is None else positive_integer("n", self.n, most=MOST_RECORDS),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if (self.n is None) != (self.neighbors == "add_remove"):
            raise InputError("n must be given under neighbors='replace_one', and only there: else it is secret")
        names = tuple(self.statements)
        expected = {"covered": ("",), "sides": SIDES}.get(self.outcome, names)
        if names != expected or not names or not all(0 <= level <= 1 for level in self.statements.values()):
            raise InputError("statements must be those of the outcome, with a coverage in [0, 1] each")
        rising = list(self.statements.values())
        if self.outcome == "levels" and not (rising == sorted(rising) and all(n.startswith("alpha ") for n in names)):
            raise InputError("statements of levels must be called by their alpha, from the least coverage on")
        if self.loss is not None:
            positive_number("bound", self.loss[1])
        used = {place for table in self.tables for place in table}
        if used != set(range(len(self.partitions))) or any(len(set(table)) != len(table) for table in self.tables):
            raise InputError("tables must cross the partitions, each of them somewhere and once in a table")
        if len({part.kind for part in self.partitions}) != len(self.partitions) or not self.tables:
            raise InputError("partitions must be of different kinds, and there must be a table")
        if sum(prod(self.shape(table)) for table in self.tables) > MOST_CELLS:
            raise InputError(f"there must be at most {MOST_CELLS:,} counts; ask for fewer parts at once")
        if self.noise < LEAST_LOSS:
            raise InputError(f"epsilon must leave at least {LEAST_LOSS:g} to each count; found {self.noise:.3g}")

    @property
    def outcomes(self) -> int:
        """How many outcomes a record can have."""
        return {"covered": 2, "sides": 4}.get(self.outcome, len(self.statements) + 1)

    def shape(self, table: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a table: its partitions, and outcomes."""
        return (*(len(self.partitions[place]) for place in table), self.outcomes)

    @property
    def cells(self) -> list[int]:
        """How many counts each table has."""
        return [1] if self.one_count else [prod(self.shape(table)) for table in self.tables]

    @property
    def one_count(self) -> bool:
        """Whether the count of covered records says all: n is public, and the others are missed."""
        return self.n is not None and self.outcome == "covered" and self.tables == ((),)

    @property
    def changes(self) -> int:
        """By how much one record changes all counts together: a cell of each table, or two if it is replaced."""
        replaced = self.neighbors == "replace_one" and not self.one_count
        return len(self.tables) * (2 if replaced else 1)

    @property
    def noise(self) -> float:
        """One over the scale of the noise of each count."""
        return float_below(Fraction(self.epsilon) / (self.records_per_person * self.changes))

    @property
    def privacy(self) -> PrivacyStatement:
        """The loss of all counts together."""
        k = self.records_per_person
        one = float_above(Fraction(self.epsilon) / k)
        if self.neighbors == "replace_one":
            return PrivacyStatement("replace_one", self.epsilon, k, None, one, None)
        return PrivacyStatement("add_remove", self.epsilon, k, one, 2 * one, None)

    def statement_cells(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The outcomes in which a statement holds, and the others."""
        held = SIDE_OUTCOMES[name] if self.outcome == "sides" else tuple(range(list(self.statements).index(name) + 1))
        return held, tuple(place for place in range(self.outcomes) if place not in held)


@dataclass(frozen=True, repr=False)
class PrivateEvaluation(Document):
    """Coverage on labelled records with a differential-privacy guarantee: it may be published.

    Made by `confide.evaluate` with an epsilon. Intervals hold for finite samples, noise included, all of them at once
    with probability `confidence`, if the records are independent of each other and of those that were calibrated on.

    Parameters
    ----------
    question
        What was asked: public.
    confidence
        Probability that all intervals hold at once.
    counts
        The noisy counts of each table, in the order of its cells.
    versions
        The libraries that drew them; empty where the file does not say.
    shortfalls
        By statement: where coverage over all lies below the promise, and luck in calibrating does not explain it. They
        follow from the counts and the release, and are in no file.

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

    question: Question
    confidence: float
    counts: tuple[tuple[int, ...], ...]
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    shortfalls: Mapping[str, Shortfall] = field(default_factory=dict, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))
        object.__setattr__(self, "shortfalls", MappingProxyType(dict(self.shortfalls)))
        object.__setattr__(self, "confidence", float(exact_level("confidence", self.confidence)))
        if [len(cells) for cells in self.counts] != self.question.cells:
            raise InputError("counts must have one number for each cell of each table")
        family_error(self.question.partitions, len(self.question.statements), 1 - self.confidence)

    @property
    def calibration(self) -> str:
        """SHA-256 of the release that was evaluated."""
        return self.question.calibration

    @property
    def privacy(self) -> PrivacyStatement:
        """The privacy loss of the evaluation."""
        return self.question.privacy

    @property
    def epsilon(self) -> float:
        """The loss of one person."""
        return self.question.epsilon

    @cached_property
    def findings(self) -> Mapping[str, PrivateFinding]:
        """What is stated of the release as a whole (""), of each level (`alpha 1/10`), and of the ends of intervals."""
        return find(self._cells(), self.question.statements, 1 - self.confidence)

    @property
    def finding(self) -> PrivateFinding:
        """What is stated of the release as a whole; of several levels see `findings`."""
        return next(iter(self.findings.values()))

    def __getitem__(self, alpha: Level) -> PrivateFinding:
        name = level_name(exact_level("alpha", alpha))
        if self.question.outcome != "levels" or name not in self.findings:
            raise InputError("alpha must be one of the evaluated levels")
        return self.findings[name]

    @property
    def coverage(self) -> PrivateCoverage:
        """Coverage over all, with its interval; of several levels that of the first."""
        return self.finding.coverage

    @property
    def classes(self) -> tuple[PrivateCoverage, ...]:
        """Coverage by class, of all public classes; empty if it was not asked."""
        return self.finding.parts.get("class", ())

    @property
    def groups(self) -> tuple[PrivateCoverage, ...]:
        """Coverage by group, of all public groups; empty if it was not asked."""
        return self.finding.parts.get("group", ())

    @property
    def sizes(self) -> tuple[PrivateCoverage, ...]:
        """Coverage by size of the set; empty if it was not asked."""
        return self.finding.parts.get("size", ())

    @property
    def mean_size(self) -> PrivateMean | None:
        """Bounds for the mean size of sets; None if sizes were not asked."""
        return self.finding.mean_size

    def judged(self, release: Release) -> "PrivateEvaluation":
        """The same with its shortfalls, from the release that was evaluated."""
        of = {"": release} | {level_name(alpha): release.at(alpha) for alpha in release.levels}
        if release.by == "side":
            of |= dict(zip(SIDES[1:], release.parts.values(), strict=True))
        cells, found = self._cells(), {}
        for name, promised in self.question.statements.items():
            c = over_all(cells, name, promised, CHANCE / 2)
            if c.value is not None and (short := shortfall_at(of[name], c.value, c.high, self.question.n)) is not None:
                found[name] = short
        return replace(self, shortfalls=found)

    def _cells(self) -> Cells:
        q = self.question
        noisy: list[NDArray[np.int64]] = []
        for table, counts in zip(q.tables, self.counts, strict=True):
            noisy.append(np.array(counts, dtype=np.int64).reshape((1,) if q.one_count else q.shape(table)))
        held = {name: q.statement_cells(name) for name in q.statements}
        return Cells(q.partitions, q.tables, noisy, held, q.noise, q.n, q.one_count)

    def __str__(self) -> str:
        broken = [sentence_of(name, one) for name, one in self.shortfalls.items()]
        told = in_words(self.findings, self.question.loss, self.confidence)
        return "\n".join([*broken, told, f"privacy: {self.privacy}"])

    def _brief(self) -> str:
        levels = f", {len(self.findings)} statements" if len(self.findings) > 1 else ""
        short = ", SURELY LESS THAN PROMISED" if self.shortfalls else ""
        return f"coverage {covered_text(self.coverage)}{short}{levels}, {self.privacy.brief}"


def empty(question: Question, confidence: float) -> PrivateEvaluation:
    """The evaluation whose counts are all 0, from public numbers alone."""
    counts = tuple((0,) * cells for cells in question.cells)
    return PrivateEvaluation(question, confidence, counts, library_versions())


def level_name(alpha: Fraction) -> str:
    """What a level is called among the statements.

    Examples
    --------
    >>> level_name(Fraction(1, 10))
    'alpha 1/10'
    """
    return f"alpha {alpha}"
