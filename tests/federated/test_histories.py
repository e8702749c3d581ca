"""Histories of a federation in any order: plans, answers, false messages, replays and restored ledgers.

A small model holds what each silo answered, charged and remembers. From it follow the code of every refusal, the silos
that count, the charges and the threshold.
"""

import shutil
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from confide import federated
from confide.candidates import Candidates
from confide.errors import LedgerError, OtherDataWarning
from confide.federated.answers import Sending
from confide.federated.keys import SiloKeys
from confide.federated.messages import sign
from tests.federated.helpers import Federation, altered, content_of, kth_reply
from tests.refused import refused

SILOS, RECORDS, BUDGET, EPSILON = 3, 40, 5.0, 2.0
FEW = Candidates.unit(20)
NOW, AFTER = (federated.read_time(f"20{year}-06-01T00:00:00Z") for year in (30, 32))
CLOSES = federated.read_time("2031-01-01T00:00:00Z")
DATA = [[np.random.default_rng([silo, k]).random(RECORDS + (k == 2)) for k in range(3)] for silo in range(SILOS)]
METHODS = ("private-qq", "secure-sum")
LIES = ("torn", "altered", "impostor", "late", "beyond", "another", "replayed", "copied")
OF_SILOS = st.integers(0, SILOS - 1)


@dataclass
class Round:
    """A signed plan, and the messages about it: the text, its silo or None, and the code of its refusal or None."""

    text: str
    plan: federated.FederatedPlan
    messages: list[tuple[str, int | None, str | None]] = field(default_factory=list)


@dataclass
class Memory:
    """What the ledger of a silo holds: the answer and its data by session, in order."""

    answers: dict[str, tuple[str, int]] = field(default_factory=dict)


