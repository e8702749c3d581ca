"""Releases of several thresholds: for levels, for groups or classes, for the two sides of CQR; and of a bounded loss.

Each contains one `Calibration` per threshold and the privacy loss of the whole. The total is computed from the parts,
so it cannot be stated wrongly. Reading a release verifies every part.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from confide.arrays import GroupColumns, Groups, group_name
from confide.core.calibration import FALSE_NEGATIVES, Calibration, Release, critical_score, threshold_text
from confide.errors import InputError, InputTypeError
from confide.mechanisms import Neighbors, PrivacyStatement, parallel_composition, sequential_composition
from confide.support import Level, Name, Section, places, positive_number


class _Several(Release):
    """Several thresholds: their cost together, and a table of them."""

    @property
    def privacy(self) -> PrivacyStatement:
        """The privacy loss of all thresholds together."""
        return sequential_composition([part.privacy for part in self.parts.values()])

    def __getitem__(self, key: Any) -> Calibration:
        return self.parts[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def _facts(self, *facts: tuple[str, str]) -> Section:
        chosen = [] if self.first.chosen is None else [("score", str(self.first.chosen))]
        return Section(type(self).__name__, facts=(*facts, *chosen, *self._needed))


def _records(part: Calibration) -> str:
    """The noisy number of records of a group, if it was released."""
    return "" if part.size is None else f", records: {part.size}"


def _promised(part: Calibration) -> str:
    return f"threshold {threshold_text(part)}; {part.guarantee}"


@dataclass(frozen=True, repr=False)
class LevelCalibration(_Several):
    """Nested thresholds for several levels, released under one privacy budget.

    Parameters
    ----------
    parts
        Mapping from miscoverage level to `Calibration`, levels decreasing; thresholds do not decrease.

    Examples
    --------
    >>> import confide, numpy as np
    >>> scores = np.random.default_rng(0).random(4000)
    >>> released = confide.calibrate_levels(scores, [0.2, 0.1], epsilon=1.0, score="lac")
    >>> released[0.1].threshold >= released[0.2].threshold, released.privacy.epsilon
    (True, 1.0)
    """

    by: ClassVar[Literal["level"]] = "level"

    parts: Mapping[Fraction, Calibration] = field(hash=False)

    def __post_init__(self) -> None:
        ordered = dict(sorted(self.parts.items(), reverse=True))
        thresholds = [part.threshold for part in ordered.values()]
        if not ordered or thresholds != sorted(thresholds) or any(p.alpha != a for a, p in ordered.items()):
            raise InputError("parts", "must be calibrations of their levels with nested thresholds")
        if len({part.classes for part in ordered.values()}) != 1:
            raise InputError("parts", "must be calibrations for the same classes")
        _refuse_other_lines(list(ordered.values()))
        object.__setattr__(self, "parts", MappingProxyType(ordered))

    def __getitem__(self, alpha: Level) -> Calibration:
        return self.parts[self.at(alpha).levels[0]]

    def _section(self) -> Section:
        levels = [(f"alpha {float(a):g}", _promised(part)) for a, part in self.parts.items()]
        return self._facts(*levels, ("privacy of all together", str(self.privacy)))

    def _brief(self) -> str:
        levels = ", ".join(f"{float(alpha):g}" for alpha in self.parts)
        return f"alpha {levels}: {_thresholds(self.parts.values())} for the first, {self.privacy.brief}"


@dataclass(frozen=True, repr=False)
class GroupCalibration(_Several):
    """One threshold per group of records, or per class, with secret group sizes.

    Parameters
    ----------
    by
        `"group"`: the threshold depends on the record's group. `"class"`: it depends on the label in question.
    neighbors
        The adjacency for the privacy loss of the whole.
    parts
        Mapping from the name of a group or class to `Calibration`.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores, ward = rng.random(4000), rng.choice(["a", "b"], 4000)
    >>> released = confide.calibrate_groups(scores, ward, ["a", "b"], 0.1, 1.0, score="lac")
    >>> released.privacy.epsilon, released.infinite
    (1.0, ())
    """

    by: Literal["group", "class"]
    neighbors: Neighbors
    parts: Mapping[Name, Calibration] = field(hash=False)

    def __post_init__(self) -> None:
        if not self.parts or len({(p.score, p.alpha, p.classes) for p in self.parts.values()}) != 1:
            raise InputError("parts", "must be calibrations of one score and one level, for the same classes")
        _refuse_other_lines(list(self.parts.values()))
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))

    @property
    def privacy(self) -> PrivacyStatement:
        """The privacy loss of all thresholds together: parallel composition (docs/theory.md, section 6)."""
        return self._side_by_side(list(self.parts.values()))

    def _side_by_side(self, parts: Sequence[Calibration]) -> PrivacyStatement:
        """The loss of parts of which each record is in one."""
        sized = any(part.size is not None or part.chosen is not None for part in parts)
        return parallel_composition([part.privacy for part in parts], self.neighbors, sized=sized)

    @property
    def score(self) -> str | None:
        """The name of the score."""
        return self.first.score

    @property
    def alpha(self) -> Fraction:
        """Miscoverage level, the same for every group."""
        return self.first.alpha

    @property
    def promises(self) -> dict[str, str]:
        """The guarantee for each group, or class, in words."""
        return {f"each {self.by}": str(self.first.guarantee)}

    @property
    def infinite(self) -> tuple[Name, ...]:
        """The groups whose threshold excludes nothing: it is +inf, or the largest value of a bounded score."""
        return tuple(name for name, part in self.parts.items() if part.excludes_nothing)

    def __getitem__(self, name: Name) -> Calibration:
        place = places(self.parts)[name]
        if place < 0:
            raise InputError("name", f"must be one of the {len(self.parts)} calibrated groups", got="another")
        return list(self.parts.values())[place]

    def _section(self) -> Section:
        section = self._facts(
            ("thresholds that exclude nothing", f"{len(self.infinite)} of {len(self.parts)}"),
            (f"promise for each {self.by}", str(self.first.guarantee)),
            *((("shares", any_shares(self)),) if any_shares(self) else ()),
            ("privacy", str(self.privacy)),
        )
        each = tuple(
            (f"{self.by} {name!r}", f"threshold {threshold_text(part)}{_records(part)}")
            for name, part in self.parts.items()
        )
        return replace(section, parts=(Section("", facts=each),))

    def _brief(self) -> str:
        some = "classes" if self.by == "class" else "groups"
        alpha = f"alpha {float(self.alpha):g}"
        return f"{len(self.parts)} {some}, {_thresholds(self.parts.values())} in each, {alpha}, {self.privacy.brief}"


@dataclass(frozen=True, repr=False)
class OverlappingCalibration(GroupCalibration):
    """One threshold for each group of several columns, such as sex, age and site; a record is in one of each column.

    The set of a record takes the largest threshold of its groups. Every group of every column has the guarantee, and
    no intersection of groups has one (docs/theory.md, Theorem G1).

    Parameters
    ----------
    by, neighbors
        As in `GroupCalibration`; `by` is `"group"`.
    parts
        Mapping from the name of a group, `column=value`, to `Calibration`, column by column.
    columns
        The columns and their values.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> groups = {"sex": rng.choice(["f", "m"], 4000), "site": rng.choice(["a", "b"], 4000)}
    >>> names = {"sex": ["f", "m"], "site": ["a", "b"]}
    >>> released = confide.calibrate_groups(rng.random(4000), groups, names, 0.1, 1.0, score="lac")
    >>> limit = float(released.limits(1, groups={"sex": ["f"], "site": ["b"]})[0])
    >>> limit == max(released["sex", "f"].threshold, released["site", "b"].threshold), released.privacy.epsilon
    (True, 1.0)
    """

    columns: GroupColumns

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.by != "group" or tuple(self.parts) != self.columns.names:
            raise InputError("parts", "must be calibrations of the groups of all columns, in their order")

    @property
    def overlap(self) -> GroupColumns:
        """The columns and their values."""
        return self.columns

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all groups, column by column."""
        return self.columns.names

    @property
    def privacy(self) -> PrivacyStatement:
        """The privacy loss of all thresholds: parallel composition in each column, and the sum over columns."""
        parts = list(self.parts.values())
        return sequential_composition([self._side_by_side(parts[piece]) for piece in self.columns.slices])

    def places(self, groups: Groups, n: int) -> NDArray[np.int64]:
        """The positions of each record's groups among the parts, int64, shape (n, columns)."""
        return self.columns.places(groups, n)

    def __getitem__(self, name: Any) -> Calibration:
        return super().__getitem__(group_name(*name) if isinstance(name, tuple) and len(name) == 2 else name)

    def _section(self) -> Section:
        section = super()._section()
        facts = (("groups of", f"{self.columns}: {OVERLAP}"), *section.facts)
        return replace(section, facts=facts)


