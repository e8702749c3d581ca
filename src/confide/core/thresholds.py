"""The thresholds of one request together: their keys, what the request states about all, and what follows for them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from confide.arrays import GroupColumns, group_name
from confide.core.fingerprint import ModelFingerprint
from confide.core.losses import limit_text
from confide.core.population import Population
from confide.core.threshold import Threshold
from confide.errors import InputError, InputTypeError
from confide.guarantee import Guarantee
from confide.mechanisms import (
    Chosen,
    Mechanism,
    Neighbors,
    NoisySize,
    PrivacyStatement,
    parallel_composition,
    sequential_composition,
)
from confide.scores import score_kind
from confide.support import Classes, Level, canonical_name, exact_level, places, require

# What the request of a release states about all its thresholds: their keys, and what they have in common.

# The property that distinguishes the thresholds of a release.
By: TypeAlias = Literal["level", "group", "class", "side"]

# The key of a threshold: None for a single one; a level, the name of a group or class, or "low" and "high".
Key: TypeAlias = Any

# The keys of the sides of an interval, and the score of each.
SCORE_OF_SIDE = {"low": "cqr_low", "high": "cqr_high"}

# The scores of the lower and the upper side.
SIDES = tuple(SCORE_OF_SIDE.values())

# Stands for both of them, each with its own threshold.
BOTH_SIDES = "cqr_sides"


class Keys(NamedTuple):
    """The printed form of the keys of a release."""

    to_text: Callable[[Key], str]
    """Convert a key to words."""
    each: str = ""
    """A phrase for what the number of required records belongs to."""


KEYS: Mapping[By | None, Keys] = {
    None: Keys(lambda _: ""),
    "level": Keys(lambda alpha: f"alpha {float(alpha):g}", " for all of them"),
    "side": Keys({"low": "lower side", "high": "upper side"}.__getitem__, " for both of them"),
    "group": Keys(lambda name: f"group {name}", " in each group"),
    "class": Keys(lambda name: f"class {name}", " in each class"),
}


class Statement(Protocol):
    """What a release states about all its thresholds: a `Request`, or the plan of a federation."""

    @property
    def by(self) -> By | None: ...
    @property
    def joint(self) -> bool: ...
    @property
    def overlap(self) -> GroupColumns | None: ...
    @property
    def neighbors(self) -> Neighbors: ...
    @property
    def loss(self) -> str | None: ...
    @property
    def bound(self) -> float: ...
    @property
    def classes(self) -> Classes | None: ...
    @property
    def about(self) -> Mapping[str, str]: ...
    @property
    def fingerprint(self) -> ModelFingerprint | None: ...
    @property
    def population(self) -> Population | None: ...
    @property
    def chosen(self) -> Chosen | None: ...
    @property
    def renews(self) -> str | None: ...
    def at(self, key: Key) -> "Statement": ...


class Stated:
    """A value that states what its request states."""

    request: Statement

    @property
    def by(self) -> By | None:
        """The type of keys; None if there is one threshold."""
        return self.request.by

    @property
    def overlap(self) -> GroupColumns | None:
        """The columns of groups that overlap; None for all other releases."""
        return self.request.overlap

    @property
    def neighbors(self) -> Neighbors:
        """The adjacency of the privacy loss of the whole."""
        return self.request.neighbors

    @property
    def loss(self) -> str | None:
        """The name of the loss whose expectation is bounded; None for a coverage guarantee."""
        return self.request.loss

    @property
    def bound(self) -> float:
        """The largest value of the loss."""
        return self.request.bound

    @property
    def about(self) -> Mapping[str, str]:
        """Public metadata: model, version of the model, data, purpose, responsible person, date; those given."""
        return self.request.about

    @property
    def fingerprint(self) -> ModelFingerprint | None:
        """The fingerprint of the model whose scores calibrated, made from public data; None if it was not stated."""
        return self.request.fingerprint

    @property
    def population(self) -> Population | None:
        """The public weights of the population of the guarantee, if it differs by a known shift; else None."""
        return self.request.population

    @property
    def chosen(self) -> Chosen | None:
        """The private choice of its score or model on a share of the records (`choose_score`); None without one."""
        return self.request.chosen

    @property
    def renews(self) -> str | None:
        """The SHA-256 checksum of the release that it renews, 64 hexadecimal digits; None if it renews none."""
        return self.request.renews


@dataclass(frozen=True, repr=False)
class Thresholds(Stated, Mapping[Key, Threshold]):
    """Thresholds by key, with their request: see `Release`."""

    request: Statement = field(hash=False)
    parts: Mapping[Key, Threshold] = field(hash=False)
    versions: Mapping[str, str] = field(hash=False)

    def __post_init__(self) -> None:
        ordered = dict(sorted(self.parts.items(), reverse=True)) if self.by == "level" else dict(self.parts)
        values = [threshold.threshold for threshold in ordered.values()]
        if not ordered or (self.by == "level" and values != sorted(values)):
            raise InputError("parts", "must be one or more thresholds; those of several levels must be nested")
        object.__setattr__(self, "parts", MappingProxyType(ordered))
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))

    def __hash__(self) -> int:
        return hash(tuple(self.parts.items()))

    # A mapping.

    def __getitem__(self, key: Any) -> Threshold:
        if self.by == "level":
            return self.parts[self.level_of(key)]
        if self.by == "side" or self.by is None:
            return self.parts[key]
        if self.overlap is not None and isinstance(key, tuple) and len(key) == 2:
            key = group_name(*key)
        place = places(self.parts)[key]
        require("name", place >= 0, f"must be one of the {len(self.parts)} calibrated groups", got="another")
        return list(self.parts.values())[place]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    # What is stated about all of them.

    @property
    def first(self) -> Threshold:
        """The first of the thresholds."""
        return next(iter(self.parts.values()))

    @property
    def only(self) -> Threshold:
        """The threshold of a release that has one."""
        if self.by is not None and len(self.parts) > 1:
            raise self._several()
        return self.first

    @property
    def disjoint(self) -> bool:
        """Whether keys are groups or classes; of groups that overlap a record has the largest threshold."""
        return self.by in ("group", "class")

    @property
    def bounded(self) -> tuple[str, float] | None:
        """The loss whose expectation is bounded, and its largest value; None for a coverage guarantee."""
        return None if self.loss is None else (self.loss, self.bound)

    @property
    def risk(self) -> float:
        """The guaranteed bound on the expected loss; `guarantee` states the type of guarantee."""
        return self.bound * (1 - self.promised)

    @property
    def classes(self) -> Classes | None:
        """The classes, or labels: their names, or their number; None if they are not stated."""
        if self.by == "class":
            names = tuple(self.parts)
            return len(names) if set(map(canonical_name, names)) == set(map(str, range(len(names)))) else names
        return self.request.classes

    @cached_property
    def privacy(self) -> PrivacyStatement:
        """The privacy loss of all thresholds together (docs/theory.md, section 6).

        Levels that one noisy histogram serves have its loss. The losses of other levels, and of sides, add up
        (sequential composition). Of groups, the largest loss in each column counts (parallel composition), and columns
        add up.
        """
        losses = [threshold.privacy for threshold in self.parts.values()]
        if self.by is None or self.request.joint:
            return max(losses, key=lambda privacy: privacy.epsilon)
        if not self.disjoint:
            return sequential_composition(losses)
        sized = self.chosen is not None or any(threshold.size is not None for threshold in self.parts.values())
        slices = [slice(None)] if self.overlap is None else self.overlap.slices
        columns = [parallel_composition(losses[column], self.neighbors, sized=sized) for column in slices]
        return columns[0] if self.overlap is None else sequential_composition(columns)

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The miscoverage levels of the guarantees; for two sides that of both together."""
        if self.by == "level":
            return tuple(self.parts)
        together = self.parts.values() if self.by == "side" else (self.first,)
        return (sum((threshold.alpha for threshold in together), Fraction(0)),)

    @property
    def alpha(self) -> Fraction:
        """The miscoverage level, if there is one; of two sides that of the interval."""
        if len(self.levels) > 1:
            raise self._several()
        return self.levels[0]

    @property
    def promised(self) -> float:
        """The coverage that is guaranteed for every record: the least over groups; for two sides of their interval.

        For a bound on a loss it is the coverage of critical thresholds.
        """
        coverages = [threshold.coverage for threshold in self.parts.values()]
        return max(0.0, 1 - sum(1 - coverage for coverage in coverages)) if self.by == "side" else min(coverages)

    @property
    def epsilon(self) -> float:
        """The privacy loss per person of all thresholds, under `privacy.neighbors`."""
        return self.privacy.epsilon

    @property
    def score(self) -> str | None:
        """The name of the nonconformity score, or None; for two sides that of the lower one."""
        return self.first.score

    @property
    def task(self) -> str:
        """The use of the thresholds: sets ("classification"), intervals ("regression"), or "any" other."""
        return score_kind(self.score).task

    @property
    def infinite(self) -> tuple[Key, ...]:
        """The keys of thresholds that exclude nothing: +inf, or the largest value of a bounded score."""
        return tuple(key for key, threshold in self.parts.items() if threshold.excludes_nothing)

    @property
    def by_name(self) -> dict[str, Threshold]:
        """The thresholds by a printable name, such as "alpha 0.2"; "" if there is one."""
        to_text = KEYS[self.by].to_text
        return {to_text(key): threshold for key, threshold in self.parts.items()}

    @property
    def promises(self) -> dict[str, str]:
        """The guarantees in words, by a phrase for what each is about; "" for a release as a whole."""
        if self.disjoint:
            return {f"each {self.by}": str(self.first.guarantee)}
        if self.loss is not None:
            return {"": self.promise}
        return {name: str(threshold.guarantee) for name, threshold in self.by_name.items()}

    @property
    def promise(self) -> str:
        """The guarantee of a single threshold in words; of a bounded loss, what it means for the loss."""
        if self.loss is None:
            return str(self.only.guarantee)
        limit = limit_text(self.loss, self.bound, self.risk)
        guarantee = self.only.guarantee
        # A marginal guarantee states that it is an average.
        return guarantee.of(limit if guarantee.delta is None else f"on average {limit}")

    def level_of(self, alpha: Level | None) -> Fraction:
        """The key of the level `alpha`; without an argument the only level.

        Raises
        ------
        InputError
            If `alpha` is not one of the levels, or is missing although there are several levels.
        """
        # A release of one level accepts that level, too.
        level = None if alpha is None else exact_level("alpha", alpha)
        if self.by != "level":
            if level not in (None, *self.levels):
                level_text = f"{float(self.levels[0]):g}"
                raise InputError("alpha", f"must be left out, or {level_text}: the release is for this level alone")
            return self.levels[0]
        levels = ", ".join(f"{float(alpha_i):g}" for alpha_i in self.parts)
        if level is None:
            raise InputError("alpha", f"must be given, one of the calibrated levels {levels}")
        require("alpha", level in self.parts, f"must be one of the calibrated levels {levels}", got=f"{float(level):g}")
        return level

    # The fields of the only threshold; for several they raise `InputTypeError`.

    @property
    def threshold(self) -> float:
        """The only threshold."""
        return self.only.threshold

    @property
    def guarantee(self) -> Guarantee:
        """The coverage guarantee of the only threshold."""
        return self.only.guarantee

    @property
    def coverage(self) -> float:
        """The guaranteed coverage of the only threshold; `guarantee.kind` states the type of guarantee."""
        return self.only.coverage

    @property
    def mechanism(self) -> Mechanism | None:
        """The public statement of the mechanism of the only threshold; None if it is +inf without reading the data."""
        return self.only.mechanism

    @property
    def candidates(self) -> int:
        """Number of candidates of the only threshold, +inf included."""
        return self.only.candidates

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The rule that made the candidates of the only threshold."""
        return self.only.recipe

    @property
    def size(self) -> NoisySize | None:
        """The noisy number of records that was released before the only threshold; None without one."""
        return self.only.size

    @property
    def n(self) -> int | None:
        """The number of calibration records if it is public (`replace_one`), else None."""
        return self.first.n

    @property
    def excludes_nothing(self) -> bool:
        """Whether the only threshold is +inf, or at least the largest value of the score."""
        return self.only.excludes_nothing

    def conditional_coverage(self, delta: Level, n: int | None = None) -> float:
        """`Threshold.conditional_coverage` of the only threshold."""
        return self.only.conditional_coverage(delta, n)

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """`Threshold.coverage_failure` of the only threshold."""
        return self.only.coverage_failure(n)

    def coverage_at_most(self, n: int | None = None) -> float:
        """`Threshold.coverage_at_most` of the only threshold."""
        return self.only.coverage_at_most(n)

    def _several(self) -> InputTypeError:
        got = f"one for each {self.by}"
        return InputTypeError("release", "must have one threshold", got=got, remedy="Choose one of them")
