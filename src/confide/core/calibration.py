"""Releases: thresholds with their guarantees and costs. They contain no data.

A `Release` is a mapping to thresholds, and `by` states the type of its keys (`FORMS`). `Calibration` is one threshold,
and also a release.

Everything but the thresholds is a function of public choices. It is computed again when a release is read, so a file
with a claim that does not follow from its mechanism raises `FormatError`. A checksum finds accidental damage; it is not
a signature.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from confide.arrays import GroupColumns, Groups, as_positions
from confide.core.divisions import FORMS, Division
from confide.core.documents import Document, load
from confide.core.fingerprint import ModelFingerprint, check_fingerprint
from confide.core.needed import needed_facts
from confide.core.population import Population
from confide.core.words import check_about
from confide.errors import InputError, InputTypeError
from confide.guarantee import Guarantee, law_failure
from confide.mechanisms import Chosen, Mechanism, NoisySize, PrivacyStatement, mechanism_facts, proof_of
from confide.scores import ScoreKind, score_kind
from confide.support import (
    Classes,
    Facts,
    Level,
    Section,
    class_count,
    exact_level,
    order_of,
    positive_integer,
    public_classes,
)

_UNCOMPARED = "_uncompared"
_OTHER_MODEL = (
    "Recalibrate for this model, or use the calibrated one; if it is the same, compare the probe records, or leave the "
    "fingerprint out"
)


class Release(Document):
    """Thresholds with one privacy statement: a mapping from keys to thresholds, and their cost together.

    `by` states the type of the keys, and `parts` contains the thresholds. A single one has the key None, or the name of
    the loss that it bounds. Several have their levels, the names of groups or classes, or "low" and "high" as keys.
    """

    if TYPE_CHECKING:  # fields of some subclasses, which a dataclass would take for defaults if they were here

        @property
        def by(self) -> Division | None:
            """The type of keys; None if there is one threshold."""

        @property
        def parts(self) -> Mapping[Any, "Calibration"]:
            """The thresholds."""

    @property
    def first(self) -> "Calibration":
        """The first of the thresholds; classes, metadata and the renewed release are the same in all."""
        return next(iter(self.parts.values()))

    @property
    def by_name(self) -> dict[str, "Calibration"]:
        """The thresholds by a printable name; "" if there is one."""
        text_of = FORMS[self.by].to_text
        return {text_of(key): part for key, part in self.parts.items()}

    @property
    def promises(self) -> dict[str, str]:
        """The guarantees in words, by a phrase for what each is about; "" for a release as a whole.

        Examples
        --------
        >>> import confide
        >>> scores = np.random.default_rng(0).random(4000)
        >>> confide.calibrate_groups(scores, ["a", "b"] * 2000, ["a", "b"], 0.1, 1.0).promises
        {'each group': 'coverage at least 0.9 on average over calibration data and new records, for every number ...'}
        """
        return {name: str(part.guarantee) for name, part in self.by_name.items()}

    @property
    def disjoint(self) -> bool:
        """Whether a record has the threshold of its group, or of the class in question; the largest of its groups'."""
        return self.by in ("group", "class")

    @property
    def overlap(self) -> GroupColumns | None:
        """The columns of groups that overlap; None for all other releases."""
        return None

    def places(self, groups: Groups, n: int) -> NDArray[np.int64]:
        """The position of each record's group, or class, among the parts, int64, shape (n,).

        If groups overlap: the positions of all its groups, shape (n, columns).
        """
        return as_positions("groups", groups, tuple(self.parts), n)  # type: ignore[arg-type]  # a mapping raises

    def needs_groups(self, *, sets: bool) -> bool:
        """Whether the caller must give each record's group, or true class; for `sets` of classes the class is known."""
        return self.by == "group" or (self.by == "class" and not sets)

    @property
    def bounded(self) -> tuple[str, float] | None:
        """The loss whose expectation is bounded, and its largest value; None for a coverage guarantee."""
        return None

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The miscoverage levels of the guarantees; for two sides that of both together."""
        if self.by == "level":
            return tuple(self.parts)
        together = self.parts.values() if self.by == "side" else (self.first,)
        return (sum((part.alpha for part in together), Fraction(0)),)

    @property
    def promised(self) -> float:
        """The coverage that is guaranteed for every record: the least over groups; of two sides together.

        For a bound on a loss it is the coverage of critical thresholds.
        """
        promised = [part.coverage for part in self.parts.values()]
        return max(0.0, 1 - sum(1 - coverage for coverage in promised)) if self.by == "side" else min(promised)

    def at(self, alpha: Level | None) -> "Release":
        """The thresholds at a level; without one those of the only level.

        Raises
        ------
        InputError
            If it is not one of the levels, or is missing although there are several.

        Examples
        --------
        >>> import confide
        >>> released = confide.calibrate_levels(np.linspace(0, 1, 2000), [0.1, 0.2], 2.0)
        >>> released.at(0.2) == released[0.2] == released[0.2].at(None)
        True
        """
        level = None if alpha is None else exact_level("alpha", alpha)
        if self.by != "level":
            if level not in (None, *self.levels):
                level_text = f"{float(self.levels[0]):g}"
                raise InputError("alpha", f"must be left out, or {level_text}: the release is for this level alone")
            return self
        levels = ", ".join(f"{float(alpha_i):g}" for alpha_i in self.parts)
        if level is None:
            raise InputError("alpha", f"must be given, one of the calibrated levels {levels}")
        if level not in self.parts:
            raise InputError("alpha", f"must be one of the calibrated levels {levels}", got=f"{float(level):g}")
        return self.parts[level]

    def for_model(self, fingerprint: ModelFingerprint) -> Self:
        """The release itself, if its fingerprint is that of the model that is used; all functions that apply it follow.

        Parameters
        ----------
        fingerprint
            That of the model that is used, from the same public probe records or from its file.

        Raises
        ------
        InputError, InputTypeError
            If the model is another one, the release states no fingerprint, or the argument is of another type.

        Examples
        --------
        >>> import confide
        >>> probe = np.random.default_rng(0).dirichlet([1, 1], 50)  # the model's outputs for public records
        >>> model = confide.ModelFingerprint.of(probe)
        >>> released = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac", fingerprint=model)
        >>> confide.predict_set([[0.99, 0.01]], released.for_model(model)).labels()
        [[0]]
        >>> released.for_model(confide.ModelFingerprint.of(probe**2))
        Traceback (most recent call last):
            ...
        confide.errors.InputError: fingerprint: must be that of the calibrated model; got outputs rounded to ...
        """
        stated, used = self.first.fingerprint, check_fingerprint(fingerprint)
        if used is None:
            raise InputTypeError("fingerprint", "must be a ModelFingerprint", got="None")
        if stated is None:
            remedy = "Calibrate with fingerprint=, or leave it out"
            raise InputError("fingerprint", "must be left out: the release states none to compare", remedy=remedy)
        if used != stated:
            got = f"{used}, instead of {stated}"
            raise InputError("fingerprint", "must be that of the calibrated model", got=got, remedy=_OTHER_MODEL)
        reminder_due(self)  # no longer
        return self

    @property
    def task(self) -> str:
        """The use of the thresholds: sets ("classification"), intervals ("regression"), or "any" other."""
        return score_kind(self.first.score).task

    def limits(
        self, n: int | None = None, *, groups: Groups | None = None, classes: Sequence[object] | int | None = None
    ) -> float | NDArray[np.float64]:
        """Limits for scores, for sets, intervals, SQL, ONNX and PyTorch.

        Parameters
        ----------
        n
            The number of records, for thresholds per group.
        groups
            The group of each record, shape (n,), for thresholds per group. If groups overlap: a data frame or a mapping
            of their columns.
        classes
            For thresholds per class: the names in the order of the columns, or their number. Classes that were
            calibrated as positions, 0 to K-1, match K columns with any names.

        Returns
        -------
        float or array
            The threshold; or float64, shape (n,), the threshold of each record, the largest of its groups; or shape
            (k,), that of each class.

        Raises
        ------
        InputError, InputTypeError
            If groups or classes are missing, unknown or not applicable, or if thresholds are for several levels or
            sides, of which one has to be chosen.

        Examples
        --------
        >>> import confide
        >>> scores = np.random.default_rng(0).random(4000)
        >>> released = confide.calibrate_groups(scores, ["a", "b"] * 2000, ["a", "b"], 0.1, 1.0)
        >>> released.limits(3, groups=["b", "a", "b"]) == [released[name].threshold for name in "bab"]
        array([ True,  True,  True])
        """
        if self.by in ("level", "side"):
            raise InputTypeError("release", f"has a threshold for each {self.by}", remedy="Choose one of them")
        values = np.array([part.threshold for part in self.parts.values()])
        if self.by == "group":
            if groups is None or n is None:
                raise InputError("groups", "must be given: the calibration has one threshold per group")
            own = values[self.places(groups, n)]
            return own if own.ndim == 1 else own.max(axis=1)
        if groups is not None:
            per = "thresholds per class; groups do not apply to it" if self.by == "class" else "no thresholds per group"
            raise InputError("groups", f"must be left out: the calibration has {per}")
        return values[self._order(classes)] if self.by == "class" else float(values[0])

    def _order(self, classes: Sequence[object] | int | None) -> list[int]:
        """The positions of the calibrated classes, in the order of the columns."""
        if classes is None:
            raise InputError("classes", "must be given: the calibration has one threshold per class")
        k = class_count(classes)
        for names in (tuple(range(k)) if isinstance(classes, int) else classes, tuple(range(k))):
            if (order := order_of(names, tuple(self.parts))) is not None:
                return order
        raise InputError(
            "classes",
            f"must be given, because the calibration has {len(self.parts)} named classes",
            got=f"{k} columns without these names: pass classes=[...] in the order of the columns",
        )

    @property
    def _needed(self) -> tuple[tuple[str, str], ...]:
        return needed_facts(self.parts.values(), FORMS[self.by].each)


@dataclass(frozen=True, repr=False)
class Calibration(Release):
    """A released threshold: everything that is published about the calibration data.

    Parameters
    ----------
    threshold
        The selected candidate. +inf excludes nothing: every label is in every set, every interval is the whole line. So
        does the largest value of a bounded score (`excludes_nothing`).
    alpha
        Miscoverage level, an exact fraction.
    guarantee
        The coverage guarantee.
    privacy
        The privacy loss in every unit.
    mechanism
        The complete public statement of the mechanism; None if the answer was +inf without reading the data.
    candidates
        Number of candidate thresholds, +inf included.
    recipe
        The rule that made the candidates.
    score
        Name of the nonconformity score, or None.
    versions
        Versions of the libraries that made the release.
    classes
        The class names, or their number; None for regression, and if they were not stated.
    population
        The public weights of the population of the guarantee, if it differs by a known shift; else None.
    about
        Public metadata: `model`, `version` of the model, `data`, `purpose`, `responsible`, `date`; those that were
        given.
    renews
        The SHA-256 checksum of the release that it renews, 64 hexadecimal digits; None if it renews none.
    size
        The noisy number of records that was released first, and the design for it; None without one.
    chosen
        The private choice of its score or model on a share of the records (`confide.choose_score`); None without one.
        `privacy` is then the loss of the choice and the threshold together.
    fingerprint
        The fingerprint of the model whose scores calibrated, made from public data; None if it was not stated.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> released = confide.calibrate(rng.random(5000), alpha=0.1, epsilon=1.0, candidates=confide.Candidates.unit(1000))
    >>> 0.87 < released.threshold < 0.95, released.coverage
    (True, 0.9)
    >>> released == confide.Calibration.from_json(released.to_json())
    True
    """

    by: ClassVar[None] = None

    threshold: float
    alpha: Fraction
    guarantee: Guarantee
    privacy: PrivacyStatement
    mechanism: Mechanism | None
    candidates: int
    recipe: Mapping[str, Any] = field(hash=False)
    score: str | None
    versions: Mapping[str, str] = field(hash=False)
    classes: Classes | None = field(default=None, kw_only=True)
    about: Mapping[str, str] = field(default_factory=dict, kw_only=True, hash=False)
    population: Population | None = field(default=None, kw_only=True)
    renews: str | None = field(default=None, kw_only=True)
    size: NoisySize | None = field(default=None, kw_only=True)
    chosen: Chosen | None = field(default=None, kw_only=True)
    fingerprint: ModelFingerprint | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.classes is not None:
            object.__setattr__(self, "classes", public_classes("classes", self.classes))
        object.__setattr__(self, "about", check_about(self.about))
        check_fingerprint(self.fingerprint)
        if self.renews is not None and not re.fullmatch("[0-9a-f]{64}", str(self.renews)):
            raise InputError("renews", "must be None or 64 hexadecimal digits")
        object.__setattr__(self, "recipe", MappingProxyType(dict(self.recipe)))
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))

    @property
    def parts(self) -> Mapping[Any, "Calibration"]:
        """The calibration itself, under None."""
        return {None: self}

    @property
    def coverage(self) -> float:
        """The guaranteed coverage; `guarantee.kind` states the type of guarantee."""
        return self.guarantee.coverage

    @property
    def epsilon(self) -> float:
        """The privacy loss per person, under `privacy.neighbors`."""
        return self.privacy.epsilon

    @property
    def excludes_nothing(self) -> bool:
        """Whether the threshold is +inf, or at least the largest value of the score: every label is in every set."""
        classes = None if self.classes is None else class_count(self.classes)
        return self.threshold >= kind_asked(self.score).largest(classes)

    @property
    def n(self) -> int | None:
        """The number of calibration records if it is public (`replace_one`), else None."""
        return self.guarantee.n

    def conditional_coverage(self, delta: Level, n: int | None = None) -> float:
        """The largest c such that coverage given the calibration data is at least c with probability 1 - delta.

        By the random-rank lemma (docs/theory.md, Theorem C1b), for i.i.d. data.

        Parameters
        ----------
        delta
            Failure probability, in (0, 1).
        n
            Number of calibration records; required if it is secret, and then used for this statement only. The
            answer depends on a secret n, so it is for people who may see n.

        Examples
        --------
        >>> import confide, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> released = confide.calibrate(rng.random(1000), alpha=0.1, epsilon=1.0, neighbors="replace_one")
        >>> round(released.conditional_coverage(0.05), 3)
        0.878
        """
        failure, fails = float(exact_level("delta", delta)), self.coverage_failure(n)
        if fails(1.0) <= failure:
            return 1.0
        low, high = 0.0, 1.0
        while high - low > 1e-9:
            level = (low + high) / 2
            low, high = (low, level) if fails(level) > failure else (level, high)
        return low

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """The function c -> a bound on the probability that coverage given the calibration data is below c.

        By the random-rank lemma (docs/theory.md, Theorem C1b), for i.i.d. data, whatever their distribution. Exact for
        continuous scores with `mechanism="none"`. `n` as in `conditional_coverage`.

        Examples
        --------
        >>> import confide, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> released = confide.calibrate(rng.random(1000), alpha=0.1, epsilon=1.0, neighbors="replace_one")
        >>> round(released.coverage_failure()(0.88), 3)
        0.074
        """
        records = self._records(n)
        if self.mechanism is None:
            return lambda level: 0.0
        law = self.mechanism.rank_law(records, self.candidates)
        if law is None and self.population is not None:
            raise InputError(
                "delta",
                "a release for another population has no training-conditional statement",
                remedy="Its guarantee is marginal",
            )
        if law is None:
            raise InputError(
                "delta",
                f"mechanism {self.mechanism.name!r} has no training-conditional statement",
                remedy="Use 'slopes'",
            )
        return lambda level: law_failure(law, records, level)

    def coverage_at_most(self, n: int | None = None) -> float:
        """Upper bound on mean coverage for continuous scores, up to the mass of one bin (docs/theory.md, Theorem C4).

        1 for a mechanism without such a bound. `n` as in `conditional_coverage`.
        """
        n = self._records(n)
        if self.mechanism is None:
            return 1.0
        return self.mechanism.coverage_at_most(n, self.candidates)

    def _records(self, n: int | None) -> int:
        if n is None and self.n is None:
            raise InputError("n", "must be given: the number of calibration records is secret and not stored")
        if n is not None and self.n is not None and n != self.n:
            raise InputError("n", f"must be left out or equal the public number of records, {self.n}", got=str(n))
        return positive_integer("n", self.n if n is None else n)

    def _mechanism_facts(self) -> Facts:
        """The mechanism and its parameters."""
        return mechanism_facts(self.mechanism, self.candidates)

    def _proof(self) -> str:
        """The theorem from which the guarantee follows."""
        return proof_of(self.mechanism, self.guarantee, shifted=self.population is not None)

    def _section(self) -> Section:
        name = "unnamed score" if self.score is None else f"score {self.score!r}"
        facts = [("promise", str(self.guarantee)), ("privacy", str(self.privacy))]
        if self.size is not None:
            facts.append(("records", f"{self.size}, a noisy number, which is part of the release"))
        if self.chosen is not None:
            facts.append(("choice of the score", str(self.chosen)))
        if self.mechanism is not None and self.mechanism.name != "slopes":
            facts.append(("method", self.mechanism.name))
        if self.fingerprint is not None:
            facts.append(("fingerprint of the model", str(self.fingerprint)))
        lead = f"threshold {threshold_text(self)} for the {name}"
        return Section(type(self).__name__, lead, (*facts, *self._needed))

    def _brief(self) -> str:
        score = "no score named" if self.score is None else f"score {self.score!r}"
        alpha = f"alpha {float(self.alpha):g}"
        return f"threshold {self.threshold:.6g}, {score}, {alpha}, {self.guarantee.brief}, {self.privacy.brief}"


def threshold_text(calibration: Calibration) -> str:
    """A threshold with twelve digits; its meaning if it excludes nothing."""
    number = "+inf" if calibration.threshold == math.inf else f"{calibration.threshold:.12g}"
    return f"{number} ({meaning_of_infinity(calibration.score)})" if calibration.excludes_nothing else number


FALSE_NEGATIVES = "false_negative_rate"
"""The name of the loss of label sets: the share of true labels that they miss."""


def critical_score(loss: str) -> str:
    """The name of the score of a calibration of critical thresholds of this loss."""
    return f"critical threshold of {loss}"


_OF_SHARES = tuple(map(critical_score, (FALSE_NEGATIVES, "missed_area")))


def kind_asked(score: str | None) -> ScoreKind:
    """The kind of score that a threshold is compared with: for shares of true labels 1 - p, as for lac."""
    return score_kind("lac" if str(score).startswith(_OF_SHARES) else score)


def meaning_of_infinity(score: str | None) -> str:
    """The meaning of a threshold that excludes nothing, for sets, intervals, or an unknown score.

    Examples
    --------
    >>> meaning_of_infinity("lac"), meaning_of_infinity("cqr"), meaning_of_infinity("my own")
    ('every label is in every set', 'every interval is the whole line', 'nothing is excluded')
    """
    task = score_kind(score).task
    words = {"classification": "every label is in every set", "regression": "every interval is the whole line"}
    return words.get(task, "nothing is excluded")


def mark_uncompared(calibration: "Calibration") -> None:
    """Mark a calibration that was read and states a fingerprint: the model has not been compared with it yet."""
    if calibration.fingerprint is not None:
        vars(calibration)[_UNCOMPARED] = True  # like a cached property, no part of the value


def reminder_due(release: Release) -> bool:
    """Whether a reminder to compare the model is due: for a release that was read, at the first call alone."""
    due = [vars(part).pop(_UNCOMPARED, False) for part in release.parts.values()]
    return any(due)


def parts_of(release: Any) -> dict[str, Calibration]:
    """The thresholds of a release, by a printable name.

    Raises
    ------
    InputTypeError
        If it is not a release.

    Examples
    --------
    >>> import confide
    >>> scores = np.random.default_rng(0).random(4000)
    >>> list(parts_of(confide.calibrate_levels(scores, [0.2, 0.1], epsilon=1.0)))
    ['alpha 0.2', 'alpha 0.1']
    """
    return as_release(release).by_name


def as_release(release: Any) -> Release:
    """Return a release unchanged; raises an error for all other values, also for documents such as a monitor.

    Raises
    ------
    InputTypeError
        If it is not a release.
    """
    if not isinstance(release, Release):
        raise InputTypeError("release", "must be a calibration, of any kind", got=type(release).__name__)
    return release


def load_release(path: str | Path) -> Release:
    """Like `confide.load`, for thresholds only: a monitor or an evaluation raises an error."""
    return as_release(load(path))
