"""A ledger under arbitrary use, against a small model: a list of charges, and sums as fractions. On both stores.

Two open ledgers charge, pay, keep, set limits in any order, forget and come back; copies of before
are put back. After every step all of it is compared with the model.
"""

import itertools
import shutil
import tempfile
import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from confide.errors import BudgetError, ChargedAgainWarning, EarlierReleaseWarning, InputError, OtherDataError
from confide.ledger import Charge, Cost, Dataset, Ledger, Limit, Payment, pay, pay_once, request_digest
from confide.ledger.location import MissingRecordsError
from confide.ledger.schema import TABLES
from tests.ledger.servers import make
from tests.refused import refused

REQUESTS = {request_digest({"k": k}): Fraction(price) for k, price in enumerate(["0.1", "0.25", "0.5", "1.5"])}
SETTINGS = settings(
    max_examples=30, stateful_step_count=15, derandomize=True, database=None, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip

datasets, requests = st.sampled_from(["patients", "wards"]), st.sampled_from(list(REQUESTS))
ledgers, data = st.integers(0, 1), st.sampled_from([b"these", b"these", b"others"])
tokens = st.sampled_from([32 * "a", 32 * "b"])
limits = st.sampled_from(["0.5", "0.75", "1", "1.5", "2.1"])


@dataclass(frozen=True)
class Entry:
    """A charge: token, request, stored release, and data."""

    token: str
    request: str
    text: str | None = None
    seen: bytes | None = None

    @property
    def price(self):
        return REQUESTS[self.request]


@dataclass(frozen=True)
class Account:
    """A limit, and charges."""

    limit: Fraction | None = None
    entries: tuple[Entry, ...] = ()

    @property
    def spent(self):
        return sum((entry.price for entry in self.entries), Fraction(0))

    def charged(self, entry):
        """The account after a charge; None if that is not allowed."""
        after = Account(self.limit, (*self.entries, entry))
        return after if self.limit is None or after.spent <= self.limit else None

    def changed(self, old, new):
        return Account(self.limit, tuple(new if one == old else one for one in self.entries))


@dataclass
class Model:
    """The contents of a ledger, and its changes with the last rows after each."""

    accounts: dict[str, Account] = field(default_factory=dict)
    changes: tuple[str, ...] = ()

    def copy(self):
        return Model(dict(self.accounts), self.changes)

    def follows(self, seen):
        return self.changes[: len(seen)] == seen

    def entry(self, token):
        return next((e for account in self.accounts.values() for e in account.entries if e.token == token), None)


class Machine(RuleBasedStateMachine):
    """Each rule does one thing with one of the ledgers that are open."""

    places: "Files | Servers"

    def __init__(self):
        super().__init__()
        self.numbers = itertools.count(1)
        self.model, self.copies = Model(), []
        self.place = self.places.first()

    @initialize()
    def open_both(self):
        self.open = [Ledger(self.place), Ledger(self.place)]
        self.seen = [(), ()]
        self.reader = Ledger(self.place)
        self.limit(0, "patients", "1.5", lifted=False)

    # What is asked of a ledger, and what comes of it.

    def use(self, which, work, *, after=None, error=None):
        """Run an operation: an error if records are missing or for a stated reason; else update the model."""
        ledger = self.open[which]
        if not self.model.follows(self.seen[which]):
            with refused(MissingRecordsError, "ledger"):
                work(ledger)
            return None
        if error is not None:
            with pytest.raises(error):
                work(ledger)
            found = None
        else:
            found = work(ledger)
        if error is not None or after is None:
            ledger.accounts()
        else:
            self.reader.accounts()
            now = repr(self.reader._last.heads)
            self.model = Model({**self.model.accounts, **after}, (*self.model.changes, now))
        self.compare(self.reader)
        self.seen[which] = self.model.changes
        return found

    def compare(self, ledger):
        """The contents of a ledger equal the model."""
        found = ledger.accounts()
        assert set(found) == set(self.model.accounts)
        for name, account in self.model.accounts.items():
            there = found[name]
            assert [(e.token, e.request, e.release) for e in there.entries] == [
                (e.token, e.request, e.text) for e in account.entries
            ]
            assert Fraction(repr(there.spent().epsilon)) == account.spent
            assert there.limit == (None if account.limit is None else Limit(float(account.limit)))
            if account.limit is not None:
                assert Fraction(repr(there.remaining())) == max(account.limit - account.spent, Fraction(0))

    def cost(self, request):
        return Cost(float(REQUESTS[request]), "add_remove", "look by noise")

    def token(self):
        return f"{next(self.numbers):032x}"

    # The rules.

    @rule(which=ledgers, name=datasets, asked=st.lists(requests, min_size=1, max_size=4))
    def charge(self, which, name, asked):
        for request in asked:
            self.charge_one(which, name, request)

    def charge_one(self, which, name, request):
        token = self.token()
        after = self.model.accounts.get(name, Account()).charged(Entry(token, request))
        self.use(
            which, lambda ledger: ledger.charge(name, self.cost(request), request, token=token),
            after={name: after}, error=BudgetError if after is None else None,
        )  # fmt: skip

    @rule(which=ledgers, name=datasets, request=requests, place=st.integers(0, 9))
    def charge_twice(self, which, name, request, place):
        """A used token raises an error, for every data set."""
        entries = [entry for account in self.model.accounts.values() for entry in account.entries]
        if entries:
            token = entries[place % len(entries)].token
            work = lambda ledger: ledger.charge(name, self.cost(request), request, token=token)  # noqa: E731
            self.use(which, work, error=InputError)

    @rule(which=ledgers, place=st.integers(0, 9), seen=st.one_of(st.none(), data))
    def keep(self, which, place, seen):
        """A release is stored only for a charge without one."""
        entries = [(name, entry) for name, account in self.model.accounts.items() for entry in account.entries]
        if not entries:
            return
        name, entry = entries[place % len(entries)]
        text = f"release {next(self.numbers)}"
        after = self.model.accounts[name].changed(entry, Entry(entry.token, entry.request, text, seen))
        error = InputError if entry.text is not None else None
        self.use(which, lambda ledger: ledger.attach(entry.token, text, seen), after={name: after}, error=error)

    @rule(
        name=datasets, request=requests, asked=st.lists(st.tuples(ledgers, data, st.booleans()), min_size=2, max_size=4)
    )
    def pay(self, name, request, asked):
        """The same request returns the stored release, raises an error for other data, or is drawn again."""
        for which, seen, again in asked:
            self.pay_for(which, name, request, seen, again=again)

    def pay_for(self, which, name, request, seen, *, again):
        account, text, drawn = self.model.accounts.get(name, Account()), f"drawn {next(self.numbers)}", []
        answers = [e for e in reversed(account.entries) if e.request == request and e.text is not None and not again]
        same = next((entry for entry in answers if entry.seen == seen), None)
        newest = next((e for e in reversed(account.entries) if e.request == request and not again), None)
        lost = newest is not None and newest.text is None
        told = [EarlierReleaseWarning] if same is not None else [ChargedAgainWarning] * lost

        def work(ledger):
            payment = Payment(ledger, {None: Charge(Dataset(name), self.cost(request), request)}, again)
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                found = pay(payment, lambda: seen, bytes, lambda _: drawn.append(text) or text)
            assert [one.category for one in said] == told
            return found

        if same is not None:
            assert self.use(which, work) in (None, same.text)
            assert not drawn
        elif answers:
            self.use(which, work, error=OtherDataError)
            assert not drawn
        elif account.charged(Entry("", request)) is None:
            self.use(which, work, error=BudgetError)
            assert not drawn
        else:
            self.new_release(which, name, work, lambda token: Entry(token, request, text, seen), drawn)

    def new_release(self, which, name, work, entry, drawn):
        """The model copies the token from the ledger."""
        if not self.model.follows(self.seen[which]):
            self.use(which, work)
            assert not drawn
            return
        ledger = self.open[which]
        assert [work(ledger)] == drawn
        new = entry(ledger.account(name).entries[-1].token)
        after = self.model.accounts.get(name, Account()).charged(new)
        self.use(which, lambda ledger: None, after={name: after})

    @rule(
        name=datasets, token=tokens,
        asked=st.lists(st.tuples(ledgers, requests, st.booleans()), min_size=1, max_size=3),
    )  # fmt: skip
    def pay_once(self, name, token, asked):
        """A token is charged once: its stored release is returned, and an interrupted charge stays one."""
        for which, request, fails in asked:
            self.pay_for_token(which, name, request, token, fails=fails)

    def pay_for_token(self, which, name, request, token, *, fails):
        entry = self.model.entry(token)
        account = self.model.accounts.get(name, Account())
        text, drawn = f"once {next(self.numbers)}", []
        after = account.charged(Entry(token, request, None if fails else text, None if fails else b"seen"))

        def draw(_):
            drawn.append(text)
            if fails:
                raise ZeroDivisionError
            return text

        def kept(entry):
            if entry.request != request or entry.release is None:
                raise OtherDataError("dataset", "was asked something else")
            return entry.release

        def work(ledger):
            charge = Charge(Dataset(name), self.cost(request), request, token)
            if fails and entry is None:
                with pytest.raises(ZeroDivisionError):
                    pay_once(ledger, charge, lambda: b"seen", bytes, draw, reuse=kept)
                return text
            return pay_once(ledger, charge, lambda: b"seen", bytes, draw, reuse=kept)

        if entry is not None:
            usable = entry.request == request and entry.text is not None
            found = self.use(which, work, error=None if usable else OtherDataError)
            assert found in (None, entry.text)
            assert not drawn
        elif after is None:
            self.use(which, work, error=BudgetError)
            assert not drawn
        else:
            known = self.model.follows(self.seen[which])
            self.use(which, work, after={name: after})
            assert drawn == ([text] if known else [])

    @rule(which=ledgers, name=datasets, limit=limits, lifted=st.booleans())
    def limit(self, which, name, limit, *, lifted):
        most = None if lifted else Fraction(limit)
        after = Account(most, self.model.accounts.get(name, Account()).entries)
        new = None if lifted else float(most)
        self.use(which, lambda ledger: ledger.set_limit(name, new), after={name: after})

    @rule(which=ledgers)
    def read(self, which):
        self.use(which, lambda ledger: self.compare(ledger))

    @rule(which=ledgers)
    def forget(self, which):
        """A new process without earlier readings."""
        self.open[which], self.seen[which] = Ledger(self.place), ()
        self.use(which, Ledger.accounts)

    @rule()
    @precondition(lambda self: not self.copies)
    def copy(self):
        self.copies.append((self.places.copied(self.place), self.model.copy()))

    @rule()
    @precondition(lambda self: self.copies)
    def put_back(self):
        """A backup, or a standby that lacks the last changes."""
        copied, self.model = self.copies.pop()
        self.places.put_back(copied, self.place)
        self.reader = Ledger(self.place)

    @rule(which=ledgers, name=datasets, request=requests, went_on=st.booleans())
    def restore(self, which, name, request, went_on):
        """One copy has charged since; the other lacks the charge, and may charge as much."""
        self.copies.clear()
        self.copy()
        self.charge_one(which, name, request)
        self.put_back()
        self.forget(1 - which)
        if went_on:
            self.charge_one(1 - which, name, request)
        self.charge_one(which, name, request)


class Files:
    """Ledger files in a folder."""

    def __init__(self, folder):
        self.folder, self.numbers = folder, itertools.count()

    def first(self):
        return self.folder / f"{next(self.numbers)}.db"

    def copied(self, place):
        return shutil.copy(place, self.folder / "copy.db")

    def put_back(self, copied, place):
        shutil.copy(copied, place)


class Servers:
    """A database of a server, which is emptied for a new ledger."""

    def __init__(self, database):
        self.database = database

    def first(self):
        self.database.execute("DROP SCHEMA confide CASCADE")
        make(self.database.url())
        return self.database.url()

    def copied(self, place):
        last = "SELECT coalesce(max(id), 0) FROM confide.{}"
        return {table: self.database.execute(last.format(table))[0][0] for table in TABLES}

    def put_back(self, copied, place):
        deletions = [f"DELETE FROM confide.{table} WHERE id > {last}" for table, last in copied.items()]  # noqa: S608
        self.database.tamper(*deletions[::-1])


def run(places, **changed):
    machine = type("Ledgers", (Machine,), {"places": places})
    run_state_machine_as_test(machine, settings=settings(SETTINGS, **changed))


@pytest.mark.long
def test_a_file_under_arbitrary_use():
    """In memory, where there is such a folder: a ledger waits for the disk at every change."""
    memory = Path("/dev/shm")  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        run(Files(Path(folder)))


@pytest.mark.long
def test_a_server_under_arbitrary_use(new_server_ledger):
    run(Servers(new_server_ledger()), max_examples=15)
