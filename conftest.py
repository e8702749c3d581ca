"""Modules that need an extra are collected only where it is installed; one thread per test process; small pages."""

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

NEEDS = {
    "src/confide/torch": ("torch", "array_api_compat"),
    "src/confide/array_api.py": ("array_api_compat",),
    "src/confide/monai.py": ("monai", "torch"),
    "src/confide/onnx": ("onnx",),
    "src/confide/mlflow": ("mlflow",),
    "tests/reached/contexts.py": ("coverage",),
    "tests/mlflow/logged.py": ("mlflow",),
    "tests/mutation/forks.py": ("cosmic_ray",),
    "tests/mutation/mutants.py": ("cosmic_ray",),
    "tests/mutation/reach.py": ("cosmic_ray", "coverage"),
    "tests/mutation/session.py": ("cosmic_ray",),
    "src/confide/ledger/composition.py": ("dp_accounting",),
    "tests/federated/in_process_grid.py": ("flwr",),
}

collect_ignore = [path for path, extras in NEEDS.items() if any(find_spec(extra) is None for extra in extras)]

SLOW_EXAMPLES = {
    "confide.federated.planning.compare",
    "confide.federated.planning.plan",
    "confide.federated.private_quantiles.best_private_qq",
    "confide.federated.several_plans.plan_groups",
    "confide.federated.several_plans.plan_levels",
    "confide.ledger.composition.accounted",
    "confide.releases.remarks.remarks",
    "confide.reports.plan_page.grid",
}
"""Examples in docstrings that take seconds."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the examples that take seconds as slow."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.name in SLOW_EXAMPLES:
            item.add_marker(pytest.mark.slow)


# There is a test process for each core already: the threads of numerical libraries would only wait for each other.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")


@pytest.fixture(scope="module", autouse=True)
def few_plans(request: pytest.FixtureRequest) -> Iterator[None]:
    """Pages carry the grid of the chosen point alone, but where grids are looked at."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.name not in ("test_browser.py", "test_grid.py", "grid.py"):
            patch.setattr("confide.reports.plan_page.LEVELS", ())
            patch.setattr("confide.reports.plan_page.LOSS_REACH", (1.0, 1.0))
        yield
