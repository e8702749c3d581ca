"""Releases of several thresholds at once: for several levels, for groups or classes, for the two sides of CQR.

Each holds one `Calibration` per threshold and the privacy loss of the whole. The total is computed from the parts, so
it cannot be stated wrongly; reading one checks every part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_positions
from confide.errors import InputError, InputTypeError
from confide.mechanisms import Neighbors, PrivacyStatement, in_sequence, side_by_side
from confide.releases.calibration import Calibration, threshold_text
from confide.releases.needed import needed_line
from confide.releases.predecessors import same_line
from confide.releases.release import Release
from confide.releases.risk import RiskCalibration
from confide.support import Level, Name, exact_level, html_table, order_of, places


@dataclass(frozen=True, repr=False)
class LevelCalibration(Release):
    """Nested thresholds for several levels, released under one budget.

    Parameters
    ----------
    parts
        Miscoverage level to `Calibration`, levels decreasing; thresholds do not decrease.

    Examples
    --------
    >>> import confide, numpy as np
    >>> scores = np.random.default_rng(0).random(4000)
    >>> released = confide.calibrate_levels(scores, [0.2, 0.1], epsilon=1.0, score="lac")
    >>> released[0.1].threshold >= released[0.2].threshold, released.privacy.epsilon
    (True, 1.0)
    """

    parts: Mapping[Fraction, Calibration] = field(hash=False)

    def __post_init__(self) -> None:
        ordered = dict(sorted(self.parts.items(), reverse=True))
        thresholds = [part.threshold for part in ordered.values()]
        if not ordered or thresholds != sorted(thresholds) or any(p.alpha != a for a, p in ordered.items()):
            raise InputError("parts must be calibrations of their levels with nested thresholds")
        if len({part.classes for part in ordered.values()}) != 1:
            raise InputError("parts must be calibrations for the same classes")
        _refuse_other_lines(list(ordered.values()))
        object.__setattr__(self, "parts", MappingProxyType(ordered))

    @property
    def privacy(self) -> PrivacyStatement:
        """The loss of all thresholds together."""
        return in_sequence([part.privacy for part in self.parts.values()])

    def __getitem__(self, alpha: Level) -> Calibration:
        level = exact_level("alpha", alpha)
        if level not in self.parts:
            known = ", ".join(f"{float(a):g}" for a in self.parts)
            raise InputError(f"alpha must be one of the calibrated levels {known}; found {float(level):g}")
        return self.parts[level]

    def __iter__(self) -> Iterator[Fraction]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __str__(self) -> str:
        lines = [f"alpha {float(a):g}: threshold {threshold_text(p)}; {p.guarantee}" for a, p in self.parts.items()]
        needed = needed_line(self.parts.values(), " for all of them")
        return "\n".join([*lines, f"privacy of all together: {self.privacy}{needed}"])

    def _brief(self) -> str:
        levels = ", ".join(f"{float(alpha):g}" for alpha in self.parts)
        return f"alpha {levels}: {_thresholds(self.parts.values())} for the first, {self.privacy.brief}"

    def _repr_html_(self) -> str:
        """Level by level, for notebooks."""
        rows = [(f"{float(a):g}", threshold_text(part), str(part.guarantee)) for a, part in self.parts.items()]
        notes = str(self).splitlines()[len(rows) :]
        return html_table(type(self).__name__, ("alpha", "threshold", "promise"), rows, notes)


@dataclass(frozen=True, repr=False)
class GroupCalibration(Release):
    """One threshold per group of records, or per class, with group sizes kept secret.

    Parameters
    ----------
    by
        `"group"`: the threshold depends on the record's group. `"class"`: on the label that is considered.
    neighbors
        The relation under which the loss of the whole is stated.
    parts
        Name of the group or class to `Calibration`.

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
            raise InputError("parts must be calibrations of one score and one level, for the same classes")
        _refuse_other_lines(list(self.parts.values()))
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))

    @property
    def privacy(self) -> PrivacyStatement:
        """The loss of all thresholds together: parallel composition (docs/theory-groups.md)."""
        return side_by_side([part.privacy for part in self.parts.values()], self.neighbors)

    @property
    def score(self) -> str | None:
        """The name of the score."""
        return next(iter(self.parts.values())).score

    @property
    def alpha(self) -> Fraction:
        """Miscoverage level, the same for every group."""
        return next(iter(self.parts.values())).alpha

    @property
    def infinite(self) -> tuple[Name, ...]:
        """The groups whose threshold is +inf: too few records for a finite one, as far as privacy lets us know."""
        return tuple(name for name, part in self.parts.items() if part.threshold == np.inf)

    def __getitem__(self, name: Name) -> Calibration:
        place = places(self.parts)[name]
        if place < 0:
            raise InputError(f"name must be one of the {len(self.parts)} calibrated groups; found another")
        return list(self.parts.values())[place]

    def __iter__(self) -> Iterator[Name]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def look_up(self, groups: ArrayLike | None, n: int) -> NDArray[np.float64]:
        """The threshold of each record, float64, shape (n,), by its group."""
        if self.by == "class":
            raise InputError("calibration has thresholds per class; groups do not apply to it")
        if groups is None:
            raise InputError("groups must be given: the calibration has one threshold per group")
        positions = as_positions("groups", groups, tuple(self.parts), n)
        return np.array([part.threshold for part in self.parts.values()])[positions]

    def class_thresholds(self, names: tuple[object, ...] | None, k: int) -> NDArray[np.float64]:
        """The threshold of each of the k classes, float64, shape (k,); `names` in the order of the columns.

        Classes that were calibrated as positions, 0 to K-1, are those of K columns of any name.
        """
        order = order_of(tuple(range(k)) if names is None else names, tuple(self.parts))
        if order is None:
            order = order_of(tuple(range(k)), tuple(self.parts))
        if order is None:
            raise InputError(
                f"classes must be given, for the calibration knows {len(self.parts)} by their names; found {k} columns "
                "without these names: pass classes=[...] in the order of the columns"
            )
        return np.array([part.threshold for part in self.parts.values()])[order]

    def __str__(self) -> str:
        lines = [f"{self.by} {name!r}: threshold {threshold_text(part)}" for name, part in self.parts.items()]
        few = f"{len(self.infinite)} of {len(self.parts)} thresholds are +inf"
        promise = next(iter(self.parts.values())).guarantee
        needed = needed_line(self.parts.values(), f" in each {self.by}")
        return "\n".join([*lines, few, f"promise for each {self.by}: {promise}", f"privacy: {self.privacy}{needed}"])

    def _brief(self) -> str:
        some = "classes" if self.by == "class" else "groups"
        alpha = f"alpha {float(self.alpha):g}"
        return f"{len(self.parts)} {some}, {_thresholds(self.parts.values())} in each, {alpha}, {self.privacy.brief}"

    def _repr_html_(self) -> str:
        """Group by group, for notebooks."""
        rows = [(name, threshold_text(part)) for name, part in self.parts.items()]
        notes = str(self).splitlines()[len(rows) :]
        return html_table(type(self).__name__, (self.by, "threshold"), rows, notes)