def any_shares(release: Release) -> str:
    """A clause about the shares of groups or classes, under all of which their promise holds; empty for others.

    If groups overlap, other shares of one column change the records within the groups of another.

    Examples
    --------
    >>> import confide, numpy as np
    >>> scores = np.random.default_rng(0).random(4000)
    >>> any_shares(confide.calibrate_groups(scores, ["a", "b"] * 2000, ["a", "b"], 0.1, 1.0, score="lac"))
    'the promise holds for any shares of the groups among new records'
    """
    if not release.disjoint or release.overlap is not None or not all(part.coverage for part in release.parts.values()):
        return ""
    some = "classes" if release.by == "class" else "groups"
    return f"the promise holds for any shares of the {some} among new records"


OVERLAP = (
    "a record is in one group of each, and its set takes the largest threshold of its groups; the promise is for each "
    "group, on average over its people, and not for intersections of groups"
)
"""The meaning of groups of several columns, in words."""


def refuse_overlapping(release: Release, remedy: str = "") -> None:
    """Reject a release of groups that overlap where a record must have one group.

    Raises
    ------
    InputError
        If its groups overlap.
    """
    if release.overlap is not None:
        must = "must have one threshold, or groups that divide the records"
        raise InputError("release", must, got="groups that overlap", remedy=remedy)


