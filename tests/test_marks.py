"""What the everyday suite leaves out is run before every landing, or by `make test-long`."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.conftest import keep_some, mark_slow_cases

ROOT = Path(__file__).parents[1]


def cases(*marks: pytest.Mark) -> list[SimpleNamespace]:
    """Three cases of a test with these marks, which note what is added to them."""

    def made(name: str) -> SimpleNamespace:
        own = [mark.mark for mark in marks]
        return SimpleNamespace(
            path="test.py",
            originalname="test_it",
            callspec=SimpleNamespace(id=name),
            iter_markers=lambda asked: (mark for mark in own if mark.name == asked),
            get_closest_marker=lambda asked: next((mark for mark in own if mark.name == asked), None),
            add_marker=lambda mark: own.append(mark.mark),
            slow=lambda: any(mark.name == "slow" for mark in own),
        )

    return [made(name) for name in "abc"]


@pytest.mark.parametrize(
    ("mark", "slow"),
    [
        (pytest.mark.everyday("a"), [False, True, True]),
        (pytest.mark.slow_cases("a", "c"), [True, False, True]),
        (pytest.mark.long, [False, False, False]),
    ],
)
def test_cases_are_slow_by_their_names(mark, slow):
    three = cases(mark)
    mark_slow_cases(three, whole=True)
    assert [case.slow() for case in three] == slow


@pytest.mark.parametrize(
    ("marks", "slow"),
    [
        ([pytest.mark.some(1)], [False, True, True]),
        ([pytest.mark.some(2)], [False, False, True]),
        ([pytest.mark.some(3)], [False, False, False]),
        ([pytest.mark.some(1), pytest.mark.slow_cases("a")], [True, False, True]),
        ([pytest.mark.slow_cases("a")], [True, False, False]),
    ],
)
def test_some_cases_stay(marks, slow):
    three = cases(*marks)
    mark_slow_cases(three, whole=True)
    keep_some(three)
    assert [case.slow() for case in three] == slow


@pytest.mark.parametrize("mark", [pytest.mark.everyday("a", "d"), pytest.mark.slow_cases("d")])
def test_a_name_of_no_case_is_refused(mark):
    with pytest.raises(pytest.UsageError, match=re.escape("test_it[d]")):
        mark_slow_cases(cases(mark), whole=True)
    mark_slow_cases(cases(mark), whole=False)  # of a run of some cases nothing is known


def test_every_test_that_is_not_long_is_run_before_a_landing():
    recipes = re.findall(r'pytest -m "(.*)" -n', (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert recipes == ["not slow and not long", "slow and not long"]
    script = ROOT / ".ci" / "run"
    if not script.exists():
        pytest.skip("needs the repository: releases do not carry the script")
    commands = script.read_text(encoding="utf-8").split("\n")
    assert {"make test", "make test-slow"} <= set(commands)