@dataclass(frozen=True, repr=False)
class SidesCalibration(Release):
    """One threshold for each side of conformalized quantile regression, released under one budget.

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

    low: Calibration
    high: Calibration

    def __post_init__(self) -> None:
        if self.low.score != "cqr_low" or self.high.score != "cqr_high":
            raise InputError("low and high must be calibrations of the scores cqr_low and cqr_high")
        _refuse_other_lines([self.low, self.high])

    @property
    def privacy(self) -> PrivacyStatement:
        """The loss of both thresholds together."""
        return in_sequence([self.low.privacy, self.high.privacy])

    @property
    def alpha(self) -> Fraction:
        """Miscoverage of the interval."""
        return self.low.alpha + self.high.alpha

    def __str__(self) -> str:
        return (
            f"lower side: threshold {threshold_text(self.low)}; {self.low.guarantee}\n"
            f"upper side: threshold {threshold_text(self.high)}; {self.high.guarantee}\n"
            f"privacy of both together: {self.privacy}{needed_line([self.low, self.high], ' for both of them')}"
        )

    def _brief(self) -> str:
        return f"{_thresholds([self.low, self.high])} at each end, alpha {float(self.alpha):g}, {self.privacy.brief}"


def _thresholds(parts: Iterable[Calibration]) -> str:
    """Thresholds, from where to where, and the weakest promise among them, for one line."""
    several = list(parts)
    low, high = (pick(part.threshold for part in several) for pick in (min, max))
    where = f"threshold {low:.6g}" if low == high else f"thresholds {low:.6g} to {high:.6g}"
    infinite = sum(part.threshold == np.inf for part in several)
    few = f" ({infinite} of them +inf)" if infinite and low != high else ""
    weakest = min(several, key=lambda part: part.coverage)
    score = "no score named" if weakest.score is None else f"score {weakest.score!r}"
    return f"{where}{few}, {score}, {weakest.guarantee.brief}"


def _refuse_other_lines(parts: list[Calibration]) -> None:
    if not same_line(part.predecessors for part in parts):
        raise InputError("parts must renew the same releases")


def parts_of(release: Release) -> dict[str, Calibration]:
    """The calibrations that a release consists of, by a name for people.

    Raises
    ------
    InputTypeError
        If it is no release.

    Examples
    --------
    >>> import confide, numpy as np
    >>> scores = np.random.default_rng(0).random(4000)
    >>> list(parts_of(confide.calibrate_levels(scores, [0.2, 0.1], epsilon=1.0)))
    ['alpha 0.2', 'alpha 0.1']
    """
    match release:
        case Calibration():
            return {"": release}
        case LevelCalibration():
            return {f"alpha {float(alpha):g}": part for alpha, part in release.parts.items()}
        case GroupCalibration():
            return {f"{release.by} {name}": part for name, part in release.parts.items()}
        case SidesCalibration():
            return {"lower side": release.low, "upper side": release.high}
        case RiskCalibration():
            return {release.loss: release.calibration}
    raise InputTypeError(f"release must be a calibration, of any kind; found {type(release).__name__}")


def promised_coverage(release: Release) -> float:
    """The coverage that every record of a release is promised: for groups the least of theirs, for two sides together.

    Of a bound on a loss it is the coverage of critical thresholds.
    """
    parts = [part.coverage for part in parts_of(release).values()]
    return max(0.0, 1 - sum(1 - one for one in parts)) if isinstance(release, SidesCalibration) else min(parts)


def at_level(release: Any, alpha: Level | None) -> Any:
    """The thresholds of a release at a level; without one those of its only level.

    Raises
    ------
    InputError
        If it is not one of its levels, or has to be said.

    Examples
    --------
    >>> import confide
    >>> made = confide.calibrate_levels(np.linspace(0, 1, 2000), [0.1, 0.2], 2.0)
    >>> at_level(made, 0.2) == made[0.2] == at_level(made[0.2], None)
    True
    """
    if isinstance(release, LevelCalibration):
        if alpha is None:
            known = ", ".join(f"{float(level):g}" for level in release)
            raise InputError(f"alpha must be given, one of the calibrated levels {known}")
        return release[alpha]
    if alpha is not None:
        own = release.calibration.alpha if isinstance(release, RiskCalibration) else release.alpha
        if exact_level("alpha", alpha) != own:
            raise InputError(f"alpha must be left out, or {float(own):g}: the release is for this level alone")
    return release