@dataclass(frozen=True, repr=False)
class SidesCalibration(_Several):
    """One threshold for each side of conformalized quantile regression, released under one privacy budget.

    The upper end misses with probability at most `high.alpha` and the lower end with at most `low.alpha`, so the
    interval covers with probability at least 1 - low.alpha - high.alpha (Romano et al. 2019, Theorem 2).

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=4000)
    >>> released = confide.calibrate_sides(np.tile([-1.0, 1.0], (4000, 1)), y, 0.1, 1.0)
    >>> released.alpha, released.privacy.epsilon
    (Fraction(1, 10), 1.0)
    """

    by: ClassVar[Literal["side"]] = "side"

    low: Calibration
    high: Calibration

    def __post_init__(self) -> None:
        if self.low.score != "cqr_low" or self.high.score != "cqr_high":
            raise InputError("low", "low and high must be calibrations of the scores cqr_low and cqr_high")
        _refuse_other_lines([self.low, self.high])

    @property
    def parts(self) -> Mapping[str, Calibration]:
        """The two thresholds, as "low" and "high"."""
        return {"low": self.low, "high": self.high}

    @property
    def alpha(self) -> Fraction:
        """Miscoverage level of the interval."""
        return self.levels[0]

    def _section(self) -> Section:
        return self._facts(
            ("lower side", _promised(self.low)),
            ("upper side", _promised(self.high)),
            ("privacy of both together", str(self.privacy)),
        )

    def _brief(self) -> str:
        return f"{_thresholds([self.low, self.high])} at each end, alpha {float(self.alpha):g}, {self.privacy.brief}"


def _thresholds(parts: Iterable[Calibration]) -> str:
    """The range of thresholds and the weakest guarantee among them, in one line."""
    several = list(parts)
    low, high = (pick(part.threshold for part in several) for pick in (min, max))
    where = f"threshold {low:.6g}" if low == high else f"thresholds {low:.6g} to {high:.6g}"
    useless = sum(part.excludes_nothing for part in several)
    useless_text = f" ({useless} of them exclude nothing)" if useless and low != high else ""
    weakest = min(several, key=lambda part: part.coverage)
    score = "no score named" if weakest.score is None else f"score {weakest.score!r}"
    return f"{where}{useless_text}, {score}, {weakest.guarantee.brief}"


def _refuse_other_lines(parts: list[Calibration]) -> None:
    if len({part.fingerprint for part in parts}) > 1:
        raise InputError("parts", "must state the same fingerprint of a model")
    if len({part.renews for part in parts}) > 1:
        raise InputError("parts", "must renew the same release")


_SHARE = re.compile(r"false_negative_rate|missed_area(\(.*\))?", re.DOTALL)