class Histories(RuleBasedStateMachine):
    """Three silos with keys in files; a checkpoint next to each key follows the ledger."""

    def __init__(self):
        super().__init__()
        memory = Path("/dev/shm")  # noqa: S108 - ledgers wait for their disk at every step
        self.folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self.path = Path(self.folder.name)
        self.silos = Federation(self.path, [scores[0] for scores in DATA], budget=BUDGET)
        for i, keys in enumerate(self.silos.keys):
            keys.save(self.path / f"{i}.key")
            self.silos.keys[i] = SiloKeys.load(self.path / f"{i}.key")
        self.data, self.memory = [0] * SILOS, [Memory() for _ in range(SILOS)]
        self.remembered: list[tuple[str, ...]] = [()] * SILOS
        self.rounds: list[Round] = []
        self.copies: list[tuple[int, Path, Memory]] = []
        self.restored = 0

    def teardown(self):
        self.folder.cleanup()

    @initialize(method=st.sampled_from(METHODS))
    def first(self, method):
        self.plan(method)
        for silo in range(SILOS):
            self.answer(0, silo, False)

    @precondition(lambda self: len(self.rounds) < 4)
    @rule(method=st.sampled_from(METHODS))
    def plan(self, method):
        text = self.silos.plan(0.3, EPSILON, method=method, candidates=FEW, closes=CLOSES)
        self.rounds.append(Round(text, federated.read_plan(text)))

    # Silos

    @rule(number=st.integers(0, 9), silo=OF_SILOS, late=st.booleans())
    def answer(self, number, silo, late):
        asked, memory, data = self.round(number), self.memory[silo], self.data[silo]
        session, stored = asked.plan.session, self.memory[silo].answers
        if session in stored:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert self.sent(asked, silo, late) == stored[session][0]
            assert [one.category for one in caught] == [OtherDataWarning] * (stored[session][1] != data)
        elif late or data == 2:
            with refused(federated.Refusal, "late" if late else "size-differs"):
                self.sent(asked, silo, late)
        elif not self.is_newest(silo):
            with pytest.raises(LedgerError):
                self.sent(asked, silo, late)
        elif (len(stored) + 1) * EPSILON > BUDGET:
            with refused(federated.Refusal, "budget-spent"):
                self.sent(asked, silo, late)
        else:
            memory.answers[session] = self.sent(asked, silo, late), data
            self.remembered[silo] = tuple(memory.answers)
            asked.messages.append((memory.answers[session][0], silo, None))

    def sent(self, asked, silo, late):
        self.silos.scores[silo] = DATA[silo][self.data[silo]]
        return self.silos.answer(silo, asked.text, now=AFTER if late else NOW)

    def is_newest(self, silo):
        """Whether the ledger has everything that the keys remember."""
        return tuple(self.memory[silo].answers)[: len(self.remembered[silo])] == self.remembered[silo]

    @rule(silo=OF_SILOS, data=st.integers(0, 2))
    def other_data(self, silo, data):
        self.data[silo] = data

    @precondition(lambda self: len(self.copies) < SILOS)
    @rule(silo=OF_SILOS)
    def keep_a_copy(self, silo):
        path = self.path / f"copy {len(self.copies)}.db"
        if (ledger := self.silos.ledgers[silo].ledger.path).exists():
            shutil.copy(ledger, path)
        self.copies.append((silo, path, replace(self.memory[silo], answers=dict(self.memory[silo].answers))))

    @precondition(lambda self: self.copies)
    @rule(number=st.integers(0, 9))
    def restore(self, number):
        """An earlier ledger at a new path, as on another machine; the checkpoint is newer."""
        silo, copy, memory = self.copies[number % len(self.copies)]
        self.restored += 1
        path = self.path / f"restored {self.restored}.db"
        if copy.exists():
            shutil.copy(copy, path)
        self.silos.ledgers[silo] = federated.SiloLedger(path)
        self.memory[silo] = replace(memory, answers=dict(memory.answers))

    @invariant()
    def every_answer_is_charged_once(self):
        for ledger, memory in zip(self.silos.ledgers, self.memory, strict=True):
            assert ledger.spent == EPSILON * len(memory.answers)

    # Messages

    @precondition(lambda self: any(one.messages for one in self.rounds))
    @rule(number=st.integers(0, 9), which=st.integers(0, 9), how=st.sampled_from(LIES), drop=st.booleans())
    def lie(self, number, which, how, drop):
        """Add a false message, and aggregate before any other step."""
        begun = [one for one in self.rounds if one.messages]
        asked = begun[number % len(begun)]
        true = [one for one in asked.messages if one[2] is None and one[1] is not None]
        text, silo, _ = true[which % len(true)]
        content = Sending(**content_of(text))
        last = content.sent[-1]
        signer = self.silos.keys[(silo + 1) % SILOS if how == "impostor" else silo].signing
        if how == "torn":
            asked.messages.append((text[: len(text) // 2], None, "malformed"))
        elif how == "altered":
            asked.messages.append((altered(text, answered="2030-06-02T00:00:00Z"), None, "altered"))
        elif how == "copied":
            asked.messages.append((text, silo, None))
        elif how == "replayed":
            others = [one for other in self.rounds if other is not asked for one in other.messages if one[2] is None]
            asked.messages += [(other, None, "foreign") for other, *_ in others[:1]]
        elif how == "impostor":
            asked.messages.append((sign("answer", content, signer), None, "foreign"))
        elif how == "late":
            content.answered = "2032-01-01T00:00:00Z"
            asked.messages.append((sign("answer", content, signer), silo, "late"))
        elif how == "beyond":
            content.sent.append(0)
            asked.messages.append((sign("answer", content, signer), silo, "malformed"))
        else:
            content.sent[-1] = last - 1 if last else 1
            asked.messages.append((sign("answer", content, signer), silo, None))

        self.aggregated(asked, asked.messages, drop)

    @precondition(lambda self: any(one.messages for one in self.rounds))
    @rule(number=st.integers(0, 9), drop=st.booleans(), data=st.data())
    def aggregate(self, number, drop, data):
        """Some of the messages, in any order."""
        messages = self.round(number).messages
        given = data.draw(st.lists(st.sampled_from(messages), max_size=6) if messages else st.just([]))
        self.aggregated(self.round(number), given, drop)

    def aggregated(self, asked, given, drop):
        """The first refusal, or the threshold of those that count."""
        accepted, codes = {}, []
        for text, silo, code in dict.fromkeys(given):
            if code is None and (silo in accepted or silo in {one for one, _ in codes}):
                code = "duplicate"
                accepted.pop(silo, None)
            if code is None:
                accepted[silo] = text
                continue
            codes.append((silo, code))
        texts = [text for text, *_ in given]
        if codes and not drop:
            with refused(federated.Refusal, codes[0][1]):
                federated.aggregate(asked.text, texts)
            return
        missing = len(accepted) < (SILOS if asked.plan.method == "secure-sum" else 1)
        if missing:
            with refused(federated.Refusal, "missing"):
                federated.aggregate(asked.text, texts, drop_refused=drop)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            released = federated.aggregate(asked.text, texts, drop_refused=drop)
        assert list(released.answered) == [self.silos.keys[i].name for i in sorted(accepted)]
        if asked.plan.method == "private-qq":
            replies = [content_of(text)["sent"][0] for text in accepted.values()]
            place = kth_reply(replies, released.first.k, asked.plan.candidates.size)
            assert released.threshold == asked.plan.candidates.values[place]
        assert federated.FederatedRelease.from_json(released.to_json()) == released

    def round(self, number):
        return self.rounds[number % len(self.rounds)]


TestHistories = Histories.TestCase
HOW = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.generate],
}  # to shrink takes minutes
TestHistories.settings = settings(max_examples=6, stateful_step_count=12, **HOW)


@pytest.mark.long
class TestLongHistories(Histories.TestCase):
    """The same, longer."""

    settings = settings(max_examples=60, stateful_step_count=30, **HOW)
