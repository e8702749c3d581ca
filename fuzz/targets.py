"""What is fuzzed: functions of bytes that must end quietly, whatever the bytes are.

Each feeds outside data to one parser and states what must hold: nothing but the library's own errors, in one line, and
nothing accepted that does not survive being written and read again. Structured targets start from a valid document,
change a few of its fields and sign it again, so that the fuzzer gets past checksums and seals.
"""

import json
import math
import os
import sqlite3
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import confide
from confide import federated
from confide.cli.choices import parse_candidates
from confide.errors import ConfideError
from confide.federated.answers import read_answer
from confide.federated.envelope import seal as seal_message
from confide.federated.plan import FederatedPlan
from confide.ledger import Cost, Ledger, Planned, Schedule, request_digest
from confide.ledger.events import (
    FIRST_SEAL,
    Charged,
    Followed,
    Keyed,
    Limited,
    Opened,
    Released,
    read_event,
    seal,
    write_event,
)
from confide.ledger.state import Row, State
from confide.ledger.store import Store
from confide.support import ObjectPath
from confide.support.checks import exact_level
from confide.tables.files import _as_regex, _base_and_pattern
from fuzz.life_targets import (
    ledger_head,
    private_evaluation_fields,
    private_evaluation_text,
    privately_evaluated,
    shift_texts,
    watch_fields,
    watch_text,
    watches,
    weighted_fields,
)
from fuzz.opened_targets import opened_calibration, opened_plan, opening_for_a_silo, part_of_an_opener, sealed_answer
from fuzz.release_targets import (
    evaluated,
    evaluation_fields,
    evaluation_text,
    release_fields,
    release_text,
    several,
    signed,
    silo_report,
)
from fuzz.replied_targets import own_share_fields, replied_answer, replied_calibration
from fuzz.several_targets import answer_to_several, several_plans, several_released
from fuzz.source import Source, change, one_line, with_checksum
from fuzz.stated_targets import (
    examined_file,
    labelling_fields,
    labelling_text,
    name_of_a_score,
    private_keys,
    server_address,
    sessions_served,
    statements,
)
from fuzz.warehouse_targets import COUNTS, counting_plan_fields, counting_plan_text, counts_text, plans


class Federation(NamedTuple):
    """Valid messages of a federation, and the keys that sign them."""

    coordinator: federated.SiloKeys
    silos: list[federated.SiloKeys]
    plan: str
    answers: list[str]
    released: str


