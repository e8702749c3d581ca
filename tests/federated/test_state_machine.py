"""A federation as a state machine: plans, answers, false messages, replays, restored ledgers and survivor sets.

A small model contains the silos' messages, their ledgers and their checkpoints. From these it derives the code of each
refusal, the silos that count and the charges. It derives the threshold from the messages, which it reads with Python's
integers. The tests call only public functions, and forge messages by a signature of their own.
"""

import base64
import hashlib
import json
import math
import shutil
import tempfile
import warnings
from collections import Counter
from copy import deepcopy
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from confide import federated
from confide.errors import FormatError, LedgerError, OtherDataWarning
from tests.builders import slow
from tests.federated.model import (
    AFTER,
    BUDGET,
    COORDINATOR,
    DATA,
    FEW,
    GROUPS,
    KEYS,
    KINDS,
    NAMES,
    NOW,
    POLICY,
    STRANGER,
    STRICT,
    VALUES,
    M,
    Memory,
    Message,
    N,
    P,
    RefusedError,
    Round,
    accepted_of,
    canonical,
    expected,
    forged,
    opened,
    parts_of,
    target,
)
from tests.refused import refused

LIES = ["another", "copied", "beyond", "replayed", "too_late", "impostor", "altered", "torn"]
ALL_OR_ONE = st.sampled_from(["all", "last", "first"])
SOME_OF_THEM = ALL_OR_ONE | st.lists(st.integers(0, 19), min_size=1, max_size=6)
AWAY = st.just(set()) | st.sets(st.integers(0, M - 1), max_size=M - 1)


