"""The plan of a federated calibration: public, signed, computed before any data is seen.

It fixes what every silo will run, down to the last integer, so that a silo can state its privacy loss and anybody the
coverage for whichever silos answer.
"""

import math
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, TypeAlias

from confide.candidates import Candidates
from confide.checks import one_of, positive_integer, privacy_loss
from confide.errors import ConfideError, InputError, InputTypeError
from confide.federated import private_quantiles, published_private, secure_sum
from confide.federated.envelope import Envelope, digest, seal, take, unseal
from confide.federated.keys import Silo, SiloKeys
from confide.federated.methods import METHODS, NOT_PRIVATE, ExactRank, Mechanism, Method, reply_law
from confide.federated.noise_shares import noise_scale
from confide.federated.order_statistics import ReplyLaw
from confide.federated.published_private import PublishedQuantile
from confide.federated.quantile_of_quantiles import best_qq, best_qq_unequal, published_ranks
from confide.federated.refusals import Refusal
from confide.guarantee.statement import Guarantee
from confide.mechanisms.selector import SELECTORS, Selector
from confide.mechanisms.slopes import Slopes
from confide.privacy import Neighbors, PrivacyStatement
from confide.rationals import Level, exact_level
from confide.request import MOST_RECORDS
from confide.scores.kinds import score_kind

Missing: TypeAlias = Literal["independent", "arbitrary"]
"""`independent`: whether a silo answers does not depend on its scores. `arbitrary`: it may, in any way."""

Population: TypeAlias = Literal["common", "mixture"]
"""`common`: the new record is like the records of every silo. `mixture`: it comes from a silo drawn by size, and silos
may differ (secure-sum only)."""

MISSING: tuple[Missing, ...] = ("independent", "arbitrary")
POPULATIONS: tuple[Population, ...] = ("common", "mixture")
MOST_SILOS = 10_000
MOST_CANDIDATES = 2**16


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
        One target rank per silo (None: it answers +inf without touching its data); one alone for `secure-sum`.
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
    targets: tuple[Fraction | None, ...]
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
        return digest(self.fields())

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

    def mechanism(self, i: int) -> Mechanism | None:
        """What silo i runs on its counts (not for `secure-sum`); None: it answers +inf without touching its data."""
        target, n = self.targets[i], self.silos[i].size
        if target is None:
            return None
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
        if mechanism is None:
            return 0.0
        if isinstance(mechanism, Slopes):
            return mechanism.add_remove if self.silos[i].size is None else mechanism.replace_one
        return self.epsilon or 0.0

    def reply(self, i: int) -> ReplyLaw:
        """The law that the reply of silo i dominates."""
        return reply_law(self.mechanism(i), self.silos[i].size, self.n_min, self.candidates.size)

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
        who = sorted(range(len(self.silos)) if answered is None else set(answered))
        if self.method == "secure-sum":
            return 0, self._summed_guarantee()
        if self.method == "fedcp-avg":
            return 0, self._guarantee(0.0, who)
        if self.missing == "arbitrary":  # the k-th of any subset is at least the k-th of all
            found = private_quantiles.certified_k(
                [self.reply(i) for i in range(len(self.silos))], self.level, self.delta
            )
        else:
            honest = len(who) - self.liars
            found = private_quantiles.certified_k([self.reply(i) for i in who], self.level, self.delta, honest)
        if found is None or found[0] + self.liars > len(who):
            return len(who) + 1, self._guarantee(1.0, who)
        return found[0] + self.liars, self._guarantee(found[1], who)

    def promises(self) -> dict[int, tuple[int, float]]:
        """For every number of answers the worst k and coverage over the silos that may be the ones to answer.

        Returns
        -------
        dict
            answers -> (k, coverage); k beyond the number of answers means the threshold +inf.
        """
        if self.method in ("secure-sum", "fedcp-avg"):
            k, guarantee = self.certify()
            return {len(self.silos): (k, guarantee.coverage)}
        replies = [self.reply(i) for i in range(len(self.silos))]
        table = {}
        for count in range(len(replies), 0, -1):
            honest = len(replies) if self.missing == "arbitrary" else count - self.liars
            found = private_quantiles.certified_k(replies, self.level, self.delta, honest)
            inf = found is None or found[0] + self.liars > count
            table[count] = (count + 1, 1.0) if found is None or inf else (found[0] + self.liars, found[1])
        return table

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

    def _guarantee(self, coverage: float, who: Sequence[int]) -> Guarantee:
        n = None if self.size is None else sum(self.silos[i].size or 0 for i in who)
        kind: Literal["marginal", "training_conditional"] = "marginal" if self.delta is None else "training_conditional"
        n_min = self.n_min if n is None else None
        return Guarantee(kind, min(coverage, float(self.level)) if coverage < 1 else 1.0, self.delta, n, n_min)

    def _summed_guarantee(self) -> Guarantee:
        m, n, target = len(self.silos), self.size or 0, int(self.targets[0] or 0)
        deficit = secure_sum.total_deficit(self.scale, m, m - self.colluding, self.candidates.size)
        if self.delta is None:
            extra = m if self.population == "mixture" else 1
            coverage = float(min(secure_sum.summed_coverage(n, target, deficit, extra), Fraction(1)))
        else:
            failure = secure_sum.summed_failure(n, target, deficit, float(self.level))
            coverage = float(self.level) if failure <= self.delta else 0.0
        return self._guarantee(coverage, range(m))

    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "method": self.method,
            "alpha": str(self.alpha),
            "delta": self.delta,
            "epsilon": self.epsilon,
            "score": self.score,
            "candidates": candidate_fields(self.candidates),
            "silos": [silo.fields() for silo in self.silos],
            "targets": [None if target is None else str(target) for target in self.targets],
            "rate": str(self.rate),
            "left": self.left,
            "right": self.right,
            "scale": self.scale,
            "selector": self.selector,
            "liars": self.liars,
            "dropouts": self.dropouts,
            "missing": self.missing,
            "population": self.population,
            "colluding": self.colluding,
            "bits": self.bits,
            "n_min": self.n_min,
            "n_typical": self.n_typical,
            "session": self.session,
            "closes": self.closes,
        }

    def sign(self, coordinator: SiloKeys) -> str:
        """The plan as a signed JSON message."""
        return seal("plan", self.fields(), coordinator.signing)

    @classmethod
    def read(cls, text: str) -> tuple["FederatedPlan", Envelope]:
        """A signed plan, and who signed it.

        Raises
        ------
        Refusal
            `malformed` or `altered`.
        """
        envelope = unseal("plan", text)
        return cls.of(envelope.content), envelope

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "FederatedPlan":
        """From JSON values, checking every field."""
        try:
            return _read(content)
        except Refusal:
            raise
        except (ConfideError, ValueError, ZeroDivisionError, OverflowError) as error:
            raise Refusal("malformed", f"the plan has a field that cannot be used: {error}") from None

    def closed(self, now: datetime) -> bool:
        """Whether answers made at this time are late."""
        return self.closes is not None and now > read_time(self.closes)


