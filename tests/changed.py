"""All small changes of a document: what is read afterwards must follow from what it states."""

import copy
import itertools
import json
from collections.abc import Iterator
from typing import Any

ODD = (
    *(None, True, -1, 0, 10**18, 1.5, 1e308, "", "x", "1/0", "1/2", "9" * 100),
    *([], {}, [[]], [None], {"a": 1}, "\u0000", "nan"),
)


def places(value: Any, path: tuple[Any, ...] = (), *, first: int) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all values in a document; of each list, only the first elements."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(min(len(value), first)):
            yield from places(value[key], (*path, key), first=first)


def changes(document: Any, first: int = 2) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the document with one value changed or removed, with one field or element more, or with two exchanged."""
    for path in places(document, first=first):
        changed = copy.deepcopy(document)
        inner = changed
        for key in path[:-1]:
            inner = inner[key]
        here = inner[path[-1]] if path else changed
        for other in others_of(here):
            if not path:
                yield path, other
            else:
                inner[path[-1]] = other
                yield path, copy.deepcopy(changed)
        if path:
            for value in ODD:
                if json.dumps(value) != json.dumps(here):
                    inner[path[-1]] = value
                    yield path, copy.deepcopy(changed)
            del inner[path[-1]]
            yield path, changed


def others_of(value: Any) -> Iterator[Any]:
    """Values of the same form: the next number; one element more, or two exchanged."""
    if type(value) in (int, float):
        yield value + 1
    elif isinstance(value, dict):
        yield {**value, "added": 1}
        names = list(value)
        for one, other in itertools.pairwise(names):
            if value[one] != value[other]:
                yield {**value, one: value[other], other: value[one]}
    elif isinstance(value, list):
        yield [*value, value[0] if value else 1]
        if value[::-1] != value:
            yield value[::-1]
