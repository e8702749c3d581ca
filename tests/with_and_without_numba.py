"""A fixture that runs every test of a module twice: with numpy alone, and with the loops compiled by Numba."""

import pytest

import confide.arrays.loops
import confide.scores.ranked


@pytest.fixture(scope="module", autouse=True, params=["numpy", "numba"])
def with_and_without_numba(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numba":
            pytest.importorskip("numba", reason="the extra `speed` is not installed")
            patch.setattr(confide.arrays.loops, "_WORTH_LOADING", 0)
            patch.setattr(confide.scores.ranked, "_WORTH_SELECTING", 0)
        else:
            patch.setattr(confide.arrays.loops, "_loads", lambda: False)
        yield request.param