def plan(
    silos: Sequence[Silo],
    alpha: Level,
    epsilon: float | None = None,
    *,
    method: Method = "private-qq",
    score: str | None = None,
    candidates: Candidates | None = None,
    delta: Level | None = None,
    liars: int = 0,
    dropouts: int = 0,
    missing: Missing = "independent",
    population: Population | None = None,
    colluding: int | None = None,
    n_min: int = 1,
    n_typical: int | None = None,
    selector: Selector = "permute_and_flip",
    closes: datetime | None = None,
) -> FederatedPlan:
    """Plan a federated calibration: one message from each silo, then a threshold with a stated guarantee.

    Parameters
    ----------
    silos
        Who is invited; all of them with a public size, or all without (the sizes stay secret, `private-qq` only).
    alpha
        Miscoverage level in (0, 1).
    epsilon
        Privacy loss per record; left out for `fedcp-qq` and `fedcp-avg`, which are not private.
    method
        `"private-qq"`, `"secure-sum"`, `"fedcp-qq"`, `"fedcp2-qq"` or `"fedcp-avg"`.
    score, candidates
        As in `confide.calibrate`.
    delta
        Ask for a training-conditional promise instead of the marginal one.
    liars
        How many silos may send anything they like.
    dropouts
        Plan for a finite threshold with up to this many silos missing. If more are missing the promise still holds,
        by a threshold of +inf if need be. (`secure-sum` needs all its silos.)
    missing
        `"independent"`: whether a silo answers does not depend on its scores; `"arbitrary"`: no such assumption.
    population
        `"mixture"` (default for `secure-sum`) or `"common"` (all others).
    colluding
        For `secure-sum`: how many silos may pool their knowledge with the coordinator; by default fewer than half.
    n_min, n_typical
        For secret sizes: public lower bound on, and guess of, the number of records per silo.
    selector
        As in `confide.plan`.
    closes
        Answers made after this time are refused.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used, or no finite threshold can be promised with so few records.

    Examples
    --------
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> p = plan(silos, alpha=0.1, epsilon=5.0, candidates=Candidates.unit(100))
    >>> p.certify()[1].coverage, p.promises()[4][1] >= 0.9
    (0.9, True)
    """
    method = one_of("method", method, METHODS)
    silos = _check_silos(silos)
    level = 1 - exact_level("alpha", alpha)
    failure = None if delta is None else float(exact_level("delta", delta))
    chosen = score_kind(score).candidates() if candidates is None else candidates
    if not isinstance(chosen, Candidates):
        raise InputTypeError(f"candidates must be a confide.Candidates; found {type(chosen).__name__}")
    if chosen.size > MOST_CANDIDATES:
        raise InputError(f"candidates must number at most {MOST_CANDIDATES}; found {chosen.size}")
    if (epsilon is None) != (method in NOT_PRIVATE):
        raise InputError(
            f"epsilon must be {'left out' if method in NOT_PRIVATE else 'given'} for the method {method!r}"
        )
    secret = silos[0].size is None
    if secret and method != "private-qq":
        raise InputError(f"silos must state their sizes for the method {method!r}; only private-qq keeps them secret")
    if isinstance(liars, bool) or not isinstance(liars, int) or not 0 <= liars < len(silos):
        raise InputError(f"liars must be an integer from 0 to {len(silos) - 1}")
    if liars and method in ("secure-sum", "fedcp-avg"):
        raise InputError(f"liars must be 0 for the method {method!r}: one liar can move its threshold anywhere")
    if isinstance(dropouts, bool) or not isinstance(dropouts, int) or not 0 <= dropouts < len(silos) - liars:
        raise InputError(f"dropouts must be an integer from 0 to {len(silos) - liars - 1}")
    if dropouts and method == "secure-sum":
        raise InputError("dropouts must be 0 for the method 'secure-sum': it opens only with all its silos")
    n_min = positive_integer("n_min", n_min, most=MOST_RECORDS)
    draft = FederatedPlan(
        method=method,
        alpha=1 - level,
        delta=failure,
        epsilon=None if epsilon is None else privacy_loss("epsilon", epsilon),
        score=score,
        candidates=chosen,
        silos=silos,
        targets=(),
        rate=Fraction(0),
        left=1,
        right=1,
        scale=1.0,
        selector=one_of("selector", selector, SELECTORS),
        liars=liars,
        dropouts=dropouts,
        missing=one_of("missing", missing, MISSING),
        population=_population(population, method),
        colluding=0,
        bits=32,
        n_min=n_min,
        n_typical=positive_integer("n_typical", n_typical or max(n_min, 1000), most=MOST_RECORDS),
        session=secrets.token_hex(16),
        closes=None if closes is None else write_time(closes),
    )
    if method == "secure-sum":
        return _secure_sum(draft, colluding)
    if colluding is not None:
        raise InputError("colluding belongs to the method 'secure-sum': replies of the other methods are private alone")
    if method == "private-qq":
        return _private_qq(draft)
    return _published(draft)


