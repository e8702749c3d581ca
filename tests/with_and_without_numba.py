"""A fixture that runs every test of a module twice: with numpy alone, and with the loops compiled by Numba."""

import pytest

import confide.arrays.compiled
import confide.scores.selected


@pytest.fixture(scope="module", autouse=True, params=["numpy", "numba"])
def with_and_without_numba(request):
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numba":
            pytest.importorskip("numba", reason="the extra `speed` is not installed")
            patch.setattr(confide.arrays.compiled, "_WORTH_LOADING", 0)
            patch.setattr(confide.scores.selected, "_WORTH_SELECTING", 0)
        else:
            patch.setattr(confide.arrays.compiled, "_loads", lambda: False)
        yield request.param
