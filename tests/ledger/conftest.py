"""Stores of the tests' ledgers: a file, and a PostgreSQL server. Both have the same guarantees."""

from collections.abc import Callable

import pytest

from confide.ledger import Ledger
from tests.ledger.servers import ServerLedger, make, make_template, new_database


@pytest.fixture(scope="session")
def new_server_ledger(postgres) -> Callable[[], ServerLedger]:
    """Makes empty ledgers on a server."""
    make_template(postgres)
    return lambda: ServerLedger(postgres, new_database(postgres))


@pytest.fixture(scope="session")
def used_again(new_server_ledger) -> ServerLedger:
    return new_server_ledger()


@pytest.fixture
def on_server(used_again) -> ServerLedger:
    """An empty ledger on a server, in a database of all tests, because emptying is faster than creating."""
    used_again.execute("DROP SCHEMA confide CASCADE")
    make(used_again.url())
    return used_again


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.slow)])
def place(request, tmp_path):
    """The location of a new ledger."""
    if request.param == "file":
        return tmp_path / "budget.db"
    return request.getfixturevalue("on_server").url()


@pytest.fixture
def ledger(place) -> Ledger:
    """An empty ledger."""
    return Ledger(place)
