"""What the request of a release states about all its thresholds: their keys, and what they have in common."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from confide.arrays import GroupColumns
from confide.core.fingerprint import ModelFingerprint
from confide.core.population import Population
from confide.mechanisms import Chosen, Neighbors
from confide.support import Classes

# The property that distinguishes the thresholds of a release.
By: TypeAlias = Literal["level", "group", "class", "side"]

# The key of a threshold: None for a single one; a level, the name of a group or class, or "low" and "high".
Key: TypeAlias = Any

# The keys of the sides of an interval, and the score of each.
SCORE_OF_SIDE = {"low": "cqr_low", "high": "cqr_high"}

# The scores of the lower and the upper side.
SIDES = tuple(SCORE_OF_SIDE.values())


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