@cache
def calibrations() -> tuple[Any, ...]:
    """Valid calibrations of every mechanism."""
    scores = np.random.default_rng(0).random(400)
    options: list[dict[str, Any]] = [
        {"epsilon": 1.0, "score": "lac"},
        {"epsilon": 1.0, "neighbors": "replace_one", "score": "absolute_residual"},
        {"rho": 0.1, "candidates": confide.Candidates.of([0.1, 0.5, 0.9])},
        {"epsilon": 2.0, "delta": 0.1, "n_min": 50, "records_per_person": 2},
        {"epsilon": 5.0, "neighbors": "replace_one", "mechanism": "pps"},
        {"epsilon": 5.0, "mechanism": "pps", "n_min": 200, "candidates": confide.Candidates.published(20)},
        {"epsilon": 5.0, "neighbors": "replace_one", "mechanism": "noisy-histogram"},
        {"epsilon": 2.0, "mechanism": "opendp-quantile"},
        {"rho": 0.5, "mechanism": "pcoqs", "neighbors": "replace_one"},
        {"neighbors": "replace_one", "mechanism": "none"},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [confide.calibrate(scores, 0.1, **one) for one in options]
        made.append(confide.recalibrate(made[1], scores, about={"date": "2026"}))
        return tuple(json.loads(one.to_json()) for one in made)


def steep() -> str:
    """A calibration whose weights rise beyond all floats, signed again: once it made every reader overflow."""
    document = json.loads(json.dumps(calibrations()[0]))
    document["mechanism"] |= {"rise": 10**9, "flat": "0"}
    return json.dumps(signed(document))


def calibration_text(data: bytes) -> None:
    """`Calibration.from_json` on arbitrary text."""
    _read_calibration(data.decode("utf-8", "surrogateescape"))


def calibration_fields(data: bytes) -> None:
    """`Calibration.from_json` on valid calibrations with changed fields and a right checksum."""
    source = Source(data)
    document = change(calibrations()[source.below(len(calibrations()))], source)
    _read_calibration(json.dumps(signed(document)))


def _read_calibration(text: str) -> None:
    try:
        read = confide.Calibration.from_json(text)
    except ConfideError as error:
        one_line(error)
        return
    assert 0 <= read.guarantee.coverage <= 1
    assert read.privacy.epsilon >= 0
    assert not math.isnan(read.threshold)
    assert confide.Calibration.from_json(read.to_json()) == read
    assert str(read)


YEAR = Schedule(3.0, 1e-6, "zcdp", (Planned("calibration", 12, 12, 0.25, "exponential"), Planned("look", 52, 2, 0.1)))

EVENTS = (
    Opened("patients", "add_remove", None),
    Opened("others", "replace_one", "ab" * 32),
    Limited("patients", 3.0, 1e-6),
    Charged("patients", "0" * 32, "1" * 64, Cost(1.0, "add_remove", "slopes", 0.125)),
    Charged("patients", "2" * 32, "3" * 64, Cost(0.5, "add_remove", "pps", None, ("region", "north"))),
    Released("0" * 32, "{}"),
    Keyed("4" * 64),
    Charged("others", "5" * 32, "3" * 64, Cost(math.inf, "replace_one", "none")),
    Released("2" * 32, "{}", "6" * 64),
    Followed("patients", YEAR),
    Charged("patients", "7" * 32, "8" * 64, Cost(0.1, "add_remove", "look by discrete-laplace")),
    Charged("patients", "9" * 32, "8" * 64, Cost(0.1, "add_remove", "look by discrete-laplace"), joined=True),
)


def ledger_text(data: bytes) -> None:
    """`read_event` on arbitrary text."""
    _replay([data.decode("utf-8", "surrogateescape")])


def ledger_fields(data: bytes) -> None:
    """`read_event` and `State.then` on valid records with changed fields, out of order or repeated."""
    source = Source(data)
    bodies = []
    for _ in range(1 + source.byte() % 8):
        document = json.loads(write_event(EVENTS[source.below(len(EVENTS))]))
        bodies.append(json.dumps(change(document, source) if source.byte() % 2 else document))
    _replay([*map(write_event, EVENTS[: source.byte() % (len(EVENTS) + 1)]), *bodies])


def _sealed(bodies: list[str]) -> Iterator[Row]:
    """Rows with right seals."""
    made, last = "2020-01-01T00:00:00+00:00", FIRST_SEAL
    for number, body in enumerate(bodies, 1):
        last = seal(last, made, body)
        yield number, made, body, last


def _replay(bodies: list[str]) -> None:
    try:
        for body in bodies:
            read_event(body)
        state = State().then(_sealed(bodies))
    except ConfideError as error:
        one_line(error)
        return
    assert [event for _, event in state.records] == [read_event(write_event(event)) for _, event in state.records]
    for account in state.accounts.values():
        assert account.spent().epsilon >= 0
        assert account.remaining() is None or account.remaining() >= 0
        assert account.under_schedule is None or account.under_schedule.epsilon >= 0
        assert account.left.keys() == {entry.kind for entry in (account.schedule.entries if account.schedule else ())}


def schedule_text(data: bytes) -> None:
    """`Schedule.from_json` on arbitrary text."""
    _read_schedule(data.decode("utf-8", "surrogateescape"))


def schedule_fields(data: bytes) -> None:
    """`Schedule.from_json` on a valid schedule with changed fields and a right checksum."""
    document = change(json.loads(YEAR.to_json()), Source(data))
    _read_schedule(json.dumps(signed(document)))


def _read_schedule(text: str) -> None:
    try:
        read = Schedule.from_json(text)
    except ConfideError as error:
        one_line(error)
        return
    assert read.loss <= read.epsilon
    assert Schedule.from_json(read.to_json()) == read
    assert str(read)


@cache
def ledger_file() -> tuple[Path, bytes]:
    """A valid ledger's bytes, and a place to put damaged copies."""
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
    """`Ledger` on a database with damaged bytes: refused, or exactly what it was."""
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
    """`Store` on records that carry a right seal: what somebody who knows the format can write."""
    folder, good = ledger_file()
    source, path = Source(data), folder / "forged.db"
    path.write_bytes(good)
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            last = connection.execute("SELECT seal FROM record ORDER BY id DESC").fetchone()[0]
            body = json.dumps(change(json.loads(write_event(EVENTS[source.below(len(EVENTS))])), source))
            row = ("2020-01-01T00:00:00+00:00", body, seal(last or FIRST_SEAL, "2020-01-01T00:00:00+00:00", body))
            connection.execute("INSERT INTO record (made, body, seal) VALUES (?, ?, ?)", row)
        State().then(Store(path, create=False, timeout=0.1).since(0))
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
            secret = secret and "/" not in text[:9]  # behind a slash it is a name
            try:
                place = ObjectPath.of(address)
            except ConfideError as error:
                one_line(error)
                if secret and "hidden" in str(error):
                    raise AssertionError("a key is shown") from error
                continue
            assert not secret, "an address with a key is accepted"
            assert ObjectPath.of(str(place)).address == place.address
            assert not place.address.path.endswith("/")
            base, pattern = _base_and_pattern(address)
            if pattern is not None:
                assert address.startswith(base)
                _as_regex(pattern).fullmatch(place.address.key)


@cache
def federation() -> Federation:
    """A plan of three silos, one answer to it, and what came of all answers."""
    keys = [federated.SiloKeys.generate(name) for name in ("north", "south", "east")]
    coordinator = federated.SiloKeys.generate("coordinator")
    edges = confide.Candidates.unit(20)
    plan = federated.plan([k.public(size=60) for k in keys], 0.2, 2.0, candidates=edges, method="private-qq").sign(
        coordinator
    )
    policy = federated.Policy(coordinator=coordinator.public().signing, budget=10.0, per_plan=10.0)
    scores, answers = np.random.default_rng(0).random(60), []
    with tempfile.TemporaryDirectory() as folder:
        for k in keys:
            state = federated.SiloLedger(Path(folder) / f"{k.name}.db")
            answers.append(federated.answer(plan, scores, k, policy, state))
    released = federated.aggregate(plan, answers)
    return Federation(coordinator, keys, plan, answers, released.to_json())


def federated_plan(data: bytes) -> None:
    """`FederatedPlan.read` on valid plans with changed fields, signed again."""
    team, source = federation(), Source(data)
    text = seal_message("plan", change(json.loads(team.plan)["content"], source), team.coordinator.signing)
    try:
        read, envelope = FederatedPlan.read(text)
    except ConfideError as error:
        one_line(error)
        return
    assert envelope.signer == team.coordinator.public().signing
    assert FederatedPlan.from_fields(read.fields()).digest == read.digest


def federated_answer(data: bytes) -> None:
    """`read_answer` on valid answers with changed fields, signed again by their silo or by another."""
    team, source = federation(), Source(data)
    plan, _ = FederatedPlan.read(team.plan)
    signer = team.silos[source.byte() % 3]
    text = seal_message("answer", change(json.loads(team.answers[0])["content"], source), signer.signing)
    try:
        answer = read_answer(plan, text)
    except ConfideError as error:
        one_line(error)
        return
    assert 0 <= answer.silo < 3


def federated_silo(data: bytes) -> None:
    """`Silo.from_json` on public files with changed fields, signed again by their own key."""
    keys = federation().silos[0]
    content = json.loads(keys.public(60).to_json())["content"]
    try:
        read = federated.Silo.from_json(seal_message("silo", change(content, Source(data)), keys.signing))
    except ConfideError as error:
        one_line(error)
        return
    assert read.signing == keys.face().signing
    assert federated.Silo.from_json(read.to_json()) == read


def federated_policy(data: bytes) -> None:
    """`Policy.from_json` on a policy with changed fields; what is read allows no more methods than there are."""
    team = federation()
    peers = {keys.name: keys.face().identity for keys in team.silos}
    policy = federated.Policy(team.coordinator.face().identity, budget=4.0, per_plan=2.0, peers=peers)
    try:
        read = federated.Policy.from_json(json.dumps(change(json.loads(policy.to_json()), Source(data))))
    except ConfideError as error:
        one_line(error)
        return
    assert set(read.methods) <= set(federated.METHODS)
    assert federated.Policy.from_json(read.to_json()) == read


def federated_calibration(data: bytes) -> None:
    """`FederatedCalibration.from_json` on a valid one with changed fields and a right checksum."""
    signed = with_checksum(change(json.loads(federation().released), Source(data)))
    if signed is None:
        return
    try:
        read = federated.FederatedCalibration.from_json(signed)
    except ConfideError as error:
        one_line(error)
        return
    assert federated.FederatedCalibration.from_json(read.to_json()) == read


def federated_text(data: bytes) -> None:
    """Every reader of federated messages on arbitrary text."""
    text = data.decode("utf-8", "surrogateescape")
    plan, _ = FederatedPlan.read(federation().plan)
    readers: tuple[Callable[[str], Any], ...] = (
        FederatedPlan.read,
        lambda message: read_answer(plan, message),
        federated.FederatedCalibration.from_json,
        federated.Silo.from_json,
        federated.Policy.from_json,
        federated.message_head,
    )
    for read in readers:
        try:
            read(text)
        except ConfideError as error:
            one_line(error)


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        calibration_text,
        calibration_fields,
        ledger_text,
        ledger_fields,
        ledger_database,
        ledger_sealed,
        schedule_text,
        schedule_fields,
        level,
        candidates,
        store_address,
        federated_text,
        federated_plan,
        federated_answer,
        federated_silo,
        federated_policy,
        federated_calibration,
        opened_plan,
        sealed_answer,
        opening_for_a_silo,
        part_of_an_opener,
        opened_calibration,
        several_plans,
        answer_to_several,
        several_released,
        evaluation_text,
        evaluation_fields,
        release_text,
        release_fields,
        silo_report,
        private_evaluation_text,
        private_evaluation_fields,
        watch_text,
        watch_fields,
        ledger_head,
        shift_texts,
        weighted_fields,
        counting_plan_text,
        counting_plan_fields,
        counts_text,
        labelling_text,
        labelling_fields,
        name_of_a_score,
        private_keys,
        sessions_served,
        server_address,
        examined_file,
        replied_answer,
        replied_calibration,
        own_share_fields,
    )
}
if find_spec("onnx"):  # in `make fuzz` after `make extras`
    from fuzz.onnx_targets import onnx_model

    TARGETS[onnx_model.__name__] = onnx_model
