"""Invalid arguments of the ledger's methods raise errors with their name, before anything is written."""

import pytest

from confide.errors import InputError, InputTypeError
from confide.ledger import Dataset, Schedule, compose, fingerprint, place_of
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
        (lambda _: place_of(5), InputTypeError, "path"),
        (lambda _: Schedule(1.0, 0.0, "basic", ["look"]), InputTypeError, "entries"),
        (lambda _: compose([], dp_delta=1e-301), InputError, "dp_delta"),
    ],
)
def test_by_name(call, error, argument, tmp_path):
    with refused(error, argument):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_place_that_was_read_is_kept(tmp_path):
    found = place_of(str(tmp_path / "budget.db"))
    assert place_of(found) == found == tmp_path / "budget.db"
