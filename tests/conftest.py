"""A PostgreSQL server and a Spark cluster, started once for the tests that need them; what the everyday suite runs.

COVERED, GRIDS and the marks `some`, `everyday`, `slow_cases` and `long` go when no test uses them any more: a case that
is slow is marked so where it is listed.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.tables import postgres_server
from tests.tables.engines import Postgres
from tests.tables.spark_cluster import Cluster, needs_spark, standalone_cluster

COVERED = {
    "test_doubles",
    "test_every_kind_of_order_keeps_the_same_records",
    "test_everything_but_the_draw_is_that_of_calibrate",
    "test_extreme_requests",
    "test_intervals_are_those_of_predict_interval",
    "test_lac",
    "test_any_level",
    "test_probabilities_of_every_precision",
    "test_regression",
    "test_rows_that_do_not_sum_to_one",
    "test_rows_without_probabilities_have_no_set",
    "test_sets_are_those_of_predict_set",
    "test_sets_in_a_file",
    "test_the_first_or_the_sampled_records_count",
}
"""Tests of many combinations: the everyday and the slow suite run cases until each value was met once, the long
one all of them."""


GRIDS = {
    "test_a_fading_head_start_costs_what_is_stated",
    "test_a_file_is_what_its_name_says",
    "test_a_file_of_a_folder_is_what_its_name_says",
    "test_a_silo_answers_and_reports_from_every_source",
    "test_an_empty_table_is_released_like_every_other",
    "test_any_loss",
    "test_counts_groups_and_people",
    "test_evaluations",
    "test_every_bound_holds_for_randomized_response",
    "test_every_score_with_its_own_candidates",
    "test_every_source_and_kind",
    "test_integers_beside_names_are_refused",
    "test_installed_sampler_matches_exact_law",
    "test_planned_secret_mechanism_covers_for_every_n",
    "test_planned_secret_rise_covers_for_every_n",
    "test_public_certificate_never_exceeds_the_exact_minimum",
    "test_range_distances_are_exact",
    "test_range_distances_of_a_fading_head_start_are_exact",
    "test_records_needed_makes_an_answer_beyond_all_scores_unlikely",
    "test_replace_one_loss_is_at_most_epsilon",
    "test_rising_certificate_never_exceeds_the_exact_minimum",
    "test_scores_and_sets_agree_bit_for_bit",
    "test_sharp_loss_bounds_every_spread",
}
"""Grids of which the everyday suite runs cases until each value was met once, the slow one the others."""


COLLECTED = pytest.StashKey[set[str]]()
"""The names of all tests of the files that were collected, those that are left out later included."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what the everyday suite leaves out: slow cases, and combinations of values that were all met before."""
    whole = not any("::" in argument for argument in config.args)
    config.stash[COLLECTED] = {item.nodeid for item in items} if whole else set()
    for item in items:
        if any(mark.args == ("spark",) for mark in item.iter_markers("xdist_group")):
            item.add_marker(pytest.mark.slow)  # the cluster takes half a minute
    cases = [item for item in items if isinstance(item, pytest.Function) and hasattr(item, "callspec")]
    mark_slow_cases(cases, whole)
    met: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for item in sorted(cases, key=lambda item: has_mark(item, "slow")):
        if item.originalname in COVERED | GRIDS and not has_mark(item, "long"):
            values = {(name, repr(value)) for name, value in item.callspec.params.items()}
            name = f"{item.path}::{item.originalname}"
            if values <= met[name]:
                item.add_marker(pytest.mark.long if item.originalname in COVERED else pytest.mark.slow)
            met[name] |= values
    keep_some(cases)


def has_mark(item: pytest.Item, name: str) -> bool:
    """Whether an item has a mark of this name."""
    return item.get_closest_marker(name) is not None


def mark_slow_cases(cases: list[pytest.Function], whole: bool) -> None:
    """Of a test marked `everyday(ids)` all other cases are slow, of one marked `slow_cases(ids)` these.

    An id that is none of the test's cases is refused.
    """
    missing: dict[tuple[str, tuple[str, ...]], set[str]] = {}
    for item in cases:
        case = item.callspec.id
        for mark in (*item.iter_markers("everyday"), *item.iter_markers("slow_cases")):
            missing.setdefault((f"{item.path}::{item.originalname}", mark.args), set(mark.args)).discard(case)
            if (case in mark.args) == (mark.name == "slow_cases"):
                item.add_marker(pytest.mark.slow)
    if whole and any(missing.values()):
        raise pytest.UsageError(
            f"no such cases: {[f'{name}[{one}]' for (name, _), ids in missing.items() for one in ids]}"
        )


def keep_some(cases: list[pytest.Function]) -> None:
    """Of a test marked `some(k)` k cases stay in the everyday suite, spread evenly over those that are not slow."""
    left: defaultdict[tuple[str, int], list[pytest.Function]] = defaultdict(list)
    for item in cases:
        mark = item.get_closest_marker("some")
        if mark is not None and not has_mark(item, "slow") and not has_mark(item, "long"):
            left[f"{item.path}::{item.originalname}", mark.args[0]].append(item)
    for (_, k), items in left.items():
        kept = {i * len(items) // k for i in range(k)}
        for i, item in enumerate(items):
            if i not in kept:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    """A master and two workers, started once and killed after the last test."""
    with standalone_cluster(tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture(scope="session")
def spark(cluster) -> Iterator[Any]:
    """A Spark session on the cluster, with an executor on each worker."""
    needs_spark()
    from confide.tables.spark import open_session

    with open_session(cluster.url) as session:
        yield session


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgres_server.Server]:
    """A PostgreSQL server, for the session."""
    postgres_server.needs_postgres()
    with postgres_server.running() as server:
        yield server


@pytest.fixture(scope="session")
def reader(postgres: postgres_server.Server) -> Iterator[Postgres]:
    """Tables in PostgreSQL, read by a role that may do nothing else."""
    engine = Postgres(postgres)
    yield engine
    engine.connection.disconnect()


@pytest.fixture(scope="module")
def few_plans() -> Iterator[None]:
    """Pages have the plan of the chosen point alone, and no grid of others, which takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("confide.reports.price.LEVELS", ())
        patch.setattr("confide.reports.price.LOSS_REACH", (1.0, 1.0))
        yield
