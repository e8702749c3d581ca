"""The plan of a federated calibration: public, signed, computed before any data is seen.

It fixes what every silo will run, down to the last integer, so that a silo can state its privacy loss and anybody the
coverage for whichever silos answer. `planning.py` makes plans, `promises.py` says what they guarantee, `plan_json.py`
writes and reads them.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias

from confide.candidates import Candidates
from confide.errors import InputError, InputTypeError
from confide.federated.clock import read_time
from confide.federated.envelope import Envelope, digest, seal, unseal
from confide.federated.keys import Silo, SiloKeys
from confide.federated.methods import NOT_PRIVATE, ExactRank, Mechanism, Method, reply_law
from confide.federated.order_statistics import ReplyLaw
from confide.federated.protocols.sorted_replies import Promise, certify, promises
from confide.federated.published_private import PublishedQuantile
from confide.federated.refusals import Refusal
from confide.guarantee.statement import Guarantee
from confide.mechanisms.privacy import Neighbors, PrivacyStatement
from confide.mechanisms.slopes import Slopes
from confide.selection.selector import Selector
from confide.support.checks import one_of

Missing: TypeAlias = Literal["independent", "arbitrary"]
"""`independent`: whether a silo answers does not depend on its scores. `arbitrary`: it may, in any way."""

Population: TypeAlias = Literal["common", "mixture"]
"""`common`: the new record is like the records of every silo. `mixture`: it comes from a silo drawn by size, and silos
may differ (secure-sum only)."""

MISSING: tuple[Missing, ...] = ("independent", "arbitrary")
POPULATIONS: tuple[Population, ...] = ("common", "mixture")
MOST_SILOS = 10_000
MOST_CANDIDATES = 2**16
MOST_SUMMED = 2**14
"""Candidates of a secure sum: its messages have a number for each."""


@dataclass(frozen=True)
class FederatedPlan:
    """Everything public about a federated calibration. Build it with `plan`.

    Parameters
    ----------
    method
        See `confide.federated.methods`.
    alpha, delta
        Miscoverage level; with delta the promise is training-conditional.
    epsilon
        Privacy loss per record of a silo, None for methods that are not private. For `secure-sum` it is the loss of
        what is opened, against a coordinator that colludes with up to `colluding` silos.
    score
        Name of the conformity score, or None.
    candidates
        Public candidate thresholds.
    silos
        Who is invited, with public keys and public sizes (or None: secret).
    targets
        One target rank per silo; one alone for `secure-sum`.
    rate
        How fast the target grows with n + 1 for silos of secret size, else 0.
    left, right, scale, selector
        The slopes and the noise of `private-qq`; `scale` is also the noise scale of `secure-sum`.
    liars
        How many silos may lie in the worst way (not for `secure-sum`).
    dropouts
        With how many silos missing the threshold is still planned to be finite.
    missing
        What is assumed about silos that do not answer.
    population
        Whom the promise is about.
    colluding
        How many silos may pool what they know with the coordinator (`secure-sum`).
    bits
        Masks are modulo 2**bits (`secure-sum`).
    n_min, n_typical
        For secret sizes: least and typical number of records per silo.
    published_k
        For `fedcp2-qq`: which reply the publication makes the threshold, if all silos answer; else 0.
    session
        Random, used once.
    closes
        UTC time in ISO format after which answers are late, or None.
    """

    method: Method
    alpha: Fraction
    delta: float | None
    epsilon: float | None
    score: str | None
    candidates: Candidates
    silos: tuple[Silo, ...]
    targets: tuple[Fraction, ...]
    rate: Fraction
    left: int
    right: int
    scale: float
    selector: Selector
    liars: int
    dropouts: int
    missing: Missing
    population: Population
    colluding: int
    bits: int
    n_min: int
    n_typical: int
    published_k: int
    session: str
    closes: str | None

    @property
    def level(self) -> Fraction:
        """1 - alpha."""
        return 1 - self.alpha

    @property
    def neighbors(self) -> Neighbors:
        """`replace_one` if sizes are public, else `add_remove`."""
        return "add_remove" if self.silos[0].size is None else "replace_one"

    @property
    def size(self) -> int | None:
        """The public number of records of all silos, or None."""
        return None if self.silos[0].size is None else sum(silo.size or 0 for silo in self.silos)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan: answers name it."""
        from confide.federated.plan_json import plan_fields

        return digest(plan_fields(self))

    def position(self, name: str) -> int:
        """The place of a silo in the plan.

        Raises
        ------
        Refusal
            `foreign`.
        """
        for i, silo in enumerate(self.silos):
            if silo.name == name:
                return i
        raise Refusal("foreign", f"the plan does not name a silo {name[:64]!r}; check the roster")

    def mechanism(self, i: int) -> Mechanism:
        """What silo i runs on its counts (not for `secure-sum`)."""
        target, n = self.targets[i], self.silos[i].size
        if self.method in NOT_PRIVATE:
            return ExactRank(n or 0, int(target))
        if self.method == "fedcp2-qq":
            return PublishedQuantile(n or 0, int(target), self.epsilon or 0.0)
        return Slopes(self.rate, target, self.left, self.right, self.scale, self.selector)

    def loss(self, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""
        if self.method in NOT_PRIVATE:
            return math.inf
        if self.method == "secure-sum":
            exact = Fraction(2) / Fraction(self.scale)
            return float(exact) if Fraction(float(exact)) >= exact else math.nextafter(float(exact), math.inf)
        mechanism = self.mechanism(i)
        if isinstance(mechanism, Slopes):
            return mechanism.add_remove if self.silos[i].size is None else mechanism.replace_one
        return self.epsilon or 0.0

    def reply(self, i: int) -> ReplyLaw:
        """The law that the reply of silo i dominates."""
        return reply_law(self.mechanism(i), self.silos[i].size, self.n_min, self.candidates.size)

    def privacy(self, answered: Collection[int] | None = None) -> PrivacyStatement:
        """The loss of one record anywhere: silos hold different records, so the largest loss of a silo counts."""
        who = range(len(self.silos)) if answered is None else answered
        loss = max((self.loss(i) for i in who), default=0.0)
        replace_one = loss
        if self.neighbors == "add_remove":
            mechanisms = [self.mechanism(i) for i in who]
            replace_one = max((m.replace_one for m in mechanisms if isinstance(m, Slopes)), default=0.0)
        rho = loss**2 / 8 if self.method == "private-qq" and self.selector == "exponential" else None
        return PrivacyStatement(
            self.neighbors, loss, 1, loss if self.neighbors == "add_remove" else None, replace_one, rho
        )

    def certify(self, answered: Collection[int] | None = None) -> tuple[int, Guarantee]:
        """Which answer becomes the threshold, and what is promised, for the silos that answered: see `promises.py`."""
        return certify(self, answered)

    def promises(self) -> dict[int, Promise]:
        """What is promised for every number of answers: see `promises.py`."""
        return promises(self)

    def sign(self, coordinator: SiloKeys) -> str:
        """The plan as a signed JSON message."""
        from confide.federated.plan_json import plan_fields

        return seal("plan", plan_fields(self), coordinator.signing)

    @classmethod
    def read(cls, text: str) -> tuple["FederatedPlan", Envelope]:
        """A signed plan, and who signed it.

        Raises
        ------
        Refusal
            `malformed` or `altered`.
        """
        from confide.federated.plan_json import read_plan

        envelope = unseal("plan", text)
        return read_plan(envelope.content), envelope

    def closed(self, now: datetime) -> bool:
        """Whether answers made at this time are late."""
        return self.closes is not None and now > read_time(self.closes)


def check_population(population: Population | None, method: Method) -> Population:
    """The population that a method serves; by default its own."""
    default: Population = "mixture" if method == "secure-sum" else "common"
    chosen = default if population is None else one_of("population", population, POPULATIONS)
    if chosen == "mixture" and method != "secure-sum":
        raise InputError("population must be 'common' for methods that sort replies; secure-sum serves a mixture")
    return chosen


def check_silos(silos: Sequence[Silo]) -> tuple[Silo, ...]:
    """Silos that can take part together: distinct, and all of public or all of secret size."""
    invited = tuple(silos)
    if not all(isinstance(silo, Silo) for silo in invited):
        raise InputTypeError("silos must be confide.federated.Silo objects")
    if not 1 <= len(invited) <= MOST_SILOS:
        raise InputError(f"silos must number from 1 to {MOST_SILOS}; found {len(invited)}")
    for part in ("name", "signing", "agreement"):
        if len({getattr(silo, part) for silo in invited}) < len(invited):
            raise InputError(f"silos must differ in their {part}; some agree")
    if len({silo.size is None for silo in invited}) > 1:
        raise InputError("silos must all state their sizes, or none of them")
    return invited
