"""The types of keys of a release, each with its printed form."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

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
