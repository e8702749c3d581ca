"""Time of a charge and its release in ledgers with many earlier charges, in an SQLite file.

    python -m benchmarks.ledger                   after 100, 10,000 and 1,000,000 charges
    python -m benchmarks.ledger --folder FOLDER   in a folder of this disk

Each run opens the ledger, as a command does, and pays for a new request of a data set that has all earlier charges: it
compares, charges, draws and stores. Earlier rows are written at once, with their seals and totals, as a ledger of this
size has them. "processor" is the processor time of a run in the median, "ms" its time in the median, which depends on
how fast the disk confirms five writes.
"""

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.small import small
from confide.ledger import Ledger, make_payment, pay
from confide.ledger.schema import TABLES, seal
from confide.mechanisms import PrivacyStatement

PRIVACY = PrivacyStatement("add_remove", 0.5, 1, 0.5, 1.0, None)
TIME = "2026-01-01T00:00:00+00:00"
TEXT = "x" * 500
"""About the length of a stored threshold."""


def charge_values(number: int) -> list[Any]:
    """The values of one of many charges of 0.5 each."""
    sums = [str(Fraction(number, 2)), str(Fraction(number, 8))]
    totals = json.dumps({"sums": sums, "kinds": {"look": number}, "bare": 0, "concentrated": 0})
    return [f"{number:032x}", "patients", f"{number:064x}", "look by noise", 0.5, None, None, None, totals]


def release_values(number: int) -> list[Any]:
    """The values of its release."""
    return [f"{number:032x}", TEXT, "0" * 64]


def sealed_rows(values_of: Callable[[int], list[Any]], count: int) -> Iterator[list[Any]]:
    """Rows with their times, accounts and seals."""
    before: dict[str, Any] | None = None
    for number in range(1, count + 1):
        values = values_of(number)
        before = {"seal": seal(before, values), "made": TIME, "by": None}
        yield [*values, TIME, None, before["seal"]]


def ledger_of(path: Path, count: int) -> None:
    """A ledger with so many charges of one data set."""
    Ledger(path).set_limit("patients", 1e9)
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, values_of in (("charge", charge_values), ("release", release_values)):
            names = [*TABLES[table], "made", "by", "seal"]
            places = ", ".join("?" * len(names))
            insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({places})"  # noqa: S608
            connection.executemany(insert, sealed_rows(values_of, count))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def run(path: Path, number: int) -> tuple[float, float]:
    """Processor time and time of one paid release, in milliseconds."""
    processor, began = time.process_time(), time.perf_counter()
    payment = make_payment(PRIVACY, "look by noise", {"run": number}, Ledger(path, create=False), "patients")
    pay(payment, lambda: [number], lambda seen: str(seen).encode(), lambda _: TEXT)
    return 1e3 * (time.process_time() - processor), 1e3 * (time.perf_counter() - began)


def main() -> None:
    """Print a row for each number of earlier charges."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="folder of the ledgers (default: a temporary one)")
    folder = parser.parse_args().folder
    print(f"{'charges':>10}{'processor':>12}{'ms':>8}{'MB':>8}")
    for count in small([100, 10_000, 1_000_000], [100, 1000]):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            path = Path(place) / "budget.db"
            ledger_of(path, count)
            run(path, -1)
            times = [run(path, number) for number in range(small(50, 5))]
            processor, whole = (statistics.median(one) for one in zip(*times, strict=True))
            print(f"{count:10,}{processor:12.1f}{whole:8.1f}{path.stat().st_size / 1e6:8.1f}", flush=True)


if __name__ == "__main__":
    main()