class FederationMachine(RuleBasedStateMachine):
    """Four silos; the first has its keys in memory only, and the others in files with checkpoints."""

    def __init__(self, first):
        super().__init__()
        self.first, self.secret = KINDS[first], KINDS[first].secret
        self.names = [name for name, kind in KINDS.items() if kind.secret == self.secret]
        memory = Path("/dev/shm")  # noqa: S108 - ledgers wait for their disk at every step
        self.folder = tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self.keys = KEYS[:1]
        for i in range(1, M):
            path = Path(self.folder.name) / f"{i}.key"
            KEYS[i].save(path)
            self.keys = [*self.keys, federated.SiloKeys.load(path)]
        self.paths = [Path(self.folder.name) / f"{i}.db" for i in range(M)]
        self.ledgers = [federated.SiloLedger(path) for path in self.paths]
        self.data = [0] * M
        self.memory = [Memory() for _ in range(M)]
        self.steps, self.remembered = 0, [None] * M
        self.copies, self.rounds, self.releases, self.unwelcome, self.restored = [], [], [], [], 0

    def teardown(self):
        self.folder.cleanup()

    def pick(self, things, number):
        return things[number % len(things)]

    # ---- plans

    @initialize(away=AWAY)
    def first_plan(self, away):
        self.planned(self.first)
        self.answer(0, away, 0)

    @precondition(lambda self: len(self.rounds) < 4)
    @rule(number=st.integers(0, 99), same=st.booleans())
    def plan(self, number, same):
        self.planned(self.first if same else KINDS[self.pick(self.names, number)])

    def planned(self, kind):
        self.rounds.append(Round(kind, kind.plan().sign(COORDINATOR)))

    @precondition(lambda self: len(self.unwelcome) < 2)
    @rule(silo=st.integers(0, M - 1), code=st.sampled_from(["coordinator-unknown", "not-invited", "not-allowed"]))
    def a_plan_that_is_not_answered(self, silo, code):
        """Make a plan of another coordinator, without this silo, or with a method or loss that its policy forbids."""
        self.unwelcome.append(code)
        text = self.first.plan().sign(STRANGER if code == "coordinator-unknown" else COORDINATOR)
        keys = STRANGER if code == "not-invited" else self.keys[silo]
        self.refused(code, silo, text, keys, NOW, STRICT if code == "not-allowed" else POLICY)

    # ---- silos

    @rule(round_=st.integers(0, 9), away=AWAY, late=st.integers(0, 9))
    def answer(self, round_, away, late):
        """Let all silos answer except the dropouts."""
        for silo in sorted(set(range(M)) - away):
            self.answered(self.pick(self.rounds, round_), silo, AFTER if late == 9 else NOW)

    def answered(self, asked, silo, now):
        memory, session, data = self.memory[silo], asked.session, self.data[silo]
        if session in memory.answers:
            first, of = memory.answers[session]
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert self.sent(silo, asked.text, self.keys[silo], now) == first.text
            assert [one.category for one in caught] == ([] if of == data else [OtherDataWarning])
            return
        spent = sum(memory.charged)
        if now == AFTER or session in memory.parts:
            code = "late"
        elif data == 2 and not self.secret:
            code = "size-differs"
        elif self.forgotten(silo):
            with pytest.raises(LedgerError):
                self.sent(silo, asked.text, self.keys[silo], now)
            return
        elif spent + asked.cost(silo) > BUDGET:
            code = "budget-spent"
            self.remember(silo)
        else:
            text = self.sent(silo, asked.text, self.keys[silo], now)
            memory.charged.append(asked.cost(silo))
            message = Message(text, silo)
            memory.answers[session] = message, data
            self.step(silo)
            asked.answers.append(message)
            assert federated.read_answer(asked.plan, text).silo == silo
            return
        self.refused(code, silo, asked.text, self.keys[silo], now)

    def step(self, silo):
        """Record that the ledger has a new entry and that a checkpoint next to the keys follows it."""
        self.steps += 1
        self.memory[silo].steps.append(self.steps)
        self.remember(silo)

    def remember(self, silo):
        if silo and self.memory[silo].steps:  # the keys of the first silo are in no file
            self.remembered[silo] = self.memory[silo].steps[-1]

    def forgotten(self, silo):
        """Return whether the ledger is an older copy than the checkpoint records."""
        return self.remembered[silo] is not None and self.remembered[silo] not in self.memory[silo].steps

    def sent(self, silo, text, keys, now, policy=POLICY):
        scores = DATA[silo][self.data[silo]]
        groups = {"groups": GROUPS[len(scores)]} if '"by": "group"' in text or '"by": "class"' in text else {}
        return federated.answer(text, scores, keys, policy, self.ledgers[silo], now=now, **groups)

    def refused(self, code, silo, text, keys, now, policy=POLICY):
        with refused(federated.Refusal, code):
            self.sent(silo, text, keys, now, policy)

    @rule(silo=st.integers(0, M - 1), data=st.integers(0, 2))
    def other_data(self, silo, data):
        self.data[silo] = data

    @precondition(lambda self: len(self.copies) < M)
    @rule(silo=st.integers(0, M - 1))
    def keep_a_copy(self, silo):
        path = self.paths[silo].with_name(f"copy {len(self.copies)}.db")
        if self.paths[silo].exists():
            shutil.copy(self.paths[silo], path)
        self.copies.append((silo, path, deepcopy(self.memory[silo])))

    @precondition(lambda self: self.copies)
    @rule(number=st.integers(0, 9))
    def restore(self, number):
        """Restore an earlier ledger at a new path, as another machine would; the checkpoint is newer."""
        silo, copy, memory = self.pick(self.copies, number)
        self.restored += 1
        self.paths[silo] = copy.with_name(f"restored {self.restored}.db")
        if copy.exists():
            shutil.copy(copy, self.paths[silo])
        self.ledgers[silo], self.memory[silo] = federated.SiloLedger(self.paths[silo]), deepcopy(memory)

    @invariant()
    def what_is_charged(self):
        """Each ledger charges each plan once, and never charges a refused request."""
        for ledger, memory in zip(self.ledgers, self.memory, strict=True):
            assert ledger.spent == pytest.approx(sum(memory.charged))

    # ---- false messages

    @precondition(lambda self: any(asked.answers for asked in self.rounds))
    @rule(
        round_=st.integers(0, 9),
        number=st.integers(0, 9),
        how=st.sampled_from(LIES),
        by=st.integers(1, 5),
        which=ALL_OR_ONE,
        drop=st.booleans(),
    )
    def lie(self, round_, number, how, by, which, drop):
        """Add a false message and aggregate before any other step."""
        asked = self.pick([asked for asked in self.rounds if asked.answers], round_)
        true = self.pick(asked.answers, number)
        if true.silo is None or true.code is not None:
            return
        asked.answers.append(getattr(self, how)(asked, true, by))
        self.aggregate_of(asked, which, "first", drop, signed=True)

    def altered(self, asked, true, by):
        changed = forged(true.text, lambda content: content.update(answered="2030-06-01T00:00:00Z"))
        return Message(changed, None, "altered")

    def impostor(self, asked, true, by):
        return Message(forged(true.text, lambda content: None, KEYS[(true.silo + 1) % M]), None, "foreign")

    def torn(self, asked, true, by):
        return Message(true.text[: len(true.text) // 2], None, "malformed")

    def too_late(self, asked, true, by):
        late = forged(true.text, lambda content: content.update(answered="2032-01-01T00:00:00Z"), KEYS[true.silo])
        return Message(late, true.silo, "late")

    def copied(self, asked, true, by):
        return Message(json.dumps(json.loads(true.text)), true.silo)

    def replayed(self, asked, true, by):
        """Return an answer of this silo to another plan."""
        others = [one for other in self.rounds if other is not asked for one in other.answers if one.silo == true.silo]
        return Message(others[0].text, None, "foreign") if others else self.impostor(asked, true, by)

    def another(self, asked, true, by):
        """Change what the silo drew: another candidate, moved votes or counts, or a share that does not decrypt."""

        def change(content):
            for reply in content.get("replies", [content]):
                if "candidate" in reply:
                    reply["candidate"] = (reply["candidate"] + by) % FEW.size
                    value = VALUES[reply["candidate"]]
                    reply["threshold"] = "+inf" if math.isinf(value) else value
            if "masked" in content:
                bits = asked.fields["bits"]
                content["masked"][by] = (content["masked"][by] + 1) % 2**bits
                content["masked"][by - 1] = (content["masked"][by - 1] - 1) % 2**bits
            if "shares" in content:
                share = content["shares"][by % M]
                content["shares"][by % M] = ("B" if share[0] == "A" else "A") + share[1:]

        lie = Message(forged(true.text, change, KEYS[true.silo]), true.silo)
        return lie

    def beyond(self, asked, true, by):
        """Use an invalid candidate, a vector of another length, or impossible counts."""

        def change(content):
            for reply in content.get("replies", [content]):
                if "candidate" in reply:
                    reply["candidate"] += FEW.size
            if "masked" in content and by % 2:
                content["masked"].pop()
            elif "masked" in content:
                content["masked"][by] = (content["masked"][by] + 2**20) % 2 ** asked.fields["bits"]
            if "shares" in content:
                content["shares"].pop()

        code = {"clear": "out-of-range", "shared": "malformed"}.get(asked.kind.channel, "malformed" if by % 2 else None)
        return Message(forged(true.text, change, KEYS[true.silo]), true.silo, code)

    # ---- the second round

    @property
    def shared(self):
        """Return the rounds whose sums need parts of share holders."""
        return [asked for asked in self.rounds if asked.kind.channel == "shared" and asked.answers]

    def chosen(self, things, numbers):
        return [self.pick(things, number) for number in numbers] if things else []

    def given(self, things, which):
        """Return the first or last message of each silo, all messages, or a selection in any order with repetitions."""
        if which == "all":
            return things
        if which in ("first", "last"):
            of_silos = [one for one in things if one.silo is not None and (one.code is None or which == "last")]
            one_of_each = {one.silo: one for one in (of_silos if which == "last" else reversed(of_silos))}
            return [one_of_each[silo] for silo in sorted(one_of_each)]
        return self.chosen(things, which)

    @precondition(lambda self: any(len(asked.lists) < 3 for asked in self.shared))
    @rule(round_=st.integers(0, 9), which=SOME_OF_THEM, drop=st.booleans())
    def list_answers(self, round_, which, drop):
        self.list_answers_of(self.pick([asked for asked in self.shared if len(asked.lists) < 3], round_), which, drop)

    def list_answers_of(self, asked, which, drop):
        given = self.given(asked.answers, which)
        texts = [one.text for one in given]

        def listed():
            accepted, _ = accepted_of(given, drop)
            if len(accepted) < asked.least:
                raise RefusedError("missing")
            return accepted

        code, accepted = expected(listed)
        if code is not None:
            with refused(federated.Refusal, code):
                federated.openings(asked.text, texts, COORDINATOR, drop_refused=drop)
            return
        found = federated.openings(asked.text, texts, COORDINATOR, drop_refused=drop)
        assert found == federated.openings(asked.text, texts, COORDINATOR, drop_refused=drop)
        assert set(found) == set(NAMES)
        asked.lists.append((accepted, found))

    @precondition(lambda self: any(asked.lists for asked in self.rounds))
    @rule(round_=st.integers(0, 9), number=st.integers(0, 9), away=AWAY)
    def open_parts(self, round_, number, away):
        asked = self.pick([asked for asked in self.rounds if asked.lists], round_)
        listed, texts = self.pick(asked.lists, number)
        for silo in sorted(set(range(M)) - away):
            self.open_part(asked, silo, listed, texts[NAMES[silo]])

    def open_part(self, asked, silo, listed, text):
        memory, session = self.memory[silo], asked.session
        of = tuple((NAMES[i], one.content["ephemeral"]) for i, one in sorted(listed.items()))
        own = memory.answers.get(session)
        readable = all(self.opens(asked, one, silo) for one in listed.values())
        if silo in listed and (own is None or own[0].content["ephemeral"] != listed[silo].content["ephemeral"]):
            code = "foreign"
        elif session in memory.parts:
            code = None if memory.parts[session][0] == of else "session-used"
        else:
            code = None if readable else "unreadable"
        arguments = (asked.text, text, self.keys[silo], POLICY, self.ledgers[silo])
        if code is not None:
            with refused(federated.Refusal, code):
                federated.open_part(*arguments)
            return
        if session not in memory.parts and self.forgotten(silo):
            with pytest.raises(LedgerError):
                federated.open_part(*arguments)
            return
        part = federated.open_part(*arguments)
        if session in memory.parts:
            assert part == memory.parts[session][1]
            return
        memory.parts[session] = of, part
        self.step(silo)
        asked.parts.append(Message(part, silo))

    def opens(self, asked, one, opener):
        """Return whether the share for this share holder is as the silo dealt it; false shares are added later."""
        ephemeral = one.content["ephemeral"]
        dealt = next(true for true in asked.answers if true.code is None and true.content["ephemeral"] == ephemeral)
        return one.content["shares"][opener] == dealt.content["shares"][opener]

    @precondition(lambda self: any(asked.parts for asked in self.rounds))
    @rule(
        round_=st.integers(0, 9),
        number=st.integers(0, 9),
        how=st.integers(0, 3),
        by=st.integers(0, 5),
        which=ALL_OR_ONE,
        drop=st.booleans(),
    )
    def lie_of_an_opener(self, round_, number, how, by, which, drop):
        asked = self.pick([asked for asked in self.rounds if asked.parts], round_)
        true = self.pick(asked.parts, number)
        if true.silo is None or true.code is not None:
            return

        def change(content):
            values = np.frombuffer(base64.b64decode(content["sum"]), "<u8").tolist()
            values[by] = (values[by] + 2**40) % P
            content["sum"] = base64.b64encode(np.array(values, "<u8").tobytes()).decode()

        if how == 3:
            asked.parts.append(Message(forged(true.text, change), None, "altered"))
        elif how == 1:
            asked.parts.append(Message(forged(true.text, change, KEYS[(true.silo + 1) % M]), None, "foreign"))
        elif how == 2:
            other = [one for other in self.rounds if other is not asked for one in other.parts if one.code is None]
            asked.parts += [Message(one.text, None, "foreign") for one in other[:1]]
        else:
            asked.parts.append(Message(forged(true.text, change, KEYS[true.silo]), true.silo))
        self.aggregate_of(asked, "first", which, drop, signed=True)

    # ---- releases

    @rule(round_=st.integers(0, 9), away=AWAY, helpers=AWAY, signed=st.booleans())
    def everything(self, round_, away, helpers, signed):
        """Run one plan from its answers to the stored release, after all earlier steps."""
        place = self.rounds.index(self.pick(self.rounds, round_))
        asked = self.rounds[place]
        self.answer(place, away, 0)
        if asked in self.shared:
            if not asked.lists:
                self.list_answers_of(asked, "first", drop=True)
            for silo in sorted(set(range(M)) - helpers):
                for listed, texts in asked.lists[:1]:
                    self.open_part(asked, silo, listed, texts[NAMES[silo]])
        if asked.answers:
            before = len(self.releases)
            self.aggregate_of(asked, "first", "first", drop=True, signed=signed)
            if len(self.releases) > before:
                self.read_back_and_verify(before, 0, 0)

    @precondition(lambda self: any(asked.answers for asked in self.rounds))
    @rule(
        round_=st.integers(0, 9),
        which=SOME_OF_THEM,
        parts=SOME_OF_THEM,
        drop=st.booleans(),
        signed=st.booleans(),
    )
    def aggregate(self, round_, which, parts, drop, signed):
        asked = self.pick([asked for asked in self.rounds if asked.answers], round_)
        self.aggregate_of(asked, which, parts, drop, signed)

    def aggregate_of(self, asked, which, parts, drop, signed):
        given = self.given(asked.answers, which)
        helped = self.given(asked.parts, parts) if asked.kind.channel == "shared" else []
        texts, of_parts = [one.text for one in given], [one.text for one in helped]
        options = {"parts": of_parts, "keys": COORDINATOR if signed else None, "drop_refused": drop}
        code, found = expected(lambda: self.read(asked, given, helped, drop))
        if code is not None:
            with refused(federated.Refusal, code):
                federated.aggregate(asked.text, texts, **options)
            return
        counted, left_out, thresholds = found
        released = federated.aggregate(asked.text, texts, **options)
        who = sorted(counted)
        assert released.answered == tuple(NAMES[i] for i in who)
        assert dict(released.refused) == left_out
        for one, threshold in zip(released.parts.values(), thresholds, strict=True):
            assert one.answered == released.answered
            assert one.threshold == pytest.approx(threshold)
            assert one.coverage >= float(1 - one.alpha) - 1e-9
        assert released.privacy.epsilon == asked.plan.privacy(who).epsilon
        self.releases.append((asked, released, counted, signed))

    def read(self, asked, given, helped, drop):
        """Return the counted silos, the refused messages and the thresholds, or raise `RefusedError`."""
        accepted, refused = accepted_of(given, drop)
        total = None
        if asked.kind.channel == "shared":
            if not helped:
                raise RefusedError("missing")
            accepted, refused, total = self.by_parts(asked, accepted, refused, helped, drop, len(given))
        elif asked.kind.channel == "masked":
            if len(accepted) < M:
                raise RefusedError("missing")
            bits = asked.fields["bits"]
            vectors = [one.content["masked"] for one in accepted.values()]
            total = [sum(column) % 2**bits for column in zip(*vectors, strict=True)]
            total = [value - 2**bits if value >= 2 ** (bits - 1) else value for value in total]
        elif not accepted:
            raise RefusedError("missing")
        if total is not None and asked.kind.method == "fedcp2-qq-sum":
            if min(total) < 0 or sum(total) != len(accepted):
                raise RefusedError("implausible")
        elif total is not None and max(map(abs, total)) > 10_000:  # the noise is of the order of one
            raise RefusedError("implausible")
        found = [self.threshold(asked, place, accepted, total) for place in range(len(asked.each))]
        nested = [max(found[: place + 1]) for place in range(len(found))]
        return accepted, refused, nested if asked.kind.by == "level" else found

    def by_parts(self, asked, accepted, refused, helped, drop, after):
        read, wrong = parts_of(helped, drop, after)
        lists = Counter((one.content["counted"], tuple(one.content["places"])) for one in read.values())
        most, count = max(lists.items(), key=lambda pair: pair[1], default=(None, 0))
        if count < asked.fields["needed"]:
            raise RefusedError("missing")
        listed = {i: one for i, one in read.items() if (one.content["counted"], tuple(one.content["places"])) == most}
        for other in read.keys() - listed.keys():
            if not drop:
                raise RefusedError("foreign")
            wrong[NAMES[other]] = "foreign"
        first = next(iter(listed.values()))
        of = dict(next(of for of, part in self.all_parts(asked) if part == first.content["counted"]))
        if not {NAMES[i] for i in accepted} >= set(of):
            raise RefusedError("missing")
        if any(accepted[NAMES.index(name)].content["ephemeral"] != key for name, key in of.items()):
            raise RefusedError("foreign")
        late = {NAMES[i]: "late" for i in accepted if NAMES[i] not in of}
        counted = {NAMES.index(name): accepted[NAMES.index(name)] for name in of}
        total = opened(asked, listed)
        return counted, refused | wrong | late, total

    def all_parts(self, asked):
        """Yield every survivor set of the round with its digest, as the parts of honest silos state it."""
        for listed, _ in asked.lists:
            of = tuple((NAMES[i], one.content["ephemeral"]) for i, one in sorted(listed.items()))
            yield of, hashlib.sha256(canonical([asked.plan.digest, [list(pair) for pair in of]])).hexdigest()

    def threshold(self, asked, place, accepted, total):
        plan, who = asked.each[place], sorted(accepted)
        if asked.kind.method == "secure-sum":
            honest = (M if asked.kind.channel == "masked" else asked.least) - asked.fields["colluding"]
            rank = target(honest, len(who), asked.fields["scale"], Fraction(plan.alpha))
            beyond = [sum(total[at + 1 :]) for at in range(FEW.size)]
            return next(VALUES[at] for at in range(FEW.size) if len(who) * N - beyond[at] >= rank)
        k, _ = plan.certify(who)
        if total is not None:
            replies = [at for at, votes in enumerate(total) for _ in range(votes)]
        else:
            contents = [accepted[i].content for i in who]
            replies = sorted(one.get("replies", [one] * (place + 1))[place]["candidate"] for one in contents)
        return VALUES[replies[k - 1]] if k <= len(replies) else math.inf

    @rule(number=st.integers(0, 9), of=st.integers(0, 19), at=st.integers(0, 5))
    def read_back_and_verify(self, number, of, at):
        """Do nothing without a release: a precondition would let the noise choose the rules that are drawn."""
        if not self.releases:
            return
        asked, released, counted, signed = self.pick(self.releases, number)
        text = released.to_json()
        again = federated.FederatedRelease.from_json(text)
        assert again.to_json() == text
        assert federated.verify(again).holds
        assert federated.verify(again, COORDINATOR.public()).holds == signed
        assert not federated.verify(again, STRANGER.public()).holds
        for one in self.chosen(asked.answers, [of, of + 1]):
            expected = one.code is None and one.silo in counted
            if asked.kind.channel == "shared":
                expected = expected and one.content["ephemeral"] == counted[one.silo].content["ephemeral"]
            else:
                expected = expected and signed and one.content == counted[one.silo].content
            assert federated.verify(again, answers=[one.text]).holds == expected
        self.refuse_another_threshold(asked, released, signed, VALUES[at])

    def refuse_another_threshold(self, asked, released, signed, value):
        """A changed threshold fits no signature and no checksum; signed again, it contradicts the messages."""
        if released.first.threshold == value:
            return

        def change(content):
            if "threshold" in content:
                content["threshold"] = stated
            else:
                content["thresholds"][0] = stated

        stated = "+inf" if math.isinf(value) else value
        document = json.loads(released.to_json())
        change(document.get("content", document))
        texts = [json.dumps(document)]
        if signed and (asked.kind.channel == "shared" or asked.kind.channel == "clear"):
            texts.append(forged(released.to_json(), change, COORDINATOR))
        for text in texts:
            with pytest.raises(FormatError):
                federated.FederatedRelease.from_json(text)


def runs(first, examples, steps):
    """Run examples whose first plan is of this kind, and many later ones."""
    profile = settings(
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(first)(lambda: FederationMachine(first)), settings=profile)


EVERYDAY = (
    "private-qq", "private-qq, a liar", "secure-sum, shared", "fedcp2-qq-sum, masked",
    "levels of fedcp2-qq", "levels of secure-sum, shared",
)  # fmt: skip
"""Kinds with which every method and channel comes first; later plans of an example are of any kind."""


@pytest.mark.parametrize("first", slow([name for name, kind in KINDS.items() if not kind.secret], everyday=EVERYDAY))
def test_a_federation(first):
    runs(first, examples=5 if KINDS[first].channel == "shared" else 3, steps=25)


@pytest.mark.slow
@pytest.mark.parametrize("first", KINDS)
def test_a_federation_in_many_ways(first):
    runs(first, examples=8, steps=40)