if find_spec("mlflow"):  # in an environment that has it, as `make mlflow` makes
    from fuzz.mlflow_targets import mlflow_model

    TARGETS[mlflow_model.__name__] = mlflow_model


def seeds(name: str) -> list[bytes]:
    """Valid inputs of the targets that read text, for the fuzzer to start from."""
    texts = {
        "calibration_text": [*(json.dumps(document, indent=2) for document in calibrations()), steep()],
        "ledger_text": [write_event(event) for event in EVENTS],
        "schedule_text": [YEAR.to_json()],
        "level": ["0.1", "1/10", "1e-3", "-.5", "0.30000000000000004"],
        "shift_texts": ["a=0.5,b=2", "a=0.5,b=0.5a=0.2,b=0.8", "ill=1,well=0", "a=1/3,b=2/3", "a=1e-4"],
        "store_address": ["bucket/a/x.parquet", "b/year=*/**/[ab]?.csv", "c@account.dfs.core.windows.net/x", "b/x?k=v"],
        "candidates": ["unit", "unit:50", "logit:100", "geometric:10,0.01,12", "sinh", "anything", "0.1,0.5,0.9"],
    }
    if name == "counting_plan_text":
        texts[name] = [plan.to_json() for plan in plans()]
    if name == "labelling_text":
        texts[name] = [json.dumps(document) for document in statements()]
    if name == "name_of_a_score":
        texts[name] = ["lac", "aps_randomised", "raps(penalty=0.01,k_reg=5,temperature=2)", "my score", "LAC", "top_k"]
    if name == "counts_text":
        texts[name] = list(COUNTS)
    if name == "evaluation_text":
        texts[name] = [json.dumps(document) for _, document in evaluated()]
    if name == "private_evaluation_text":
        texts[name] = [json.dumps(document) for document in privately_evaluated()]
    if name == "watch_text":
        texts[name] = [json.dumps(document) for document in watches()]
    if name == "release_text":
        texts[name] = [json.dumps(document) for document in several()]
    if name == "federated_text":
        team = federation()
        texts[name] = [team.plan, team.answers[0], team.released, team.silos[0].public().to_json()]
    return [text.encode() for text in texts.get(name, [])]


