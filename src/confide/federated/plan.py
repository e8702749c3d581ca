"""What plans say, for people: the same words and digits wherever they are printed.

The plan of a federated calibration: public, signed, computed before any data is seen; JSON.

It fixes what every silo will run, down to the last integer, so that a silo can state its privacy loss and anybody the
coverage for whichever silos answer. `planning.py` makes plans. What a plan says when it is read is not trusted: every
field is checked, and so is their fit.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import accumulate, groupby
from typing import Any, Literal, TypeAlias

import numpy as np

from confide.candidates import BUILDERS, Candidates
from confide.errors import InputError
from confide.federated.envelope import Envelope, digest, fields_of, read_time, seal, unseal, write_time
from confide.federated.keys import SILO, Silo, SiloKeys, fingerprint, roster
from confide.federated.protocols import METHODS, PROTOCOLS, Channel, Counts, Method, Promise, Shared
from confide.federated.protocols.plan_fields import VOID, read_unused, refuse_contradiction, write_fields
from confide.federated.refusals import Refusal
from confide.federated.release_size import refuse_too_long
from confide.federated.terms import MISSING, POPULATIONS, Terms
from confide.guarantee import Guarantee, silos_text
from confide.mechanisms import PrivacyStatement
from confide.planning import unusual
from confide.releases import ABOUT, WORDS, class_list
from confide.scores import score_kind
from confide.support import Described, Fields, Section, exact_level, one_of, privacy_loss, shapes

By: TypeAlias = Literal["level", "group", "class", "side"]
"""What the asks of one plan are for."""


class AnyPlan(Described):
    """What a silo can be asked by one message and for one charge: a list of asks; one threshold is a list of one."""

    by: By | None
    """What tells the asks apart: their levels, groups, classes or sides; None for one threshold."""
    method: str
    """As plans name it; one for all."""
    protocol: Method
    """What every silo draws for the first ask; the others are of the same kind."""
    channel: Channel
    """How the silos' vectors are added; one for all."""
    silos: tuple[Silo, ...]
    """Who is invited."""
    session: str
    """Random, used once."""
    coordinator: Silo | None
    """Who signed it; None before that."""
    signed: bool
    """Whether the silos are signed by their own keys."""

    @property
    def digest(self) -> str:
        """SHA-256 of the plan: answers name it."""
        raise NotImplementedError

    def closed(self, now: datetime) -> bool:
        """Whether answers made at this time are late."""
        return Terms.closed(self.asks[0], now)

    @property
    def asks(self) -> Sequence["FederatedPlan"]:
        """A plan of one threshold for each level, group, class or side."""
        raise NotImplementedError

    @property
    def names(self) -> tuple[Any, ...]:
        """What each ask is for: a level, the name of a group or class, the score of a side, or None."""
        raise NotImplementedError

    @property
    def draws(self) -> Sequence["FederatedPlan"]:
        """What is drawn: one for all levels of noisy counts, else one for each ask."""
        return self.asks[:1] if self.by == "level" and self.protocol.one_draw else self.asks

    @property
    def width(self) -> int:
        """How many numbers the vectors of one silo have together."""
        return len(self.draws) * self.asks[0].candidates.size

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What a silo is asked, what it pays and what is promised, (name, value) each."""
        raise NotImplementedError

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is unusual about what is asked for."""
        raise NotImplementedError

    @property
    def assumed(self) -> str:
        """What its promise assumes of the silos, or of the new record, in words; empty if it promises nothing."""
        return silos_text(self.protocol.about_silos(self.asks[0]))

    @property
    def words(self) -> list[tuple[str, str]]:
        """What its method says beside, (name, value) each."""
        return self.protocol.words(self.asks[0])

    @property
    def promise_lines(self) -> list[str]:
        """What is promised for the numbers of answers; for each of several levels, and once for all groups."""
        raise NotImplementedError

    def position(self, name: str) -> int:
        """The place of a silo; else `foreign`."""
        return Terms.position(self.asks[0], name)

    def privacy(self, answered: Collection[int] | None = None) -> PrivacyStatement:
        """The loss of one record anywhere: silos hold different records, so the largest loss of a silo counts."""
        raise NotImplementedError

    def loss(self, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""
        return self.privacy([i]).epsilon

    def sign(self, coordinator: SiloKeys) -> str:
        """The plan as a signed JSON message, read back as every silo will read it."""
        raise NotImplementedError

    def message(self, own: int, counts: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """What silo `own` sends, drawn once, as JSON values.

        `counts` have shape (m,), for groups and sides (asks, m).
        """
        rows = counts if counts.ndim == 2 else [counts] * len(self.draws)
        drawn = [ask.protocol.draw(ask, own, row)[np.newaxis] for ask, row in zip(self.draws, rows, strict=True)]
        first, of_each = self.asks[0], self.by is not None and self.channel.each
        if of_each:
            return {"replies": [self.channel.send(first, own, one, agreement, context) for one in drawn]}
        return self.channel.send(first, own, np.concatenate(drawn), agreement, context)

    def read_message(self, i: int, fields: Fields) -> Any:
        """What silo i sent; refused as `malformed` or `out-of-range` if it cannot be that."""
        first = self.asks[0]
        if not self.channel.each:
            return self.channel.read_message(first, fields, len(self.draws))
        if self.by is None:
            return _read_reply(first, i, fields)
        chosen = []
        for ask, reply in zip(self.draws, _replies(fields, len(self.draws)), strict=True):
            with fields_of("reply", reply) as own:
                chosen.append(_read_reply(ask, i, own))
        return tuple(chosen)

    def add(self, sent: Mapping[int, Any]) -> Counts:
        """The sum of what the silos sent, by place; shape (draws, m)."""
        total = self.channel.add(self.asks[0], sent, len(self.draws))
        if not self.channel.each:
            self.refuse_total(sorted(sent), total)
        return total

    def refuse_total(self, who: Sequence[int], total: Counts) -> None:
        """Refuse a sum as `implausible` that the vectors of these silos cannot have, were they all honest."""
        for ask, row in zip(self.draws, total, strict=True):
            ask.protocol.refuse_total(ask, who, row)

    def certified(self, who: Sequence[int], stated: int | None = None) -> list[tuple[int, Guarantee]]:
        """The k and the promise of every ask (see `FederatedPlan.certify`); the one plan of all groups once."""
        self.channel.refuse_short(self.asks[0], who)
        early = stated if self.channel.each else None  # no earlier version had sums of replies
        found = {id(ask): ask for ask in self.asks}
        certified = {place: ask.protocol.certify(ask, who, early) for place, ask in found.items()}
        return [certified[id(ask)] for ask in self.asks]

    def thresholds(self, who: Sequence[int], total: Counts, ks: Sequence[int]) -> list[float]:
        """What the sum of the vectors of these silos says, shape (draws, m), with the k of each ask."""
        rows = total if len(total) == len(self.asks) else [total[0]] * len(self.asks)
        each = zip(self.asks, rows, ks, strict=True)
        found = [ask.protocol.read_off(ask, who, row, k) for ask, row, k in each]
        return list(accumulate(found, max)) if self.by == "level" else found  # nested, and nothing is covered less

    def _section(self) -> Section:
        return Section(
            "Plan of a federation",
            "federated plan; nothing is paid by looking at it",
            warnings=tuple(self.remarks),
            parts=(Section("", facts=tuple(self.rows)),),
            notes=tuple(f"  {line}" for line in self.promise_lines),
        )

    def _brief(self) -> str:
        said = dict(self.rows)
        silos = f"{said['silos'].partition(',')[0]} silos"
        return f"{said['method']}, {said['asked for']}, {silos}, each pays at most {said['a silo pays at most']}"


def identity_rows(plan: AnyPlan, *, silos: bool) -> list[tuple[str, str]]:
    """The fingerprints of coordinator and silos, and one number for all of them, as far as the plan states them."""
    if plan.coordinator is None:
        return []
    rows = [(f"coordinator {plan.coordinator.name}", fingerprint(plan.coordinator.identity))]
    if silos:
        rows += [(f"silo {silo.name}", fingerprint(silo.identity) + _records(silo)) for silo in plan.silos]
        rows += [("roster, all of them", roster_number([plan.coordinator, *plan.silos]))]
    return rows


def roster_number(everybody: Iterable[Silo]) -> str:
    """One number for coordinator and silos, longer than that of one of them: see `confide.federated.fingerprint`."""
    return fingerprint(roster(everybody), groups=12)


def _records(silo: Silo) -> str:
    return "" if silo.size is None else f", {silo.size} records"


def colluders(plan: AnyPlan) -> str | None:
    """How many colluding silos the privacy of an answer withstands; None if it relies on no other silo."""
    count = plan.channel.colluders
    if count is None:
        return None
    who = f"at most {count} of the {len(plan.silos)} silos" if count else "no silo"
    return f"{who} may collude with the coordinator"


def openers(plan: AnyPlan) -> str | None:
    """Who opens the sum by a second message; None if there is none."""
    if not isinstance(plan.channel, Shared):
        return None
    return f"{plan.channel.needed} of {len(plan.channel.openers)} silos, by a second message that costs nothing"


def ranges(promises: Mapping[int, Promise]) -> Iterator[tuple[str, str]]:
    """Numbers of answers, the many first, for which the same words are said."""
    for words, numbers in groupby(promises, key=lambda answers: _promised(promises[answers])):
        most, *others = numbers
        yield f"{others[-1]} to {most}" if others else f"{most}", words


def _promised(promise: Promise) -> str:
    if promise.infinite == "always":
        return "the threshold +inf"
    covers = f"coverage at least {promise.coverage:.6g}" if promise.coverage else "no coverage is promised"
    return covers + (", perhaps by the threshold +inf" if promise.infinite == "perhaps" else "")


_ORDER = (
    *("method", "alpha", "delta", "epsilon", "score", "candidates", "silos", "targets", "rate", "left", "right"),
    *("scale", "selector", "liars", "dropouts", "missing", "population", "colluding", "bits", "n_min", "n_typical"),
    *("published_k", "session", "closes"),
)


def _read_reply(ask: "FederatedPlan", i: int, fields: Fields) -> int:
    chosen: int = ask.channel.read_message(ask, fields, 1)
    ask.protocol.refuse_reply(ask, i, chosen)
    return chosen


def _replies(fields: Fields, count: int) -> list[dict[str, Any]]:
    replies: tuple[dict[str, Any], ...] = fields.read("replies", shapes.listed(shapes.OBJECT))
    if len(replies) != count:
        raise Refusal("malformed", "the answer must have one reply for each of the plans")
    return list(replies)


@dataclass(frozen=True, repr=False)
class FederatedPlan(AnyPlan, Terms):
    """Everything public about a federated calibration: who, when, what is promised (see `Terms`), method and channel.

    Build it with `plan`.

    Parameters
    ----------
    method
        The name of the method: one of `confide.federated.protocols.PROTOCOLS`.
    protocol
        What every silo draws, and what becomes of it.
    channel
        How the silos' vectors are added.
    unused
        Fields that a plan states although its method does not have them: they mean nothing but belong to its digest.
    coordinator
        Name and keys of who signed the plan, stated by `sign`; None before that, and in plans of version 0.1.
    """

    by = None

    method: str
    protocol: Method
    channel: Channel
    unused: tuple[tuple[str, Any], ...] = ()
    coordinator: Silo | None = field(default=None, kw_only=True, compare=False)

    @property
    def asks(self) -> Sequence["FederatedPlan"]:
        """Itself."""
        return (self,)

    @property
    def names(self) -> tuple[Any, ...]:
        """Nothing to tell apart."""
        return (None,)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: answers name it."""
        return digest(self.fields())

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What a silo is asked, what it pays and what is promised, (name, value) each."""
        size = "public" if self.silos[0].size is not None else "secret"
        delta = "" if self.delta is None else f", delta {self.delta:g}"
        pays = str(self.privacy()) if self.protocol.private else "everything: its answer is not private"
        rows = [
            ("method", self.method),
            ("score", self.score or "not stated"),
            ("asked for", f"coverage {float(self.level):g}{delta}"),
            ("a silo pays at most", pays),
            ("candidate thresholds", self.candidates.description),
            ("silos", f"{len(self.silos)}, their numbers of records {size}"),
            ("may be missing", f"{self.dropouts}; " + _MISSING[self.missing]),
            ("may lie", str(self.liars)),
            ("promised", self.assumed or "nothing"),
        ]
        if (collude := colluders(self)) is not None:
            rows.append((self.protocol.relies_for, f"the other silos: {collude}"))
        if (opened := openers(self)) is not None:
            rows.append(("the sum is opened by", opened))
        rows += self.words
        if self.classes is not None:
            rows.append(("classes", class_list(self.classes)))
        rows += [(ABOUT[key].lower(), text) for key, text in self.about.items()]
        return [*rows, ("answers until", self.closes or "any time"), ("session", self.session), ("plan", self.digest)]

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is unusual about the level and the failure probability."""
        return unusual(self.alpha, self.delta)

    @property
    def promise_lines(self) -> list[str]:
        """What is promised, for all numbers of answers."""
        return [f"{number} answer{'' if number == '1' else 's'}: {words}" for number, words in ranges(self.promises())]

    def loss(self, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""
        return self.protocol.loss(self, i)

    def privacy(self, answered: Collection[int] | None = None) -> PrivacyStatement:
        """The loss of one record anywhere: silos hold different records, so the largest loss of a silo counts."""
        return self.protocol.privacy(self, self._who(answered))

    def certify(self, answered: Collection[int] | None = None) -> tuple[int, Guarantee]:
        """Which of the answers becomes the threshold, and what is promised, for the silos that answered.

        Parameters
        ----------
        answered
            Positions of the silos that answered; by default all.

        Returns
        -------
        k, guarantee
            The k-th smallest of all answers, liars' answers included; if k exceeds their number the threshold is
            +inf. k = 0 for methods that do not sort replies.
        """
        return self.certified(self._who(answered))[0]

    def promises(self) -> dict[int, Promise]:
        """What is promised, by the number of answers, from all silos down to one; or for all silos, if all must."""
        return self.protocol.promises(self, self.channel.numbers(self))

    def fields(self) -> dict[str, Any]:
        """As JSON values: one flat object, with a value for the fields that method and channel do not have."""
        return {
            **dict.fromkeys(_ORDER),
            **VOID,
            **dict(self.unused),
            **write_fields({**self.protocol.fields(), **self.channel.fields()}, len(self.silos)),
            **shapes.write_shape(self, _TERMS),
            "method": self.method,
            **({} if self.coordinator is None else {"coordinator": self.coordinator.fields()}),
        }

    def sign(self, coordinator: SiloKeys) -> str:
        """The plan as a signed JSON message, which names its coordinator, read back as every silo will read it.

        Raises
        ------
        InputError
            If silos could not read it, or would read another plan.
        """
        stated = replace(self, coordinator=coordinator.face()) if self.signed else self
        text = seal("plan", stated.fields(), coordinator.signing)
        try:
            read, _ = FederatedPlan.read(text)
        except Refusal as refusal:
            raise InputError("plan", f"must be one that silos can read, and they would refuse it: {refusal}") from None
        if read != stated:
            raise InputError("plan", "must be read as it is", got="candidates that their recipe does not make")
        refuse_too_long(text, self)
        return text

    @classmethod
    def from_fields(cls, content: Mapping[str, Any]) -> "FederatedPlan":
        """The inverse of `fields`.

        Raises
        ------
        Refusal
            `malformed`.
        """
        if not content.keys() >= set(_ORDER):
            raise Refusal("malformed", "the plan lacks fields; ask for the original")
        with fields_of("plan", content) as fields:
            name = one_of("method", fields.read("method", shapes.TEXT), METHODS)
            terms = _read_terms(fields)
            row = PROTOCOLS[name]
            row.check(terms)
            channel = row.channel(terms).read(fields, terms)
            protocol = row.draws.read(fields, terms, channel)
            channel.refuse_narrow(protocol.bits(terms))
            channel.refuse_wide(terms, name, protocol.serves)
            coordinator = Silo.of(fields.read("coordinator", shapes.OBJECT)) if "coordinator" in fields else None
            unused = read_unused(fields, terms)
            made = cls(
                **vars(terms),
                method=name,
                protocol=protocol,
                channel=channel,
                unused=unused,
                coordinator=coordinator,
            )
            losses = [made.loss(i) for i in range(len(made.silos))] if protocol.private else []  # may overflow
        if max(losses, default=0.0) > (made.epsilon or 0.0):
            raise Refusal("malformed", "the plan claims a smaller privacy loss than its mechanisms have")
        return made

    @classmethod
    def read(cls, text: str) -> tuple["FederatedPlan", Envelope]:
        """A signed plan, and who signed it.

        Raises
        ------
        Refusal
            `malformed` or `altered`.
        """
        envelope = unseal("plan", text)
        plan = cls.from_fields(envelope.content)
        if plan.signed != (plan.coordinator is not None):
            raise Refusal("malformed", "the plan must name its coordinator, and sign its silos; ask for the original")
        if plan.coordinator is not None and plan.coordinator.signing != envelope.signer:
            raise Refusal("altered", "the plan is signed by another key than its coordinator's; ask for the original")
        return plan, envelope

    def _who(self, answered: Collection[int] | None) -> list[int]:
        return sorted(range(len(self.silos)) if answered is None else set(answered))


_MISSING = {
    "independent": "whether a silo answers must not depend on its scores",
    "arbitrary": "whether a silo answers may depend on its scores",
}


def _read_terms(fields: Fields) -> Terms:
    stated = {name: fields.pop(name) for name in _TERMS if name in fields}
    values = shapes.read_shape(Fields(fields.path, stated), _TERMS)
    about = values.pop("about")
    return Terms(**values, about=about or {})


def _candidate_fields(candidates: Candidates) -> dict[str, Any]:
    """How the candidates were made; their values where a recipe does not tell them."""
    recipe = dict(candidates.recipe)
    return recipe if recipe["kind"] in BUILDERS else {"kind": "of", "values": candidates.edges.tolist()}


def _read_candidates(fields: Mapping[str, Any]) -> Candidates:
    if fields.get("kind") in BUILDERS:
        made = Candidates.made_by(fields)
        refuse_contradiction(made.recipe != fields)
        return made
    if fields.get("kind") != "of":
        raise Refusal("malformed", "the plan names candidates of an unknown kind")
    if set(fields) != {"kind", "values"}:
        raise Refusal("malformed", "the plan describes its candidates wrongly")
    return Candidates.of(fields["values"])


_TERMS: shapes.Shape = {
    "alpha": shapes.LEVEL,
    "delta": shapes.nullable(
        shapes.Field("a number in (0, 1)", (float,), lambda value: float(exact_level("delta", value)))
    ),
    "epsilon": shapes.nullable(shapes.Field("a privacy loss", (float, int), partial(privacy_loss, "epsilon"))),
    "score": shapes.nullable(shapes.Field("the name of a score", (str,), lambda name: score_kind(name).name)),
    "candidates": shapes.Field("candidates", (dict,), _read_candidates, _candidate_fields),
    "silos": shapes.listed(SILO),
    "liars": shapes.INTEGER,
    "dropouts": shapes.INTEGER,
    "missing": shapes.choice(*MISSING),
    "population": shapes.choice(*POPULATIONS),
    "session": shapes.TEXT,
    "closes": shapes.nullable(shapes.Field("a time", (str,), lambda text: write_time(read_time(text)))),
    **WORDS,
}
"""The terms of a plan; `_ORDER` and the method's fields stand before them in a file."""
