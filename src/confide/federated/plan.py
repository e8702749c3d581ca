"""The plan of a federated calibration: public, signed, computed before any data are used; JSON.

A plan fixes every parameter that the silos use, down to the last integer. So a silo can compute its privacy loss, and
every reader can compute the coverage for any set of silos that answer. `planning.py` makes plans. A plan that is read
is not trusted: every field is checked, and so is their consistency.

The rows that describe a plan for people are here, too: they are the same wherever a plan is printed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import accumulate, groupby
from typing import Any

import numpy as np

from confide.candidates import BUILDERS, Candidates
from confide.core import ABOUT, WORDS, By, class_list, unusual
from confide.errors import InputError
from confide.federated.envelope import Envelope, digest, fields_of, read_time, sign_message, verify_message, write_time
from confide.federated.keys import SILO, Silo, SiloKeys, fingerprint, roster
from confide.federated.protocols import METHODS, PROTOCOLS, Channel, Counts, Method, Promise, Shared
from confide.federated.protocols.plan_fields import UNUSED_DEFAULTS, check_unused, refuse_contradiction, write_fields
from confide.federated.refusals import Refusal
from confide.federated.release_size import check_length
from confide.federated.terms import MISSING, POPULATIONS, Terms
from confide.guarantee import Guarantee, silos_text
from confide.mechanisms import PrivacyStatement
from confide.scores import SCORE
from confide.support import Described, Fields, Section, exact_level, one_of, privacy_loss, shapes


class AnyPlan(Described):
    """A plan that one message answers, for one charge, with one part (`single_plans`) for each threshold."""

    by: By | None
    """What distinguishes the parts: levels, groups, classes or sides; None for one threshold."""
    method: str
    """Name of the method, the same for all parts."""
    protocol: Method
    """The method's parameters for the first part; the others are of the same kind."""
    channel: Channel
    """How the silos' vectors are added, the same for all parts."""
    silos: tuple[Silo, ...]
    """The invited silos."""
    session: str
    """Random identifier, used once."""
    coordinator: Silo | None
    """The coordinator that signed the plan; None before it is signed."""

    @property
    def digest(self) -> str:
        """SHA-256 of the plan, which answers state."""
        raise NotImplementedError

    def closed(self, now: datetime) -> bool:
        """Whether answers made at this time are late."""
        return Terms.closed(self.single_plans[0], now)

    @property
    def single_plans(self) -> Sequence["FederatedPlan"]:
        """The parts: a plan of one threshold for each level, group, class or side."""
        raise NotImplementedError

    @property
    def names(self) -> tuple[Any, ...]:
        """The names of the parts: a level, a group or class, the score of a side, or None."""
        raise NotImplementedError

    @property
    def drawn_plans(self) -> Sequence["FederatedPlan"]:
        """The parts for which silos draw a vector: one for all levels of noisy counts, else every part."""
        return self.single_plans[:1] if self.by == "level" and self.protocol.one_draw else self.single_plans

    @property
    def width(self) -> int:
        """The total length of one silo's vectors."""
        return len(self.drawn_plans) * self.single_plans[0].candidates.size

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The request, its privacy loss and its guarantee as (name, value) rows."""
        raise NotImplementedError

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about unusual parameters."""
        raise NotImplementedError

    @property
    def assumed(self) -> str:
        """The guarantee's assumption about the silos or the new record."""
        return silos_text(self.protocol.about_silos(self.single_plans[0]))

    @property
    def method_rows(self) -> list[tuple[str, str]]:
        """Additional rows of the method, (name, value) each."""
        return self.protocol.rows(self.single_plans[0])

    @property
    def promise_lines(self) -> list[str]:
        """The guarantees by number of answers: for each of several levels, and once for all groups."""
        raise NotImplementedError

    def position(self, name: str) -> int:
        """The position of a silo; raises a `Refusal` with the code `foreign` if there is none."""
        return Terms.position(self.single_plans[0], name)

    def privacy(self, answered: Collection[int] | None = None) -> PrivacyStatement:
        """The loss of one record: silos hold different records, so it is the largest loss of a silo."""
        raise NotImplementedError

    def loss(self, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""
        return self.privacy([i]).epsilon

    def sign(self, coordinator: SiloKeys) -> str:
        """The plan as a signed JSON message. It is read back to check that silos can read it."""
        raise NotImplementedError

    def message(self, own: int, counts: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """The message of silo `own`, drawn once, as JSON values.

        `counts` has shape (m,), for groups and sides (parts, m).
        """
        rows = counts if counts.ndim == 2 else [counts] * len(self.drawn_plans)
        drawn = [ask.protocol.draw(ask, own, row)[np.newaxis] for ask, row in zip(self.drawn_plans, rows, strict=True)]
        first, of_each = self.single_plans[0], self.by is not None and self.channel.single_replies
        if of_each:
            return {"replies": [self.channel.send(first, own, one, agreement, context) for one in drawn]}
        return self.channel.send(first, own, np.concatenate(drawn), agreement, context)

    def read_message(self, i: int, fields: Fields) -> Any:
        """Read the content of silo i's message; raises a `Refusal` with the code `malformed` or `out-of-range`."""
        first = self.single_plans[0]
        if not self.channel.single_replies:
            return self.channel.read_message(first, fields, len(self.drawn_plans))
        if self.by is None:
            return first.channel.read_message(first, fields, 1)
        chosen = []
        for ask, reply in zip(self.drawn_plans, _replies(fields, len(self.drawn_plans)), strict=True):
            with fields_of("reply", reply) as own:
                chosen.append(ask.channel.read_message(ask, own, 1))
        return tuple(chosen)

    def add(self, sent: Mapping[int, Any]) -> Counts:
        """The sum of the silos' messages, given by position; shape (draws, m)."""
        total = self.channel.add(self.single_plans[0], sent, len(self.drawn_plans))
        if not self.channel.single_replies:
            self.check_total(sorted(sent), total)
        return total

    def check_total(self, who: Sequence[int], total: Counts) -> None:
        """Raise a `Refusal` (`implausible`) for a sum that the vectors of honest silos cannot have."""
        for ask, row in zip(self.drawn_plans, total, strict=True):
            ask.protocol.check_total(ask, who, row)

    def certified(self, who: Sequence[int]) -> list[tuple[int, Guarantee]]:
        """The k and the guarantee of every part (see `FederatedPlan.certify`); the one plan of all groups once."""
        self.channel.check_answers(self.single_plans[0], who)
        found = {id(ask): ask for ask in self.single_plans}
        certified = {place: ask.protocol.certify(ask, who) for place, ask in found.items()}
        return [certified[id(ask)] for ask in self.single_plans]

    def thresholds(self, who: Sequence[int], total: Counts, ks: Sequence[int]) -> list[float]:
        """The thresholds from the sum of these silos' vectors, shape (draws, m), with the k of each part."""
        rows = total if len(total) == len(self.single_plans) else [total[0]] * len(self.single_plans)
        each = zip(self.single_plans, rows, ks, strict=True)
        found = [ask.protocol.read_off(ask, who, row, k) for ask, row, k in each]
        return list(accumulate(found, max)) if self.by == "level" else found  # nested, and coverage only rises

    def _section(self) -> Section:
        return Section(
            "Plan of a federation",
            "federated plan; reading it costs no privacy budget",
            warnings=tuple(self.remarks),
            parts=(Section("", facts=tuple(self.rows)),),
            notes=tuple(f"  {line}" for line in self.promise_lines),
        )

    def _brief(self) -> str:
        rows = dict(self.rows)
        silos = f"{rows['silos'].partition(',')[0]} silos"
        return f"{rows['method']}, {rows['requested']}, {silos}, each answer: {rows['privacy of an answer']}"


def identity_rows(plan: AnyPlan, *, silos: bool) -> list[tuple[str, str]]:
    """The fingerprints of coordinator and silos, and one number for all of them, if the plan states them."""
    if plan.coordinator is None:
        return []
    rows = [(f"coordinator {plan.coordinator.name}", fingerprint(plan.coordinator.identity))]
    if silos:
        rows += [(f"silo {silo.name}", fingerprint(silo.identity) + _records(silo)) for silo in plan.silos]
        rows += [("roster, all of them", roster_number([plan.coordinator, *plan.silos]))]
    return rows


def roster_number(participants: Iterable[Silo]) -> str:
    """One number for coordinator and silos, longer than that of one of them: see `confide.federated.fingerprint`."""
    return fingerprint(roster(participants), groups=12)


def _records(silo: Silo) -> str:
    return "" if silo.size is None else f", {silo.size} records"


def collusion_text(plan: AnyPlan) -> str | None:
    """How many colluding silos the privacy of an answer withstands, in words; None if it relies on no other silo."""
    count = plan.channel.colluders
    if count is None:
        return None
    who = f"at most {count} of the {len(plan.silos)} silos" if count else "no silo"
    return f"{who} may collude with the coordinator"


def share_holders_text(plan: AnyPlan) -> str | None:
    """How many share holders open the sum by a second message, in words; None without a second message."""
    if not isinstance(plan.channel, Shared):
        return None
    return f"{plan.channel.needed} of {len(plan.channel.openers)} silos, by a second message that costs nothing"


def promise_ranges(promises: Mapping[int, Promise]) -> Iterator[tuple[str, str]]:
    """Ranges of numbers of answers with the same guarantee, the largest numbers first, and its text."""
    for words, numbers in groupby(promises, key=lambda answers: _promised(promises[answers])):
        most, *others = numbers
        yield f"{others[-1]} to {most}" if others else f"{most}", words


def _promised(promise: Promise) -> str:
    if promise.infinite == "always":
        return "the threshold +inf"
    covers = f"coverage at least {promise.coverage:.6g}"
    return covers + (", perhaps by the threshold +inf" if promise.infinite == "perhaps" else "")


_ORDER = (
    *("method", "alpha", "delta", "epsilon", "score", "candidates", "silos", "targets", "rate", "left", "right"),
    *("scale", "liars", "dropouts", "missing", "population", "colluding", "bits", "n_min", "n_typical"),
    *("published_k", "session", "closes"),
)


def _replies(fields: Fields, count: int) -> list[dict[str, Any]]:
    replies: tuple[dict[str, Any], ...] = fields.read("replies", shapes.listed(shapes.OBJECT))
    if len(replies) != count:
        raise Refusal("malformed", "the answer must have one reply for each of the plans")
    return list(replies)


@dataclass(frozen=True, repr=False)
class FederatedPlan(AnyPlan, Terms):
    """The public plan of a federated calibration: its terms (see `Terms`), method and channel.

    Build it with `plan`.

    Parameters
    ----------
    method
        The name of the method: one of `confide.federated.protocols.PROTOCOLS`.
    protocol
        The method's parameters: what every silo draws, and how the threshold follows.
    channel
        How the silos' vectors are added.
    coordinator
        Name and keys of the coordinator that signed the plan, stated by `sign`; None before that.
    """

    by = None

    method: str
    protocol: Method
    channel: Channel
    coordinator: Silo | None = field(default=None, kw_only=True, compare=False)

    @property
    def single_plans(self) -> Sequence["FederatedPlan"]:
        """The plan itself, its only part."""
        return (self,)

    @property
    def names(self) -> tuple[Any, ...]:
        """One part without a name."""
        return (None,)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan, which answers state."""
        return digest(self.fields())

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The request, its privacy loss and its guarantee as (name, value) rows."""
        size = "public" if self.silos[0].size is not None else "secret"
        delta = "" if self.delta is None else f", delta {self.delta:g}"
        rows = [
            ("method", self.method),
            ("score", self.score or "not stated"),
            ("requested", f"coverage {float(self.level):g}{delta}"),
            ("privacy of an answer", str(self.privacy())),
            ("candidate thresholds", self.candidates.description),
            ("silos", f"{len(self.silos)}, their numbers of records {size}"),
            *self.trust_rows,
        ]
        if self.classes is not None:
            rows.append(("classes", class_list(self.classes)))
        rows += [(ABOUT[key], text) for key, text in self.about.items()]
        return [*rows, ("answers until", self.closes or "any time"), ("session", self.session), ("plan", self.digest)]

    @property
    def trust_rows(self) -> list[tuple[str, str]]:
        """The conditions of the guarantee and of privacy, and the settings of the method, as (name, value) rows."""
        rows = [
            ("silos that may be missing", f"{self.dropouts}; " + _MISSING[self.missing]),
            ("Byzantine silos", f"at most {self.liars}"),
            ("guarantee", self.assumed),
        ]
        if (collude := collusion_text(self)) is not None:
            rows.append((self.protocol.reliance_label, f"the other silos: {collude}"))
        if (opened := share_holders_text(self)) is not None:
            rows.append(("the sum is opened by", opened))
        return rows + self.method_rows

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about an unusual level or failure probability."""
        return unusual(self.alpha, self.delta)

    @property
    def promise_lines(self) -> list[str]:
        """The guarantees for all numbers of answers."""
        return [
            f"{number} answer{'' if number == '1' else 's'}: {words}"
            for number, words in promise_ranges(self.promises())
        ]

    def loss(self, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""
        return self.protocol.loss(self, i)

    def privacy(self, answered: Collection[int] | None = None) -> PrivacyStatement:
        """The loss of one record: silos hold different records, so it is the largest loss of a silo."""
        return self.protocol.privacy(self, self._who(answered))

    def certify(self, answered: Collection[int] | None = None) -> tuple[int, Guarantee]:
        """The rank k of the answer that becomes the threshold, and the guarantee, for the silos that answered.

        Parameters
        ----------
        answered
            Positions of the silos that answered; by default all.

        Returns
        -------
        k, guarantee
            The threshold is the k-th smallest of all answers, those of Byzantine silos included; if k exceeds their
            number it is +inf. k = 0 for sums of counts.
        """
        return self.certified(self._who(answered))[0]

    def promises(self) -> dict[int, Promise]:
        """The guarantee by number of answers, from all silos down to the least number that gives a threshold."""
        return self.protocol.promises(self, self.channel.numbers(self))

    def fields(self) -> dict[str, Any]:
        """The plan as one flat object of JSON values, with a value for fields that method and channel do not have."""
        return {
            **dict.fromkeys(_ORDER),
            **UNUSED_DEFAULTS,
            **write_fields({**self.protocol.fields(), **self.channel.fields()}, len(self.silos)),
            **shapes.write_shape(self, _TERMS),
            "method": self.method,
            **({} if self.coordinator is None else {"coordinator": self.coordinator.fields()}),
        }

    def sign(self, coordinator: SiloKeys) -> str:
        """The plan as a signed JSON message that names its coordinator. It is read back as every silo will read it.

        Raises
        ------
        InputError
            If silos could not read it, or would read another plan.
        """
        stated = replace(self, coordinator=coordinator.public_keys())
        text = sign_message("plan", stated.fields(), coordinator.signing)
        try:
            read, _ = FederatedPlan.read(text)
        except Refusal as refusal:
            raise InputError("plan", f"must be readable by silos, which would reject it: {refusal}") from None
        if read != stated:
            raise InputError("plan", "must be read as it is", got="candidates that do not follow from their recipe")
        check_length(text, self)
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
            raise Refusal("malformed", "the plan lacks fields; request the original")
        with fields_of("plan", content) as fields:
            name = one_of("method", fields.read("method", shapes.TEXT), METHODS)
            terms = _read_terms(fields)
            row = PROTOCOLS[name]
            row.check(terms)
            channel = row.channel(terms).read(fields, terms)
            protocol = row.draws.read(fields, terms, channel)
            channel.check_bits(protocol.bits(terms))
            channel.check_length(terms, name, protocol.candidate_advice)
            coordinator = Silo.of(fields.read("coordinator", shapes.OBJECT)) if "coordinator" in fields else None
            check_unused(fields, terms)
            made = cls(**vars(terms), method=name, protocol=protocol, channel=channel, coordinator=coordinator)
            losses = [made.loss(i) for i in range(len(made.silos))]  # may overflow
        if max(losses, default=0.0) > made.epsilon:
            raise Refusal("malformed", "the plan claims a smaller privacy loss than its mechanisms have")
        return made

    @classmethod
    def read(cls, text: str) -> tuple["FederatedPlan", Envelope]:
        """Read a signed plan; the plan and its envelope with the signer.

        Raises
        ------
        Refusal
            `malformed` or `altered`.
        """
        envelope = verify_message("plan", text)
        plan = cls.from_fields(envelope.content)
        if plan.coordinator is None or any(silo.signature is None for silo in plan.silos):
            raise Refusal(
                "malformed", "the plan must name its coordinator and contain signed silos; request the original"
            )
        if plan.coordinator.signing != envelope.signer:
            raise Refusal("altered", "the plan is signed with another key than its coordinator's; request the original")
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
    """The recipe of the candidates, or their values if there is no such recipe."""
    recipe = dict(candidates.recipe)
    return recipe if recipe["kind"] in BUILDERS else {"kind": "of", "values": candidates.edges.tolist()}


def _read_candidates(fields: Mapping[str, Any]) -> Candidates:
    if fields.get("kind") in BUILDERS:
        made = Candidates.from_recipe(fields)
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
    "epsilon": shapes.Field("a privacy loss", (float, int), partial(privacy_loss, "epsilon")),
    "score": shapes.nullable(SCORE),
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
"""The terms of a plan. In a file, `_ORDER` and the method's fields precede them."""
