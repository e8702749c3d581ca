"""Looks of a watch: the noisy counts of a batch of records, also as a ledger stores them, and the state after them."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from confide.errors import FormatError, InputTypeError
from confide.noisy_counts import coverage_interval
from confide.support import (
    SCHEMA,
    UNUSABLE,
    check_schema,
    check_version_texts,
    json_number,
    parse_object,
    refused_content,
    require,
)
from confide.watching.settings import Settings

_MOST_CHARACTERS = 200
"""Longest name of a look."""


@dataclass(frozen=True)
class Look:
    """The noisy counts of one batch of records; they are public.

    Parameters
    ----------
    name
        Name of the batch, for example `2026-03-02`; unique within a watch.
    made
        Time of the draw, UTC, ISO 8601.
    counts
        For coverage: covered and missed records of each part in turn. For set sizes: records in each size bin. The
        noise can make them negative.
    versions
        Versions of the libraries that drew the counts.
    """

    name: str
    made: str
    counts: tuple[int, ...]
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputTypeError("look", "must be a name", got=type(self.name).__name__)
        printable = self.name.isprintable() and self.name.strip() == self.name
        must = f"must be 1 to {_MOST_CHARACTERS} printable characters without spaces at its ends"
        require("look", 0 < len(self.name) <= _MOST_CHARACTERS and printable, must)
        require("made", _is_time(self.made), "must be an ISO 8601 time with a time zone")
        check_version_texts("versions", self.versions)
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))


def _is_time(text: str) -> bool:
    try:
        return len(text) <= 40 and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def now() -> str:
    """The time, UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Point:
    """State of a watch after a look.

    Parameters
    ----------
    look
        The look.
    log_evidence
        Logarithm of the e-process of all parts together.
    parts
        Logarithm of the e-process of each part, by its name.
    alarmed
        Whether the alarm was raised at this look or before.
    low, high
        Confidence sequence of coverage; None for set sizes.
    """

    look: Look
    log_evidence: float
    parts: Mapping[str, float]
    alarmed: bool
    low: float | None = None
    high: float | None = None


def evidence_text(log_evidence: float, alarm_at: float) -> str:
    """An e-process in words; far beyond the alarm line, only a bound."""
    bound = max(1e6, 10 * alarm_at)
    return f"{math.exp(log_evidence):.3g}" if log_evidence <= math.log(bound) else f"more than {bound:,.0f}"


def plain_fields(value: Any) -> Any:
    """JSON values of a dataclass: fractions as texts, and infinite numbers as JSON writes them.

    Fields that a file leaves out have their defaults, so that the file differs from what is written.
    """
    if is_dataclass(value):
        return {field.name: plain_fields(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [plain_fields(entry) for entry in value]
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, Fraction) else json_number(value)


# Looks in a ledger.

LOOK_KIND = "confide/look"


def look_text(release: str, look: Look) -> str:
    """A look as a ledger stores it; `release` is the checksum of the monitored release."""
    return json.dumps({"kind": LOOK_KIND, "schema": SCHEMA, "release": release, **plain_fields(look)})


def stored_look(text: str, name: str) -> Look:
    """The look of this name, read from the text that a ledger stored.

    Raises
    ------
    FormatError
        If the text is not a look of this name, or was altered.
    """
    with refused_content("look", "look"):
        content = parse_object(text)
        check_schema(content, LOOK_KIND, "look")
        look = msgspec.convert(content, Look, strict=True)
        # Only what is written again with the same content is accepted
        if look.name != name or content != json.loads(look_text(content["release"], look)):
            raise FormatError(
                "look", "must be the text that confide writes for its content: it was altered", remedy=UNUSABLE
            )
        return look


@dataclass(frozen=True, eq=False)
class CoverageOfLooks:
    """Covered and missed records of each look, all parts together, with a 95 % interval for each look's coverage alone.

    The intervals include the noise, and need independent records. Arrays have the shape (looks,).
    """

    covered: NDArray[np.int64]
    missed: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of(cls, settings: Settings, looks: Sequence[Look]) -> "CoverageOfLooks":
        """From the pairs of counts of each part."""
        pairs = np.array([look.counts for look in looks], np.int64).reshape(len(looks), -1, 2)
        covered, missed = pairs.sum(axis=1).T
        noises = len(settings.promised)
        low, high = coverage_interval(covered, missed, settings.noise_epsilon, guess=max(settings.least), noises=noises)
        return cls(covered, missed, low, high)
