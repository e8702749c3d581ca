"""A chain of releases: which earlier ones a release renews, and what they released; public numbers all of them.

A release that renews another names its whole line, oldest first. Each entry has the earlier document's SHA-256, so that
whoever has the file can check that it is the one that is meant (`links`), and what it released: the course is there to
be read without the files. What one release cost adds up with the others' (docs/theory-after-release.md).

Candidates around the threshold of the last predecessor are public for new records. For records of which some were in an
earlier release of the chain they are not, and the promise is a weaker one (`miss_if_reused`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from confide.errors import FormatError, InputError, InputTypeError
from confide.releases.about import check_about
from confide.support import Fields

MOST_PREDECESSORS = 1000
_HEXADECIMAL = frozenset("0123456789abcdef")


@dataclass(frozen=True)
class Predecessor:
    """An earlier release of a chain, as those that renew it know it.

    Parameters
    ----------
    checksum
        `checksum` of that release: 64 hexadecimal digits.
    threshold
        What it released, of several thresholds the one that this part renews; +inf included.
    epsilon
        What it cost as a whole, per person; infinite if it was not private, or had no pure epsilon.
    date
        What it said of its date, if it said something.

    Raises
    ------
    InputError, InputTypeError
        If something cannot be that.

    Examples
    --------
    >>> Predecessor("0" * 64, 0.93, 1.0, "2026-10-01").threshold
    0.93
    """

    checksum: str
    threshold: float
    epsilon: float
    date: str | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.checksum, str) and len(self.checksum) == 64 and _HEXADECIMAL.issuperset(self.checksum)):
            raise InputError("a predecessor's checksum must be 64 hexadecimal digits")
        for name in ("threshold", "epsilon"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputTypeError(f"a predecessor's {name} must be a number; found {type(value).__name__}")
            object.__setattr__(self, name, float(value))
        if math.isnan(self.threshold) or self.threshold == -math.inf or not self.epsilon >= 0:
            raise InputError("a predecessor's threshold must be a number or +inf, and its epsilon not negative")
        if self.date is not None:
            check_about({"date": self.date})


def check_predecessors(predecessors: Iterable[Predecessor]) -> tuple[Predecessor, ...]:
    """A line of predecessors, oldest first, none twice.

    Raises
    ------
    InputError, InputTypeError
        If there are too many, others than predecessors, or one twice.
    """
    line = tuple(predecessors)
    if len(line) > MOST_PREDECESSORS:
        raise InputError(f"predecessors must number at most {MOST_PREDECESSORS}; start a new chain with calibrate")
    if not all(isinstance(one, Predecessor) for one in line):
        raise InputTypeError("predecessors must be Predecessor")
    if len({one.checksum for one in line}) != len(line):
        raise InputError("predecessors must be different releases; one is named twice")
    return line


def same_line(lines: Iterable[Sequence[Predecessor]]) -> bool:
    """Whether lines name the same releases, as those of the parts of one release do; thresholds are their own."""
    return len({tuple((one.checksum, one.epsilon, one.date) for one in line) for line in lines}) <= 1


def write_predecessors(predecessors: tuple[Predecessor, ...]) -> dict[str, Any]:
    """The line as a field of a file; nothing for a release that renews none."""
    if not predecessors:
        return {}
    listed = [
        {
            "sha256": one.checksum,
            "threshold": as_number(one.threshold),
            "epsilon": as_number(one.epsilon),
            **({} if one.date is None else {"date": one.date}),
        }
        for one in predecessors
    ]
    return {"predecessors": listed}


def read_predecessors(fields: Fields) -> tuple[Predecessor, ...]:
    """The line of a file, exactly as it was written.

    Raises
    ------
    FormatError, InputError, InputTypeError
        If it is no such line.
    """
    if "predecessors" not in fields:
        return ()
    line = []
    for content in fields.take("predecessors", list):
        one = Fields(fields.document, content if isinstance(content, dict) else {}, "predecessors")
        threshold, epsilon = (
            _number(one.take(key, (float, int, str)), one.document) for key in ("threshold", "epsilon")
        )
        date = one.take("date", str) if "date" in one else None
        line.append(Predecessor(one.take("sha256", str), threshold, epsilon, date))
        one.finish()
    if not line:
        raise FormatError(f"the {fields.document}'s field 'predecessors' must name releases, or be left out")
    return check_predecessors(line)


def as_number(value: float | str | None) -> float | str | None:
    """A value as JSON has them: infinity is the text "+inf"."""
    return "+inf" if value == math.inf else value


def _number(value: float | str, document: str) -> float:
    if isinstance(value, str):
        if value != "+inf":
            raise FormatError(f"the {document}'s predecessors must have numbers, or '+inf'")
        return math.inf
    return float(value)