def _private_qq(draft: FederatedPlan) -> FederatedPlan:
    m, epsilon = len(draft.silos), draft.epsilon or 0.0
    sure = m - draft.liars - draft.dropouts
    options: dict[str, Any] = {
        "delta": draft.delta,
        "honest": m if draft.missing == "arbitrary" else sure,
        "absent": draft.dropouts,
        "most_k": sure,
        "selector": draft.selector,
    }
    if draft.size is None:
        found = private_quantiles.best_private_qq_secret(
            m, draft.level, epsilon, draft.candidates.size, n_min=draft.n_min, n_typical=draft.n_typical, **options
        )
    else:
        sizes = [silo.size or 0 for silo in draft.silos]
        found = private_quantiles.best_private_qq(sizes, draft.level, epsilon, draft.candidates.size, **options)
    if found is None or found.mechanisms[0] is None:
        raise _too_few()
    one = found.mechanisms[0]
    targets = tuple(None if mechanism is None else mechanism.offset for mechanism in found.mechanisms)
    return replace(draft, targets=targets, rate=one.rate, left=one.left, right=one.right, scale=one.scale)


def _published(draft: FederatedPlan) -> FederatedPlan:
    sizes, m = [silo.size or 0 for silo in draft.silos], len(draft.silos)
    honest = m - draft.liars - draft.dropouts
    ranks: Sequence[int]
    if draft.method == "fedcp2-qq":
        if len(set(sizes)) > 1:
            raise InputError("silos must have equal sizes for the published method 'fedcp2-qq'; use private-qq")
        choice = published_private.best_published(m, sizes[0], draft.alpha, draft.epsilon or 0.0, draft.candidates.size)
        if choice is None:
            raise _too_few()
        ranks = (choice.rank,) * m
    elif draft.method == "fedcp-avg":
        ranks = published_ranks(sizes, draft.level)
    else:
        equal = len(set(sizes)) == 1
        best = best_qq(honest, sizes[0], draft.level) if equal else best_qq_unequal(sizes, draft.level)
        if best is None:
            raise _too_few()
        ranks = best.ranks[:1] * m if equal else best.ranks
    return replace(draft, targets=tuple(Fraction(rank) for rank in ranks))


