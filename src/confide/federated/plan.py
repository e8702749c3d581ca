"""What plans say, for people: the same words and digits wherever they are printed.

The plan of a federated calibration: public, signed, computed before any data is seen; JSON.

It fixes what every silo will run, down to the last integer, so that a silo can state its privacy loss and anybody the
coverage for whichever silos answer. `planning.py` makes plans. What a plan says when it is read is not trusted: every
field is checked, and so is their fit.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Protocol

from confide.candidates import BUILDERS, Candidates
from confide.errors import InputError
from confide.federated.envelope import Envelope, digest, fields_of, read_time, seal, unseal, write_time
from confide.federated.keys import Silo, SiloKeys, fingerprint, roster
from confide.federated.protocols import METHODS, Counts, DealtVectors, FederatedProtocol, Promise, protocol_of
from confide.federated.protocols.protocol import VOID, read_unused, refuse_contradiction
from confide.federated.refusals import Refusal
from confide.federated.release_size import refuse_too_long
from confide.federated.terms import MISSING, POPULATIONS, Terms
from confide.guarantee import Guarantee, silos_text
from confide.mechanisms import PrivacyStatement
from confide.planning import unusual
from confide.releases import ABOUT, class_list, read_words, write_words
from confide.scores import score_kind
from confide.support import Fields, Shown, aligned, exact_level, one_of, privacy_loss


class Planned(Protocol):
    """One plan, or several under one signature."""

    @property
    def silos(self) -> tuple[Silo, ...]:
        """Who is invited."""

    @property
    def coordinator(self) -> Silo | None:
        """Who signed it; None before that."""

    @property
    def protocol(self) -> FederatedProtocol:
        """What every silo runs."""


class ShownPlan(Shown):
    """A plan that shows itself: what is asked and paid, and what is promised for how many answers."""

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What a silo is asked, what it pays and what is promised, (name, value) each."""
        raise NotImplementedError

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is unusual about what is asked for."""
        raise NotImplementedError

    @property
    def promise_lines(self) -> list[str]:
        """What is promised for the numbers of answers; for each of several levels, and once for all groups."""
        raise NotImplementedError

    def __str__(self) -> str:
        promised = "\n".join(f"  {line}" for line in self.promise_lines)
        notes = "".join(f"{note}\n" for note in self.remarks)
        return f"{notes}federated plan; nothing is paid by looking at it\n{aligned(self.rows)}\n{promised}"

    def _brief(self) -> str:
        said = dict(self.rows)
        silos = f"{said['silos'].partition(',')[0]} silos"
        return f"{said['method']}, {said['asked for']}, {silos}, each pays at most {said['a silo pays at most']}"


def identity_rows(plan: Planned, *, silos: bool) -> list[tuple[str, str]]:
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


def colluders(plan: Planned) -> str | None:
    """How many colluding silos the privacy of an answer withstands; None if it relies on no other silo."""
    count = plan.protocol.colluders
    if count is None:
        return None
    who = f"at most {count} of the {len(plan.silos)} silos" if count else "no silo"
    return f"{who} may collude with the coordinator"


def openers(plan: Planned) -> str | None:
    """Who opens the sum by a second message; None if there is none."""
    if not isinstance(plan.protocol, DealtVectors):
        return None
    return f"{plan.protocol.needed} of {len(plan.protocol.openers)} silos, by a second message that costs nothing"


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
_SAME = ("method", "delta", "epsilon", "score", "liars", "dropouts", "missing", "population", "session", "closes")


@dataclass(frozen=True, repr=False)
class FederatedPlan(ShownPlan, Terms):
    """Everything public about a federated calibration: who, when, what is promised (see `Terms`), and one protocol.

    Build it with `plan`.

    Parameters
    ----------
    protocol
        What every silo runs and sends, and what becomes of it: one of `confide.federated.protocols`.
    unused
        Fields that a plan states although its protocol does not have them: they mean nothing but belong to its digest.
    coordinator
        Name and keys of who signed the plan, stated by `sign`; None before that, and in plans of version 0.1.
    """

    protocol: FederatedProtocol
    unused: tuple[tuple[str, Any], ...] = ()
    coordinator: Silo | None = field(default=None, kw_only=True, compare=False)

    @property
    def method(self) -> str:
        """The name of the protocol."""
        return self.protocol.method

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: answers name it."""
        return digest(self.fields())

    @property
    def assumed(self) -> str:
        """What its promise assumes of the silos, or of the new record, in words; empty if it promises nothing."""
        return silos_text(self.protocol.about_silos(self))

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
    def words(self) -> list[tuple[str, str]]:
        """What its protocol says beside, (name, value) each."""
        return self.protocol.words(self)

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
        return self.protocol.certify(self, self._who(answered))

    def promises(self) -> dict[int, Promise]:
        """What is promised, by the number of answers, from all silos down to one; or for all silos, if all must."""
        return self.protocol.promises(self)

    def message(self, own: int, counts: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """What silo `own` sends, as JSON values; see `FederatedProtocol.message`."""
        return self.protocol.message(self, own, counts, agreement, context)

    def read_message(self, i: int, fields: Fields) -> Any:
        """What silo i sent; refused as `malformed` or `out-of-range` if it cannot be that."""
        return self.protocol.read_message(self, i, fields)

    def fields(self) -> dict[str, Any]:
        """As JSON values: one flat object, with a value for the fields that the protocol does not have."""
        return {
            **dict.fromkeys(_ORDER),
            **VOID,
            **dict(self.unused),
            **self.protocol.fields(),
            **{name: getattr(self, name) for name in _SAME},
            "alpha": str(self.alpha),
            "candidates": _candidate_fields(self.candidates),
            "silos": [silo.fields() for silo in self.silos],
            **write_words(self.classes, self.about),
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
            raise InputError(f"plan must be one that silos can read, and they would refuse it: {refusal}") from None
        if read != stated:
            raise InputError("plan must be read as it is; found candidates that their recipe does not make")
        refuse_too_long(text, [self])
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
            name = one_of("method", fields.take("method", str), METHODS)
            terms = _read_terms(fields)
            method = protocol_of(name, terms.dropouts)
            method.check(terms)
            protocol = method.read(fields, terms)
            coordinator = Silo.of(fields.take("coordinator", dict)) if "coordinator" in fields else None
            unused = read_unused(fields, terms)
            made = cls(**vars(terms), protocol=protocol, unused=unused, coordinator=coordinator)
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
    silos = fields.take("silos", list)
    return Terms(
        alpha=exact_level("alpha", fields.take("alpha", str)),
        delta=fields.optional("delta", (float,), lambda value: float(exact_level("delta", value))),
        epsilon=fields.optional("epsilon", (float, int), lambda value: privacy_loss("epsilon", value)),
        score=fields.optional("score", (str,), lambda name: score_kind(name).name),
        candidates=_read_candidates(fields.take("candidates", dict)),
        silos=tuple(Silo.of(silo if isinstance(silo, dict) else {}) for silo in silos),
        liars=fields.take("liars", int),
        dropouts=fields.take("dropouts", int),
        missing=one_of("missing", fields.take("missing", str), MISSING),
        population=one_of("population", fields.take("population", str), POPULATIONS),
        session=fields.take("session", str),
        closes=fields.optional("closes", (str,), lambda text: write_time(read_time(text))),
        **read_words(fields),
    )


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
