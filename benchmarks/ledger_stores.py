"""A charge and its release in a ledger of thousands of entries: in a file, and on a PostgreSQL server of this machine.

python -m benchmarks.ledger_stores [ENTRIES]
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.small import small
from confide.ledger import Cost, Ledger, make_server_ledger, move, request_digest, store
from confide.ledger.events import FIRST_SEAL, Charged, Event, Keyed, Limited, Opened, Released, seal, write_event
from tests.tables.postgres_server import OWNER, running

COST = Cost(0.05, "add_remove", "slopes", 0.05**2 / 8)
TEXT = "x" * 1500
"""As long as a calibration."""
TIMES = 5


def fill(path: Path, entries: int) -> None:
    """Write a ledger file with this many charges and releases."""
    events: list[Event] = [Opened("p", "add_remove", None), Limited("p", 1e6, 0.0), Keyed("ab" * 32)]
    for k in range(entries):
        token = f"{k:032x}"
        events += [Charged("p", token, request_digest({"k": k}), COST), Released(token, TEXT)]
    rows, last = [], FIRST_SEAL
    for number, event in enumerate(events, 1):
        made, body = "2026-01-01T00:00:00+00:00", write_event(event)
        last = seal(last, made, body)
        rows.append((number, made, body, last))
    with store.filled(path) as put:
        put(rows)


def measured(ledger: Ledger) -> str:
    """Median milliseconds of a reading, and of a charge with its release."""
    read, spent = [], []
    for k in range(TIMES):
        start = time.perf_counter()
        ledger.records()
        read.append(time.perf_counter() - start)
        start = time.perf_counter()
        ledger.attach(ledger.charge("p", COST, request_digest({"new": k})), TEXT)
        spent.append(time.perf_counter() - start)
    return f"{1000 * statistics.median(read):7.0f} {1000 * statistics.median(spent):20.0f}"


def main(sizes: list[int]) -> None:
    sys.stdout.write("entries  place     reading, ms  charge and release, ms\n")
    with running() as server, tempfile.TemporaryDirectory() as folder:
        import psycopg

        for entries in sizes:
            path = Path(folder) / f"{entries}.db"
            fill(path, entries)
            copy = Path(folder) / f"{entries}-copy.db"
            fill(copy, entries)
            with psycopg.connect(server.url(OWNER), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE ledger_{entries}")
            address = server.url(OWNER).replace("/postgres", f"/ledger_{entries}")
            make_server_ledger(address)
            start = time.perf_counter()
            move(copy, address)
            moved = time.perf_counter() - start
            for name, place in (("a file", path), ("a server", address)):
                sys.stdout.write(f"{entries:7}  {name:8}  {measured(Ledger(place))}\n")
            sys.stdout.write(f"{entries:7}  moved to the server in {moved:.1f} s\n")


if __name__ == "__main__":
    main([int(one) for one in sys.argv[1:]] or small([100, 10_000], [10]))
