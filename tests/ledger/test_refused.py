"""What the ledger's calls are not given: refused by the name of the argument, before anything is written."""

import pytest

from confide.errors import InputError, InputTypeError
from confide.ledger import Dataset, Schedule, compose, fingerprint, place_of

KEY = bytes(range(32))


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda path: fingerprint(b"short", path), InputError, r"key must be at least \d+ secret random bytes"),
        (lambda path: fingerprint(KEY, path / "none"), InputError, r"file '.*none' cannot be read: No such file"),
        (lambda path: fingerprint(KEY, str(path)), InputTypeError, "data must be a Path or a numeric array; found str"),
        (lambda _: Dataset("a", fingerprint="0" * 63), InputError, "fingerprint must be 64 hexadecimal digits"),
        (lambda _: Dataset("a", group=("region", "north", "x")), InputTypeError, "group must be a pair of names"),
        (lambda _: place_of(5), InputTypeError, "ledger's path must be a path; found int"),
        (lambda _: Schedule(1.0, 0.0, "basic", ["look"]), InputTypeError, "entries must be a tuple of Planned"),
        (lambda _: compose([], dp_delta=1e-301), InputError, "dp_delta must be 0 or at least 1e-300; found 1e-301"),
    ],
)
def test_by_name(call, error, named, tmp_path):
    with pytest.raises(error, match=named):
        call(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_place_that_was_read_is_kept(tmp_path):
    found = place_of(str(tmp_path / "budget.db"))
    assert place_of(found) == found == tmp_path / "budget.db"
