"""Fuzzing targets: functions that must return without a failure for all bytes.

Each passes outside data to one parser and allows only the library's own errors, in one line. The kinds of documents are
in `fuzz.kinds`; this module has the other parsers, and inputs of several documents.
"""

import json
import math
import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import confide
from confide.cli.commands import RequestOptions
from confide.cli.options import NAMES
from confide.cli.request import arguments_of, parse_candidates
from confide.core import shifted_population
from confide.errors import ConfideError
from confide.federated.silo_ledger import KIND, Checkpoint, store_checkpoint
from confide.ledger import Cost, Ledger, request_digest
from confide.ledger.rows import missing
from confide.ledger.schema import TABLES, seal
from confide.support import ObjectPath
from confide.support.checks import exact_level
from confide.tables.bin_counts import Counts
from confide.tables.count_files import of_csv, of_json
from confide.tables.file_names import matches
from confide.tables.query_answers import COLUMNS, add_rows
from fuzz.kinds import KINDS
from fuzz.source import Source, change, one_line
from fuzz.stated_targets import name_of_a_score, private_keys, server_address
from fuzz.valid import counted


@cache
def ledger_file() -> tuple[Path, bytes]:
    """A valid ledger's bytes, and a folder for damaged copies."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))  # noqa: S108
    path = folder / "good.db"
    ledger = Ledger(path, limit=10.0)
    for k in range(3):
        token = ledger.charge("patients", Cost(1.0, "add_remove", "slopes"), request_digest({"k": k}))
        ledger.attach(token, "{}", b"seen")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder, path.read_bytes()


def ledger_database(data: bytes) -> None:
    """`Ledger` on a database with damaged bytes: an error, or the original contents."""
    folder, good = ledger_file()
    source, bad = Source(data), bytearray(good)
    for _ in range(1 + source.byte() % 6):
        at = source.below(len(bad))
        bad[at] = source.byte()
    if source.byte() % 16 == 0:
        bad = bad[: source.below(len(bad))]
    path = folder / "bad.db"
    path.write_bytes(bytes(bad))
    try:
        accounts = Ledger(path, timeout=0.1).accounts()
        assert [e.cost.epsilon for e in accounts["patients"].entries] == [1.0, 1.0, 1.0], "a wrong answer"
        assert accounts["patients"].limit == (10.0, 0.0), "a wrong limit"
    except ConfideError as error:
        one_line(error)
    finally:
        for leftover in folder.glob("bad.db*"):
            leftover.unlink()


def ledger_sealed(data: bytes) -> None:
    """`Ledger` on a row with a valid seal and changed values, as an attacker who has the format can write it."""
    folder, good = ledger_file()
    source, path = Source(data), folder / "forged.db"
    path.write_bytes(good)
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.row_factory = sqlite3.Row
            table = ("dataset", "bound", "charge", "release")[source.below(4)]
            last = connection.execute(f"SELECT * FROM {table} ORDER BY id DESC").fetchone()  # noqa: S608
            before = None if last is None else dict(last)
            row = change({name: None if before is None else before[name] for name in TABLES[table]}, source)
            row = {name: row.get(name) for name in TABLES[table]}
            row |= {"made": "2020-01-01T00:00:00+00:00", "seal": seal(before, row.values())}
            places = ", ".join("?" * len(row))
            with suppress(sqlite3.Error, OverflowError):  # a value that the table does not take
                connection.execute(
                    f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})",  # noqa: S608
                    (*row.values(),),
                )
        for account in Ledger(path, timeout=0.1).accounts().values():
            assert account.spent().epsilon >= 0
    except ConfideError as error:
        one_line(error)
    finally:
        for leftover in folder.glob("forged.db*"):
            leftover.unlink()


def level(data: bytes) -> None:
    """`exact_level` on arbitrary text and floats."""
    for value in (data.decode("latin-1"), float(np.frombuffer(data[:8].ljust(8, b"\0"), dtype=np.float64)[0])):
        try:
            exact = exact_level("alpha", value)
        except ConfideError as error:
            one_line(error)
            continue
        assert 0 < exact < 1
        assert exact_level("alpha", exact) == exact


def candidates(data: bytes) -> None:
    """The candidates of the command line."""
    try:
        made = parse_candidates(data.decode("latin-1"))
    except ConfideError as error:
        one_line(error)
        return
    if isinstance(made, confide.candidates.Spread):
        assert math.isfinite(made.around)
        return
    if isinstance(made, int):
        assert 1 <= made <= 2**20
        return
    assert np.all(np.diff(made.values) > 0)
    assert made.size <= 2**20


def store_address(data: bytes) -> None:
    """Addresses of object stores, and the patterns in them: none with a key is accepted, or shown."""
    text = data.decode("latin-1")[:300]
    for scheme in ("s3", "gs", "az", "abfss"):
        for address, secret in ((f"{scheme}://{text}", False), (f"{scheme}://{text[:9]}:hidden@{text}", True)):
            secret = secret and "/" not in text[:9]  # after a slash it is a name
            try:
                place = ObjectPath.of(address)
            except ConfideError as error:
                one_line(error)
                if secret and "hidden" in str(error):
                    raise AssertionError("a key is shown") from error
                continue
            assert not secret, "an address with a key is accepted"
            assert ObjectPath.of(str(place)) == place
            assert not place.key.endswith("/")
            matches(place.parts, place.parts)


def checkpoint(data: bytes) -> None:
    """`store_checkpoint` on a file of arbitrary text, and on a valid one with changed fields, without a ledger."""
    source = Source(data)
    text = json.dumps(change({"kind": KIND, "schema": 1, "number": 2, "seal": SEALS[1]}, source))
    for content in (data, text.encode("utf-8", "surrogatepass")):
        path = _checkpoints() / "north.key.checkpoint"
        path.write_bytes(content)
        try:
            found = store_checkpoint(_Ledger(), path)  # type: ignore[arg-type]
        except ConfideError as error:
            one_line(error)
            assert path.read_bytes() == content, "a rejected checkpoint has been replaced"
            continue
        assert found == (len(SEALS), SEALS[-1])
        assert store_checkpoint(_Ledger(), path) == found  # type: ignore[arg-type]


SEALS = ("1" * 64, "2" * 64, "3" * 64)


class _Ledger:
    """The parts of a ledger that the comparison of its checkpoint needs."""

    def checkpoint(self, known: Checkpoint, who: str) -> tuple[int, str]:
        number, sealed = known
        if number and SEALS[number - 1 : number] != (sealed,):
            raise missing(Path("budget.db"), "charge", number, who)
        return len(SEALS), SEALS[-1]


@cache
def _checkpoints() -> Path:
    return Path(tempfile.mkdtemp())


def request_texts(data: bytes) -> None:
    """The texts of --set, and among them those of a known shift of class shares."""
    from click import ClickException

    text = data.decode("latin-1")
    for pair in (text, f"class_weights={text}"):
        try:
            stated = arguments_of("calibrate", NAMES, RequestOptions(alpha="0.1", settings=(pair,)))
            shift = shifted_population(stated.get("class_weights"), None)
        except ConfideError as error:
            one_line(error)
            continue
        except ClickException:  # `confide` prints it in one line, escaped
            continue
        if shift is not None:
            assert all(0 <= ratio <= 10**4 for ratio in shift.ratios)
            assert len(shift.steps) == len(shift.classes)
            assert max(shift.steps) > 0
            assert str(shift)


def counts_text(data: bytes) -> None:
    """Counts in CSV and JSON on arbitrary text, for a query whose digest the text may contain as D."""
    jobs, digest = counted()
    text = data.decode("utf-8", "surrogateescape").replace("D", digest)
    for read in (of_csv, of_json):
        totals = [Counts.none(job) for job in jobs]
        try:
            add_rows(read(text, COLUMNS), digest, totals)
        except ConfideError as error:
            one_line(error)
            continue
        assert all(counts.array.min() >= 0 and set(counts.errors.counts()) <= {1, 2, 3, 4} for counts in totals)


COUNTS = (
    "query,part,reason,group,bin,n\nD,0,0,0,3,20\nD,1,1,,,2\n",
    '[{"query": "D", "part": 0, "reason": 0, "group": 0, "bin": "3", "n": 20}]',
)
"""Valid counts."""


TARGETS: dict[str, Callable[[bytes], None]] = {
    **{f"{name}_fields": kind.changed for name, kind in KINDS.items()},
    **{f"{name}_text": kind.text for name, kind in KINDS.items()},
    **{
        target.__name__: target
        for target in (
            ledger_database,
            ledger_sealed,
            level,
            candidates,
            store_address,
            checkpoint,
            request_texts,
            counts_text,
            name_of_a_score,
            private_keys,
            server_address,
        )
    },
}
if find_spec("onnx"):  # in `nox -s fuzz` after `nox -s extras`
    from fuzz.onnx_targets import onnx_model

    TARGETS[onnx_model.__name__] = onnx_model


def seeds(name: str) -> list[bytes]:
    """Valid inputs of the targets that read text, as seeds of the fuzzer."""
    texts = {
        "level": ["0.1", "1/10", "1e-3", "-.5", "0.30000000000000004"],
        "request_texts": ["{a = 0.5, b = 2}", "delta=0.05", 'about.model="x"', "{ill = 1, well = 0}", "unit=1e-4"],
        "store_address": ["bucket/a/x.parquet", "b/year=*/**/[ab]?.csv", "c@account.dfs.core.windows.net/x", "b/x?k=v"],
        "candidates": ["unit", "unit:50", "logit:100", "0.1,0.5,0.9"],
        "name_of_a_score": [
            "lac",
            "aps",
            "raps_deterministic(penalty=0.01,k_reg=5,temperature=2)",
            "my score",
            "top_k",
        ],
        "counts_text": list(COUNTS),
    }
    kind = KINDS.get(name.removesuffix("_text")) if name.endswith("_text") else None
    if kind is not None:
        texts[name] = [*(text for one in kind.valid() if (text := kind.write(one)) is not None), *kind.seeds()]
    return [text.encode() for text in texts.get(name, [])]


_COSTLY = {
    **dict.fromkeys(("federated_release", "own_share", "several_plans"), 5_000),
    **dict.fromkeys(("evaluation", "watch", "plan"), 20_000),
}
_RUNS = {
    "ledger_database": 15_000,
    "ledger_sealed": 10_000,
    "store_address": 100_000,
    "checkpoint": 50_000,
    "private_keys": 50_000,
    "onnx_model": 30_000,
    **{f"{name}_fields": _COSTLY.get(name, 30_000) for name in KINDS},
    **dict.fromkeys((f"{name}_text" for name in KINDS), 50_000),
}
RUNS = {name: _RUNS.get(name, 200_000) for name in TARGETS}
"""Number of runs of each by `nox -s fuzz`: more than a million in total."""