def _secure_sum(draft: FederatedPlan, colluding: int | None) -> FederatedPlan:
    m, n = len(draft.silos), draft.size or 0
    if m < 2:
        raise InputError("silos must be at least two for the method 'secure-sum'")
    c = (m - 1) // 2 if colluding is None else colluding
    if isinstance(c, bool) or not isinstance(c, int) or not 0 <= c <= m - 1:
        raise InputError(f"colluding must be an integer from 0 to {m - 1}")
    if draft.delta is not None and draft.population == "mixture":
        raise InputError("delta needs population='common': the training-conditional promise is for i.i.d. records")
    scale = noise_scale(draft.epsilon or 0.0, 2)
    deficit = secure_sum.total_deficit(scale, m, m - c, draft.candidates.size)
    extra = m if draft.population == "mixture" else 1
    target = secure_sum.summed_target(n, draft.level, draft.delta, deficit, extra)
    if target is None:
        raise _too_few()
    bits = secure_sum.modulus_bits(n, scale, m, m - c)
    return replace(draft, targets=(Fraction(target),), scale=scale, colluding=c, bits=bits)


def _too_few() -> InputError:
    return InputError(
        "silos have too few records for a finite threshold with this promise; raise alpha or epsilon, use fewer "
        "candidates, or invite more silos"
    )


def _population(population: Population | None, method: Method) -> Population:
    default: Population = "mixture" if method == "secure-sum" else "common"
    chosen = default if population is None else one_of("population", population, POPULATIONS)
    if chosen == "mixture" and method != "secure-sum":
        raise InputError("population must be 'common' for methods that sort replies; secure-sum serves a mixture")
    return chosen


def _check_silos(silos: Sequence[Silo]) -> tuple[Silo, ...]:
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


def candidate_fields(candidates: Candidates) -> dict[str, Any]:
    """How the candidates were made; their values where a recipe does not tell them."""
    recipe = dict(candidates.recipe)
    if recipe["kind"] in ("of", "from_reference"):
        return {"kind": "of", "values": candidates.edges.tolist()}
    return recipe


def read_candidates(fields: Mapping[str, Any]) -> Candidates:
    """The inverse of `candidate_fields`."""
    options = {name: value for name, value in fields.items() if name != "kind"}
    kind = fields.get("kind")
    if kind not in ("unit", "geometric", "sinh", "anything", "of"):
        raise Refusal("malformed", "the plan names candidates of an unknown kind")
    try:
        made: Candidates = getattr(Candidates, kind)(**options)
    except TypeError:
        raise Refusal("malformed", "the plan describes its candidates wrongly") from None
    if made.size > MOST_CANDIDATES:
        raise Refusal("malformed", f"the plan has more than {MOST_CANDIDATES} candidates")
    return made


