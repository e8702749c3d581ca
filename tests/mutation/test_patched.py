"""Mutants are put into functions that others hold already, and what runs at import is told apart."""

import importlib.util
from functools import cache
from pathlib import Path

import pytest

from tests.mutation.patched import Functions

SOURCE = """
from functools import cache

LIMIT = 3

@cache
def within(x):
    return any(y < LIMIT for y in [x])

class Box:
    size = 1

    @property
    def larger(self):
        return self.size + 1

    def grown(self, by=1):
        return self.size + by
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "some.py"
    path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("some", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.mark.parametrize(
    ("old", "new", "call", "right", "mutated"),
    [
        ("y < LIMIT", "y > LIMIT", lambda m: m.within(1), True, False),  # in a generator inside a cached function
        ("self.size + 1", "self.size - 1", lambda m: m.Box().larger, 2, 0),
        ("self.size + by", "self.size * by", lambda m: m.Box().grown(), 2, 1),
    ],
    ids=["cached", "property", "method"],
)
def test_code_in_memory_is_replaced(module, old, new, call, right, mutated):
    assert call(module) == right
    if hasattr(module, "within"):
        module.within.cache_clear()
    file = Path(module.__file__)
    changes = Functions({file}).changes(file, SOURCE, SOURCE.replace(old, new))
    assert changes is not None
    for function, code in changes:
        function.__code__ = code
    assert call(module) == mutated


def test_what_was_cached_does_not_hide_a_mutant(module):
    """Functions of this package forget; those of others keep what they know."""
    module.within.__module__ = "confide.some"
    others = cache(abs)
    assert module.within(1)
    assert others(1)
    Functions({Path(module.__file__)}).forget()
    assert module.within.cache_info().currsize == 0
    assert others.cache_info().currsize == 1


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("old", "new"),
    [("LIMIT = 3", "LIMIT = 4"), ("size = 1", "size = 2"), ("by=1", "by=2"), ("@cache\n", ""), ("@property", "@cache")],
)
def test_what_runs_at_import_is_not(module, old, new):
    file = Path(module.__file__)
    assert Functions({file}).changes(file, SOURCE, SOURCE.replace(old, new)) is None
