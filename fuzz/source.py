"""The fuzzer's bytes as choices: valid documents with a few fields changed."""

import json
import math
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from confide.errors import ConfideError
from confide.support import checksum

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 10**6, 2**48, 2**63, 10**30, 0.0, -0.0, 0.5, 1e-300, 1e300, 5e-324, -1.5,
    "", "+inf", "nan", "1/10", "9/10", "1/3", "0/1", "1/0", "999999/1000000", "1e-6", "-1/2", "1" * 50, "a" * 300,
    "unit", "spread", "of", "slopes", "pps", "none",
    "add_remove", "replace_one", "marginal", "\x00", "\ud800", [], {}, [1], {"a": 1},
)  # fmt: skip
"""Values for fields."""


class Source:
    """Choices drawn from the fuzzer's bytes, zeros when they run out."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def byte(self) -> int:
        """The next byte."""
        value = self._data[self._at] if self._at < len(self._data) else 0
        self._at += 1
        return value

    def below(self, most: int) -> int:
        """An integer in [0, most)."""
        return (self.byte() << 8 | self.byte()) % most

    def number(self) -> Any:
        """One of the listed values, a small integer, any float, or a text of the remaining bytes."""
        kind = self.byte() % 5
        if kind <= 1:
            return deepcopy(VALUES[self.below(len(VALUES))])  # lists and objects are modified later
        if kind == 2:
            return self.below(2000)
        if kind == 3:
            value = float(np.frombuffer(bytes(self.byte() for _ in range(8)), dtype=np.float64)[0])
            return value if math.isfinite(value) else 0.25
        return bytes(self.byte() for _ in range(self.byte() % 24)).decode("latin-1")


def change(document: Any, source: Source) -> Any:
    """A copy of a JSON document with one to three of its fields set, removed or added."""
    copy = json.loads(json.dumps(document))
    for _ in range(1 + source.byte() % 3):
        paths = list(_paths(copy, ()))
        if not paths:  # all of its fields were removed
            break
        path = paths[source.below(len(paths))]
        place = copy
        for key in path[:-1]:
            place = place[key]
        action = source.byte() % 8
        if action == 0 and isinstance(place, dict):
            del place[path[-1]]
        elif action == 1 and isinstance(place, dict):
            place[str(source.number())[:40]] = source.number()
        else:
            place[path[-1]] = source.number()
    return copy


def _paths(document: Any, prefix: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield (*prefix, key)
        if isinstance(value, dict | list):
            yield from _paths(value, (*prefix, key))


def one_line(error: ConfideError) -> None:
    """Check that an error is one line of moderate length."""
    assert "\n" not in str(error), "an error of several lines"
    assert len(str(error)) < 2000, "an error of many characters"


def with_checksum(document: Any) -> str | None:
    """A document with a valid checksum; None if it has no canonical JSON."""
    document.pop("sha256", None)
    try:
        return json.dumps({**document, "sha256": checksum(document)})
    except (ValueError, TypeError):
        return None