def write_time(time: datetime) -> str:
    """UTC in ISO format, to the second."""
    if not isinstance(time, datetime) or time.tzinfo is None:
        raise InputTypeError("closes must be a datetime with a time zone")
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(text: str) -> datetime:
    """The inverse of `write_time`."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise Refusal("malformed", "a time must have the form 2030-01-31T12:00:00Z") from None


def _read(content: Mapping[str, Any]) -> FederatedPlan:
    if set(content) != set(FederatedPlan.__dataclass_fields__):
        raise Refusal("malformed", "the plan lacks fields or has unknown ones; ask for the original")

    def get(name: str, *kinds: type[Any]) -> Any:
        return take(content, name, kinds, "plan")

    silos = _check_silos([Silo.of(silo) if isinstance(silo, dict) else Silo.of({}) for silo in get("silos", list)])
    method = one_of("method", get("method", str), METHODS)
    targets = tuple(None if target is None else _fraction(target) for target in get("targets", list))
    delta, epsilon = get("delta", float, type(None)), get("epsilon", float, int, type(None))
    session = get("session", str)
    if len(session) != 32 or not set(session) <= set("0123456789abcdef"):
        raise Refusal("malformed", "the plan's session must have 32 hexadecimal digits")
    closes = get("closes", str, type(None))
    read = FederatedPlan(
        method=method,
        alpha=exact_level("alpha", get("alpha", str)),
        delta=None if delta is None else float(exact_level("delta", delta)),
        epsilon=None if epsilon is None else privacy_loss("epsilon", epsilon),
        score=score_kind(get("score", str, type(None))).name,
        candidates=read_candidates(get("candidates", dict)),
        silos=silos,
        targets=targets,
        rate=_fraction(get("rate", str)),
        left=positive_integer("left", get("left", int), most=1000),
        right=positive_integer("right", get("right", int), most=1000),
        scale=_positive(get("scale", float, int)),
        selector=one_of("selector", get("selector", str), SELECTORS),
        liars=_count(get("liars", int), len(silos)),
        dropouts=_count(get("dropouts", int), len(silos)),
        missing=one_of("missing", get("missing", str), MISSING),
        population=_population(one_of("population", get("population", str), POPULATIONS), method),
        colluding=_count(get("colluding", int), len(silos)),
        bits=get("bits", int),
        n_min=positive_integer("n_min", get("n_min", int), most=MOST_RECORDS),
        n_typical=positive_integer("n_typical", get("n_typical", int), most=MOST_RECORDS),
        session=session,
        closes=None if closes is None else write_time(read_time(closes)),
    )
    _check_consistent(read)
    return read


def _check_consistent(read: FederatedPlan) -> None:
    """What cannot come from `plan` is refused: a silo relies on these relations."""
    sizes = [silo.size for silo in read.silos]
    secret = sizes[0] is None
    wrong = (
        len(read.targets) != (1 if read.method == "secure-sum" else len(sizes))
        or (read.epsilon is None) != (read.method in NOT_PRIVATE)
        or (secret and read.method != "private-qq")
        or not 0 <= read.rate < 1
        or (not secret and read.rate != 0)
        or read.bits not in (32, 64)
        or (read.liars > 0 and read.method in ("secure-sum", "fedcp-avg"))
        or (secret and None in read.targets)
    )
    if not wrong and read.method == "secure-sum":
        shares = len(sizes), len(sizes) - read.colluding
        wrong = (
            not 1 <= (read.targets[0] or 0) <= (read.size or 0)
            or read.targets[0] != int(read.targets[0] or 0)
            or read.bits < secure_sum.modulus_bits(read.size or 0, read.scale, *shares)
            or (read.delta is not None and read.population == "mixture")
        )
    elif not wrong and not secret:
        most = [(n or 0) + (read.method in NOT_PRIVATE) for n in sizes]
        wrong = any(t is not None and not 0 < t <= n for t, n in zip(read.targets, most, strict=True))
        whole = read.method != "private-qq"
        wrong = wrong or (whole and any(t is not None and t.denominator > 1 for t in read.targets))
    if wrong:
        raise Refusal("malformed", "the plan contradicts itself; ask the coordinator for a new one")
    if read.method not in NOT_PRIVATE:
        losses = [read.loss(i) for i in range(len(sizes))]
        if max(losses) > (read.epsilon or 0.0):
            raise Refusal("malformed", "the plan claims a smaller privacy loss than its mechanisms have")


def _fraction(text: Any) -> Fraction:
    if not isinstance(text, str) or len(text) > 60 or not set(text) <= set("0123456789/"):
        raise Refusal("malformed", "the plan's targets must be fractions of non-negative integers")
    value = Fraction(text)
    if value > MOST_RECORDS or value.denominator > 64 * 10**6:
        raise Refusal("malformed", "the plan has a target out of range")
    return value


def _positive(value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise Refusal("malformed", "the plan's scale must be positive")
    return float(value)


def _count(value: int, silos: int) -> int:
    if not 0 <= value < silos:
        raise Refusal("malformed", "the plan counts more liars or colluding silos than there are")
    return value
