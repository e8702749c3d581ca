"""Modules that need an extra are collected only where it is installed; marks of tests; one thread per process."""

import gc
import os
from importlib.util import find_spec

import pytest
from hypothesis import settings

# Examples of a property that does not state their number; `make test-slow` gives --hypothesis-profile=thorough.
settings.register_profile("everyday", max_examples=100, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile("everyday")

NEEDS = {
    "src/confide/torch": ("torch", "array_api_compat"),
    "src/confide/array_api.py": ("array_api_compat",),
    "src/confide/onnx": ("onnx",),
    "tests/federated/in_process_grid.py": ("flwr",),
}

collect_ignore = [path for path, extras in NEEDS.items() if any(find_spec(extra) is None for extra in extras)]

SLOW_EXAMPLES = {
    "confide.core.calibrate.calibrate_sides",
    "confide.core.choose.Choice",
    "confide.core.documents.Document.from_json",
    "confide.core.recalibrate.recalibrate",
    "confide.core.masks.calibrate_masks",
    "confide.estimators.pipelines.pipeline_sets",
    "confide.estimators.regressor.PrivateConformalRegressor",
    "confide.evaluation.evaluate.evaluate_masks",
    "confide.federated",
    "confide.federated.own_share.local",
    "confide.federated.own_share.own_share",
    "confide.federated.planning.compare",
    "confide.federated.planning.plan",
    "confide.federated.private_quantiles.best_private_qq",
    "confide.federated.protocols.sorted_replies.PrivateQQ",
    "confide.federated.remote.run",
    "confide.guarantee.certificate.weighted_prior_bonus",
    "confide.core.expected.records_needed",
    "confide.core.remarks.remarks",
    "confide.ledger.ledger.Ledger",
    "confide.sets.prediction_sets.predict_masks",
    "confide.tables.calibrate.calibrate_table",
    "confide.torch.masks.calibrate_masks",
    "confide.torch.masks.evaluate_masks",
    "confide.torch.masks.predict_masks",
    "confide.torch.outputs.probabilities",
    "confide.watching.watch_state.Watch",
}
"""Examples in docstrings that take seconds."""


def is_everyday_case(item: pytest.Item, mark: pytest.Mark) -> bool:
    """Whether `unless` of the mark `slow` or `long` names this case of a test, by its text or as one of several."""
    unless, case = mark.kwargs.get("unless", ()), getattr(item, "callspec", None)
    return case is not None and case.id in ((unless,) if isinstance(unless, str) else unless)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the examples that take seconds as slow, and what is long as slow, too."""
    for item in items:
        item.own_markers = [mark for mark in item.own_markers if not is_everyday_case(item, mark)]
        is_slow_example = isinstance(item, pytest.DoctestItem) and item.name in SLOW_EXAMPLES
        if is_slow_example or item.get_closest_marker("long") is not None:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exempt what collecting made from garbage collection: every collection would pass through thousands of tests."""
    gc.collect()
    gc.freeze()


# There is a test process for each core already: the threads of numerical libraries would only wait for each other.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
