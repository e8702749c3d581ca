"""Planted private values, and a search for them in everything that an error or a warning carries."""

import re
import traceback
from collections.abc import Iterator

import numpy as np

PLANTED = (0.123456789, 987654.321, 0.7654321987)
"""Values that appear in private inputs and nowhere else."""

DIGITS = re.compile(r"123456789|12345678|987654|7654321987|76543219")


def planted_scores(n: int = 50) -> np.ndarray:
    """Scores of which all are planted values."""
    return np.resize(np.array(PLANTED), n)


def assert_no_private_value(text: object) -> None:
    found = DIGITS.search(str(text))
    assert found is None, f"a private value is visible: {found.group()}"


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error and everything that led to it, shown in tracebacks or not."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        link = todo.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            todo += [link.__cause__, link.__context__]
            yield link


def assert_error_is_private(error: BaseException) -> None:
    """No planted value in the message, the arguments, the formatted traceback or any error behind it."""
    for link in chain(error):
        assert_no_private_value(link)
        assert_no_private_value(repr(link.args))
        assert_no_private_value(repr(getattr(link, "__notes__", "")))
    lines = traceback.format_exception_only(error)
    assert_no_private_value("".join(lines))
