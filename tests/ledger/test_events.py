"""The records of a ledger as text: existing ones stay readable, and others raise errors."""

import math
import sqlite3
from contextlib import closing

import pytest
from confide.ledger.events import (
    FIRST_HASH,
    ChargedEvent,
    KeyedEvent,
    LimitedEvent,
    OpenedEvent,
    ReleasedEvent,
    entry_hash,
    read_event,
    write_event,
)

from confide.errors import FormatError
from confide.ledger import Cost, Ledger, request_digest

TOKEN, REQUEST = "0123456789abcdef" * 2, "fedcba9876543210" * 4
WRITTEN = {
    '{"kind": "opened", "dataset": "patients", "neighbors": "add_remove", "fingerprint": null}': OpenedEvent(
        "patients", "add_remove", None
    ),
    f'{{"kind": "opened", "dataset": "caf\\u00e9", "neighbors": "replace_one", "fingerprint": "{REQUEST}"}}': (
        OpenedEvent("café", "replace_one", REQUEST)
    ),
    '{"kind": "limited", "dataset": "patients", "epsilon": 3.0, "dp_delta": 1e-06, "by": null}': LimitedEvent(
        "patients", 3.0, 1e-6
    ),
    '{"kind": "limited", "dataset": "patients", "epsilon": null, "dp_delta": 0.0, "by": null}': LimitedEvent(
        "patients", None, 0.0
    ),
    f'{{"kind": "charged", "dataset": "patients", "token": "{TOKEN}", "request": "{REQUEST}", "by": null, "epsilon": '
    '0.30000000000000004, "neighbors": "add_remove", "mechanism": "slopes", "rho": 0.125, "group": '
    '["ward", "north"]}': ChargedEvent(
        "patients", TOKEN, REQUEST, Cost(0.30000000000000004, "add_remove", "slopes", 0.125, ("ward", "north"))
    ),
    f'{{"kind": "charged", "dataset": "patients", "token": "{TOKEN}", "request": "{REQUEST}", "by": null, '
    '"epsilon": "+inf", "neighbors": "replace_one", "mechanism": "none", "rho": null, "group": null}': ChargedEvent(
        "patients", TOKEN, REQUEST, Cost(math.inf, "replace_one", "none")
    ),
    f'{{"kind": "keyed", "key": "{REQUEST}"}}': KeyedEvent(REQUEST),
    f'{{"kind": "released", "token": "{TOKEN}", "text": "{{}}", "fingerprint": "{REQUEST}"}}': ReleasedEvent(
        TOKEN, "{}", REQUEST
    ),
    f'{{"kind": "released", "token": "{TOKEN}", "text": "{{\\"threshold\\": \\"+inf\\", \\"s\\": '
    '\\"\\\\ud800\\"}\\n", "fingerprint": null}': ReleasedEvent(TOKEN, '{"threshold": "+inf", "s": "\\ud800"}\n'),
}
"""Lines of ledgers, and their events."""


@pytest.mark.parametrize("line", WRITTEN)
def test_lines_of_existing_ledgers_are_read_and_written_as_they_were(line):
    assert read_event(line) == WRITTEN[line]
    assert write_event(WRITTEN[line]) == line


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "limited", "dataset": "patients", "epsilon": 9.0, "dp_delta": 0.0, "epsilon": 3.0}',
        '{"kind": "limited", "dataset": "others", "dataset": "patients", "epsilon": 3.0, "dp_delta": 0.0}',
        '{"kind": "opened", "kind": "limited", "dataset": "patients", "epsilon": 3.0, "dp_delta": 0.0}',
        '{"kind": "limited", "dataset": "patients", "epsilon": NaN, "dp_delta": 0.0}',
        '{"kind": "limited", "dataset": "patients", "epsilon": 1e999, "dp_delta": 0.0}',
        '{"kind": "limited", "dataset": "patients", "epsilon": 1' + "0" * 5000 + ', "dp_delta": 0.0}',
        f'{{"kind": "released", "token": "{TOKEN}", "text": "\\ud800"}}',
        f'{{"kind": "released", "token": "{TOKEN}", "text": "", "fingerprint": "{TOKEN}"}}',
        f'{{"kind": "keyed", "key": "{TOKEN}"}}',
        '{"kind": "limited", "dataset": "patients", "epsilon": "+inf", "dp_delta": 0.0}',
        '["limited"]',
        "[" * 100_000,
        "",
    ],
)
def test_other_lines_are_refused(line):
    with pytest.raises(FormatError):
        read_event(line)


def add(path, line):
    """Append a line with a correct hash, as an attacker could."""
    made = "2026-01-01T00:00:00+00:00"
    with closing(sqlite3.connect(path)) as connection:
        last = connection.execute("SELECT seal FROM record ORDER BY id DESC").fetchone()
        row = (made, line, entry_hash(last[0] if last else FIRST_HASH, made, line))
        connection.execute("INSERT INTO record (made, body, seal) VALUES (?, ?, ?)", row)
        connection.commit()


def test_a_ledger_of_such_lines_opens_and_one_with_a_repeated_field_does_not(tmp_path):
    path = tmp_path / "budget.db"
    Ledger(path)
    for line in list(WRITTEN)[:1] + list(WRITTEN)[2:3] + [list(WRITTEN)[6], list(WRITTEN)[4], list(WRITTEN)[-1]]:
        add(path, line)
    account = Ledger(path).account("patients")
    assert account.limit == (3.0, 1e-6)
    assert [(entry.cost.epsilon, entry.token) for entry in account.entries] == [(0.30000000000000004, TOKEN)]
    assert account.entries[0].release == WRITTEN[list(WRITTEN)[-1]].text
    add(path, '{"kind": "limited", "dataset": "patients", "epsilon": 3.0, "dp_delta": 0.0, "epsilon": 99.0}')
    with pytest.raises(FormatError):
        Ledger(path).account("patients")


def test_a_second_key_is_refused(tmp_path):
    path = tmp_path / "budget.db"
    Ledger(path)
    add(path, write_event(KeyedEvent(REQUEST)))
    Ledger(path).charge("patients", Cost(1.0, "add_remove", "slopes"), REQUEST)
    add(path, write_event(KeyedEvent(REQUEST)))
    with pytest.raises(FormatError):
        Ledger(path).accounts()


def test_half_of_a_surrogate_pair_is_not_kept(tmp_path):
    ledger = Ledger(tmp_path / "budget.db")
    token = ledger.charge("patients", Cost(1.0, "add_remove", "slopes"), request_digest({"a": 1}))
    with pytest.raises(FormatError):
        ledger.attach(token, "\ud800")
    assert ledger.account("patients").entries[0].release is None
