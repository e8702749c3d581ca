"""Invalid arguments of the ledger's methods raise errors with their name, before anything is written."""

import pytest

from confide.errors import InputError, InputTypeError
from confide.ledger import Dataset, compose, fingerprint, parse_location
from tests.refused import refused

KEY = bytes(range(32))


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        (lambda path: fingerprint(b"short", path), InputError, "key"),
        (lambda path: fingerprint(KEY, path / "none"), InputError, "path"),
        (lambda path: fingerprint(KEY, str(path)), InputTypeError, "data"),
        (lambda _: Dataset("a", fingerprint="0" * 63), InputError, "fingerprint"),
        (lambda _: Dataset("a", group=("region", "north", "x")), InputTypeError, "group"),
        (lambda _: parse_location(5), InputTypeError, "path"),
        (lambda _: compose([], dp_delta=1e-301), InputError, "dp_delta"),
    ],
)
def test_by_name(call, error, argument, tmp_path):
    with refused(error, argument):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_place_that_was_read_is_kept(tmp_path):
    found = parse_location(str(tmp_path / "budget.db"))
    assert parse_location(found) == found == tmp_path / "budget.db"
