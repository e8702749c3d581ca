"""Fixtures that apply to every test of a module that imports them."""

from collections.abc import Iterator

import numpy as np
import pytest

import confide.arrays.loops
import confide.scores.ranked


@pytest.fixture(autouse=True, scope="module")
def any_row_sums() -> Iterator[None]:
    """Disable the check of row sums: the arithmetic of scores is tested on numbers that are no probabilities, too."""
    with pytest.MonkeyPatch.context() as patch:
        for where in ("confide.arrays.row_sums", "confide.tables.number_columns"):
            patch.setattr(f"{where}.far_from_one", lambda p, rows=0: np.zeros(len(p), np.bool_))
        patch.setattr("confide.array_api.refuse_rows_unlike_one", lambda xp, p: None)
        yield


@pytest.fixture(scope="module", autouse=True, params=["numpy", "numba"])
def with_and_without_numba(request):
    """Run every test twice: with numpy alone, and with the loops compiled by Numba."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numba":
            pytest.importorskip("numba", reason="the extra `speed` is not installed")
            patch.setattr(confide.arrays.loops, "_WORTH_LOADING", 0)
            patch.setattr(confide.scores.ranked, "_WORTH_SELECTING", 0)
        else:
            patch.setattr(confide.arrays.loops, "_loads", lambda: False)
        yield request.param