_RUNS = {
    "calibration_text": 300_000,
    "calibration_fields": 60_000,
    "ledger_text": 300_000,
    "ledger_fields": 200_000,
    "ledger_database": 15_000,
    "ledger_sealed": 10_000,
    "schedule_text": 100_000,
    "schedule_fields": 50_000,
    "level": 300_000,
    "candidates": 100_000,
    "store_address": 100_000,
    "federated_text": 100_000,
    "federated_plan": 30_000,
    "federated_answer": 30_000,
    "federated_silo": 30_000,
    "federated_policy": 30_000,
    "federated_calibration": 10_000,
    "opened_plan": 10_000,
    "sealed_answer": 10_000,
    "opening_for_a_silo": 20_000,
    "part_of_an_opener": 20_000,
    "opened_calibration": 10_000,
    "several_plans": 10_000,
    "answer_to_several": 10_000,
    "several_released": 5_000,
    "evaluation_text": 200_000,
    "evaluation_fields": 100_000,
    "release_text": 50_000,
    "release_fields": 30_000,
    "silo_report": 50_000,
    "private_evaluation_text": 100_000,
    "private_evaluation_fields": 30_000,
    "watch_text": 100_000,
    "watch_fields": 30_000,
    "ledger_head": 50_000,
    "shift_texts": 100_000,
    "weighted_fields": 20_000,
    "counting_plan_text": 100_000,
    "counting_plan_fields": 30_000,
    "counts_text": 200_000,
    "labelling_text": 200_000,
    "labelling_fields": 100_000,
    "name_of_a_score": 300_000,
    "private_keys": 50_000,
    "sessions_served": 100_000,
    "server_address": 200_000,
    "examined_file": 30_000,
    "replied_answer": 20_000,
    "replied_calibration": 10_000,
    "own_share_fields": 10_000,
    "onnx_model": 30_000,
    "mlflow_model": 10_000,
}
RUNS = {name: runs for name, runs in _RUNS.items() if name in TARGETS}
"""How often `make fuzz` runs each: more than a million times in total."""