@dataclass(frozen=True, repr=False)
class RiskCalibration(Release):
    """A threshold that bounds the expectation of a loss, and the calibration of critical thresholds that it comes from.

    Parameters
    ----------
    loss
        Name of the loss.
    bound
        Its largest possible value.
    calibration
        The release: coverage of critical thresholds, and the privacy statement.
    """

    by: ClassVar[Literal["loss"]] = "loss"

    loss: str
    bound: float
    calibration: Calibration

    def __post_init__(self) -> None:
        check_bound(self.loss, self.bound)
        if not isinstance(self.loss, str) or self.calibration.score != critical_score(self.loss):
            raise InputError("calibration", "must be one of critical thresholds of this loss")

    @property
    def parts(self) -> Mapping[str, Calibration]:
        """The calibration, under the name of the loss."""
        return {self.loss: self.calibration}

    @property
    def bounded(self) -> tuple[str, float]:
        """The loss, and its largest value."""
        return self.loss, self.bound

    @property
    def threshold(self) -> float:
        """The released threshold."""
        return self.calibration.threshold

    @property
    def risk(self) -> float:
        """The guaranteed bound on the expected loss; `calibration.guarantee` states the type of guarantee."""
        return self.bound * (1 - self.calibration.coverage)

    @property
    def promises(self) -> dict[str, str]:
        """The guarantee of the release as a whole."""
        return {"": self.promise}

    @property
    def promise(self) -> str:
        """The guarantee in words.

        Examples
        --------
        >>> import confide, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random((4000, 3))
        >>> confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.2, 1.0).promise
        "at most 20 % of a record's true labels are missed on average over calibration data and new records, for ..."
        """
        average = self.calibration.guarantee.delta is None  # the guarantee then states that it is an average
        return self.calibration.guarantee.of(self.limit if average else f"on average {self.limit}")

    @property
    def limit(self) -> str:
        """The bound in words, without the statement that it is an average."""
        if self.bound == 1 and self.loss == FALSE_NEGATIVES:
            return f"at most {100 * self.risk:.6g} % of a record's true labels are missed"
        if self.bound == 1 and _SHARE.fullmatch(self.loss):
            return f"at most {100 * self.risk:.6g} % of an image's true area is missed"
        return f"a loss {self.loss!r} of at most {self.risk:.6g}"

    @property
    def privacy(self) -> PrivacyStatement:
        """The privacy loss."""
        return self.calibration.privacy

    def _section(self) -> Section:
        lead = f"threshold {threshold_text(self.calibration)} for the loss {self.loss!r}"
        facts = (("promise", self.promise), ("privacy", str(self.privacy)), *self._needed)
        return Section(type(self).__name__, lead, facts)

    def _brief(self) -> str:
        least = self.calibration.guarantee
        sure = "" if least.delta is None else f" with probability {1 - least.delta:.6g}"
        loss_text = f"loss {self.loss!r}, expected loss at most {self.risk:.6g}{sure}"
        return f"threshold {self.threshold:.6g}, {loss_text}, {self.privacy.brief}"


def check_bound(loss: str, bound: float) -> float:
    """Validate the bound of a loss; for a share it must be at least 1, or the guaranteed risk would be too small.

    Examples
    --------
    >>> check_bound("cost", 0.5), check_bound("missed_area", 1)
    (0.5, 1.0)
    """
    number = positive_number("bound", bound)
    if number < 1 and isinstance(loss, str) and _SHARE.fullmatch(loss):
        raise InputError(
            "bound", f"must be at least 1 for the loss {loss!r}, a share", remedy="Otherwise name a loss of your own"
        )
    return number


_NAME = re.compile(r"missed_area(?:\((?:background=(\d+))?,?(?:average=(classes))?\))?")


@dataclass(frozen=True)
class MissedAreaLoss:
    """The share of the true area of an image that a mask misses; 0 for an image without any.

    Parameters
    ----------
    background
        The class whose pixels do not count as area, or None.
    by_class
        Whether every class that occurs has equal weight, however large it is; else every pixel does.

    Examples
    --------
    >>> MissedAreaLoss(background=0, by_class=True).name
    'missed_area(background=0,average=classes)'
    >>> MissedAreaLoss.of("missed_area") == MissedAreaLoss(), MissedAreaLoss.of("false_negative_rate") is None
    (True, True)
    """

    background: int | None = None
    by_class: bool = False

    @property
    def name(self) -> str:
        """The name of the loss in a release."""
        parameters = [] if self.background is None else [f"background={self.background}"]
        parameters += ["average=classes"] if self.by_class else []
        return f"missed_area({','.join(parameters)})" if parameters else "missed_area"

    @classmethod
    def of(cls, name: str) -> "MissedAreaLoss | None":
        """The loss with this name; None if it is another."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        loss = cls(None if match[1] is None else int(match[1]), match[2] is not None)
        return loss if loss.name == name else None

    def check(self, classes: int) -> None:
        """Raise an error if the background is not one of the classes, or is the only one."""
        if self.background is not None and not (classes > 1 and self.background < classes):
            raise InputError(
                "background",
                "must be the number of one of several classes, or be left out",
                got=f"{self.background} for {classes}",
            )


def area_of(calibration: RiskCalibration) -> MissedAreaLoss:
    """The loss of a calibration of masks; raises an error for other calibrations."""
    loss = calibration.bounded if isinstance(calibration, Release) else None
    area = None if loss is None else MissedAreaLoss.of(loss[0])
    if area is None:
        raise InputTypeError("calibration", "must come from calibrate_masks")
    return area
