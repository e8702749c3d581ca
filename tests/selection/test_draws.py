"""The draws of releases: one value, which only a test can replace, for its own block and thread."""

import ast
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

import confide
from confide.mechanisms import draw_size
from confide.noisy_counts import draw_counts
from confide.selection import noisy_counts, noisy_number, select, uniforms
from tests.draws import SECURE, always, drawing_with

SOURCE = Path(confide.__file__).parent
DRAWS = SOURCE / "selection" / "draws.py"
UTILITIES = np.array([-1000, 0])


def everything():
    """One draw of every kind, each of which the secure draws leave as it is."""
    counts = np.array([90, 10])
    coins = uniforms(3)
    inside = int(((coins >= 0) & (coins < 1)).sum())
    return select(UTILITIES, 1.0), noisy_counts(counts, 1e-9).tolist(), noisy_number(7, 1e-9), inside


SECURELY = (1, [90, 10], 7, 3)


def test_every_draw_is_replaced_for_a_block():
    with drawing_with(select=always(0), noisy_counts=always(UTILITIES), noisy_number=always(5), uniforms=np.zeros):
        assert everything() == (0, [-1000, 0], 5, 3)
        assert draw_size(1000, 20.0, 1).counted == 5
        assert draw_counts([90, 10], 1.0).tolist() == [-1000, 0]
        with drawing_with(select=always(1)):
            assert everything()[:2] == (1, [-1000, 0])
        assert select(UTILITIES, 1.0) == 0
    with drawing_with(noisy_number=SECURE.noisy_number):
        assert everything() == SECURELY


@pytest.mark.usefixtures("noisy_number")
def test_no_draw_is_used_again():
    """Two of so wide draws are equal with a probability below 1e-8; coins agree at every distance as often as not."""
    zero = np.zeros(1, np.int64)
    numbers = [(int(noisy_counts(zero, 1e15)[0]), noisy_number(0, 1e15), float(uniforms(1)[0])) for _ in range(1000)]
    assert [len(set(values)) for values in zip(*numbers, strict=True)] == [1000] * 3
    assert len(set(noisy_counts(np.zeros(1000, np.int64), 1e15).tolist())) == 1000
    coins = np.array([select(np.zeros(2, np.int64), 1.0) for _ in range(2000)])
    for lag in range(1, 101):
        agreeing = int((coins[lag:] == coins[:-lag]).sum())
        assert binomtest(agreeing, 2000 - lag).pvalue > 1e-8


def test_an_error_ends_the_replacement():
    with pytest.raises(ZeroDivisionError), drawing_with(select=lambda utilities, scale: 1 // 0):
        select(UTILITIES, 1.0)
    assert select(UTILITIES, 1.0) == 1


def test_other_threads_draw_securely():
    with drawing_with(select=always(0), noisy_number=always(5)), ThreadPoolExecutor(1) as other:
        assert other.submit(everything).result() == SECURELY


def test_a_misspelt_draw_raises():
    with pytest.raises(TypeError), drawing_with(selects=always(0)):
        pass


def test_no_argument_file_or_environment_reaches_the_replacement():
    """No other module of the library names it or what it sets, and its own module reads no input."""
    named = re.compile(r"\b(_drawing_with|_thread)\b")
    assert [path for path in SOURCE.rglob("*.py") if named.search(path.read_text())] == [DRAWS]
    module = ast.parse(DRAWS.read_text())
    assert not {node.id for node in ast.walk(module) if isinstance(node, ast.Name)} & {"open", "input", "__import__"}
    imported = {node.module for node in ast.walk(module) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(module) if isinstance(node, ast.Import) for alias in node.names}
    assert imported == {
        "collections.abc", "contextlib", "dataclasses", "threading", "typing", "numpy", "numpy.typing",
        "confide.arrays", "confide.selection.selector",
    }  # fmt: skip
    assert not {"Draws", "_drawing_with"} & vars(confide.selection).keys()
