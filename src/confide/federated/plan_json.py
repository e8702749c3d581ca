"""Plans as JSON values. What a plan says is not trusted: every field is checked, and so is how they fit together."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from confide.candidates import Candidates
from confide.errors import ConfideError
from confide.federated import secure_sum
from confide.federated.clock import read_time, write_time
from confide.federated.envelope import take
from confide.federated.keys import Silo
from confide.federated.methods import METHODS, NOT_PRIVATE
from confide.federated.plan import (
    MISSING,
    MOST_CANDIDATES,
    MOST_SUMMED,
    POPULATIONS,
    FederatedPlan,
    check_population,
    check_silos,
)
from confide.federated.refusals import Refusal
from confide.scores.kinds import score_kind
from confide.selection.selector import SELECTORS
from confide.support.checks import one_of, positive_integer, privacy_loss
from confide.support.limits import MOST_RECORDS
from confide.support.rationals import exact_level


def plan_fields(plan: FederatedPlan) -> dict[str, Any]:
    """As JSON values."""
    return {
        "method": plan.method,
        "alpha": str(plan.alpha),
        "delta": plan.delta,
        "epsilon": plan.epsilon,
        "score": plan.score,
        "candidates": candidate_fields(plan.candidates),
        "silos": [silo.fields() for silo in plan.silos],
        "targets": [str(target) for target in plan.targets],
        "rate": str(plan.rate),
        "left": plan.left,
        "right": plan.right,
        "scale": plan.scale,
        "selector": plan.selector,
        "liars": plan.liars,
        "dropouts": plan.dropouts,
        "missing": plan.missing,
        "population": plan.population,
        "colluding": plan.colluding,
        "bits": plan.bits,
        "n_min": plan.n_min,
        "n_typical": plan.n_typical,
        "published_k": plan.published_k,
        "session": plan.session,
        "closes": plan.closes,
    }


def read_plan(content: Mapping[str, Any]) -> FederatedPlan:
    """A plan from JSON values.

    Raises
    ------
    Refusal
        `malformed`.
    """
    try:
        return _read(content)
    except Refusal:
        raise
    except (ConfideError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise Refusal("malformed", f"the plan has a field that cannot be used: {error}") from None


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


def _read(content: Mapping[str, Any]) -> FederatedPlan:
    if set(content) != set(FederatedPlan.__dataclass_fields__):
        raise Refusal("malformed", "the plan lacks fields or has unknown ones; ask for the original")

    def get(name: str, *kinds: type[Any]) -> Any:
        return take(content, name, kinds, "plan")

    silos = check_silos([Silo.of(silo) if isinstance(silo, dict) else Silo.of({}) for silo in get("silos", list)])
    method = one_of("method", get("method", str), METHODS)
    targets = tuple(_fraction(target) for target in get("targets", list))
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
        population=check_population(one_of("population", get("population", str), POPULATIONS), method),
        colluding=_count(get("colluding", int), len(silos)),
        bits=get("bits", int),
        n_min=positive_integer("n_min", get("n_min", int), most=MOST_RECORDS),
        n_typical=positive_integer("n_typical", get("n_typical", int), most=MOST_RECORDS),
        published_k=_count(get("published_k", int), len(silos) + 1),
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
        or (read.published_k > 0 and read.method != "fedcp2-qq")
    )
    if not wrong and read.method == "secure-sum":
        shares = len(sizes), len(sizes) - read.colluding
        wrong = (
            not 1 <= read.targets[0] <= (read.size or 0)
            or read.targets[0].denominator > 1
            or read.candidates.size > MOST_SUMMED
            or read.bits < secure_sum.modulus_bits(read.size or 0, read.scale, *shares)
            or (read.delta is not None and read.population == "mixture")
        )
    elif not wrong and not secret:
        most = [(n or 0) + (read.method in NOT_PRIVATE) for n in sizes]
        wrong = any(not 0 < t <= n for t, n in zip(read.targets, most, strict=True))
        whole = read.method != "private-qq"
        wrong = wrong or (whole and any(t.denominator > 1 for t in read.targets))
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
