"""The library's answers to the operations of the vectors, in the form of their expected values."""

import json
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

import confide
from confide import federated, guarantee, noisy_counts, selection, support
from confide.arrays import softmax
from confide.core import Release
from confide.errors import InputError
from confide.federated import keys, messages
from confide.federated.certificates import order_statistic_coverage
from confide.federated.protocols import channels
from confide.federated.reply_laws import RandomRankReply
from confide.ledger.schema import seal
from confide.mechanisms import Slopes, split_conformal_for
from confide.scores.class_sets import set_mask
from confide.scores.regression import interval_ends
from confide.selection import selection_law
from confide.sets import coverage_from_counts
from confide.support import exact_level
from confide.watching import e_process
from tests.vectors import mechanisms


def found(operation: str, given: dict[str, Any]) -> Any:
    """The answer, as JSON has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.CoverageWarning)
        return _plain(OPERATIONS[operation](**given))


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case np.ndarray():
            return _plain(value.tolist())
        case np.generic():
            return _plain(value.item())
        case float() if math.isinf(value):
            return "+inf" if value > 0 else "-inf"
    return value


def _statement(statement: dict[str, Any]) -> Slopes:
    texts = {key: Fraction(statement[key]) for key in ("rate", "offset", "flat") if key in statement}
    return Slopes(**{**statement, **texts})


def _of_statement(statement: dict[str, Any], n: int, m: int) -> dict[str, Any]:
    one = _statement(statement)
    return {
        "unit": one.unit,
        "slope_left": one.slope_left,
        "slope_right": one.slope_right,
        "target": str(one.target(n)),
        "heights": one.log_prior_weights(m),
        "head_start": one.prior_bonus(n),
        "replace_one": one.replace_one,
        "add_remove": one.add_remove,
    }


def _law(utilities: Any, scale: float) -> Any:
    best = max(utilities)
    with np.errstate(under="ignore"):
        return selection_law(np.exp(np.array([u - best for u in utilities], dtype=np.float64) / scale))


def _loss(statement: Any, counts: Any, neighbour: Any) -> Any:
    one = _statement(statement)
    p, q = (_law(one.utilities(np.array(h, dtype=np.int64)).tolist(), one.scale) for h in (counts, neighbour))
    bound = one.replace_one if sum(counts) == sum(neighbour) else one.add_remove
    return {"log_ratio": float(np.abs(np.log(p / q)).max()), "at_most": bound}


def _certificate(n: int, m: int, statement: Any, certificate: str) -> float:
    one = _statement(statement)
    covered = guarantee.sharp_coverage if certificate == "sharp" else guarantee.two_sided_coverage
    return float(covered(n, one.target(n), one.noise(m)))


def _split_rank(alpha: str, n: int) -> Any:
    mechanism = split_conformal_for(1 - exact_level("alpha", alpha), n)
    return math.inf if mechanism is None else mechanism.rank


def _threshold(value: Any) -> Any:
    if isinstance(value, list):
        return np.array([_threshold(one) for one in value])
    return math.inf if value == "+inf" else value


def _sets(score: str, probabilities: Any, threshold: Any = None, class_thresholds: Any = None, u: Any = None) -> Any:
    shares = None if u is None else np.array(u)
    limit = _threshold(threshold if class_thresholds is None else class_thresholds)
    rows = np.array(probabilities)
    mask = set_mask(rows, score, limit, u=shares, per_class=class_thresholds is not None)
    return [np.flatnonzero(row) for row in mask]


def _intervals(score: str, threshold: Any, predictions: Any, difficulty: Any = None) -> Any:
    ends = interval_ends(np.array(predictions), score, _threshold(threshold), difficulty=difficulty)
    return np.transpose(ends)


def _release(text: str) -> dict[str, Any]:
    read = Release.from_json(text)
    content = json.loads(text)
    assert read.to_json() == text
    threshold = read.threshold if len(read) == 1 else None
    return {**{k: content[k] for k in ("kind", "schema", "sha256")}, "threshold": threshold, "document": read.checksum}


def _unseal(kind: str, text: str) -> dict[str, Any]:
    payload, signer, _ = messages.open_message(kind, text)
    return {"signer": signer, "silo": json.loads(payload)["silo"]}


def _seal(kind: str, payload: str, signing: str) -> str:
    content = payload.encode()
    return messages.envelope(kind, content, *messages.signature_of(kind, content, bytes.fromhex(signing)))


def _public_keys(signing: str, agreement: str) -> list[str]:
    face = federated.SiloKeys("silo", bytes.fromhex(signing), bytes.fromhex(agreement)).public_keys()
    return [face.signing, face.agreement]


def _mask(values: Any, agreement: str, own: str, roster: Any, context: str, bits: int) -> list[str]:
    masked = channels.mask(np.array(values), bytes.fromhex(agreement), own, roster, context.encode(), bits)
    return list(map(str, masked.tolist()))


def _noise_law(epsilon: float, noises: int, values: list[int]) -> Any:
    law = noisy_counts.noise_law(epsilon, noises)
    middle = len(law) // 2
    return [law[middle + v] for v in values]


def _bets(p0: float, others: list[float], epsilon: float, per_person: int = 1) -> e_process.Bets:
    p1 = np.array([others])
    s, u = np.log(p0 / p1) / per_person, np.log((1 - p1) / (1 - p0)) / per_person
    return e_process.Bets(s, u, noisy_counts.log_mgf(s, epsilon) + noisy_counts.log_mgf(u, epsilon))


def _log_e_value(p0: float, p1: float, epsilon: float, per_person: int, counts: Any) -> Any:
    one = _bets(p0, [p1], epsilon, per_person)
    return [e_process.log_e_values(one, [x], [y])[0, 0] for x, y in counts]


def _evidence(p0: float, bets: Any, epsilon: float, looks: int, counts: Any) -> Any:
    one, course = _bets(p0, bets, epsilon), []
    wealth = np.full((1, len(bets)), -np.inf)
    for look, (x, y) in enumerate(counts, 1):
        wealth = e_process.advance(
            wealth, e_process.log_e_values(one, [x], [y]), e_process.entering_wealth(look, looks)
        )
        course.append(e_process.log_evidence(wealth, e_process.cash(look, looks))[0])
    return course


def _seals(rows: Any) -> list[str]:
    before, seals = None, []
    for row in rows:
        before = row | {"seal": seal(before, json.loads(row["values"]), row["salt"])}
        seals.append(before["seal"])
    return seals


def _chain(rows: Any) -> str:
    if _seals(rows) != [row["seal"] for row in rows]:
        raise InputError("rows", "must have the seals of their content")
    return str(rows[-1]["seal"])


def _coverage_of_counts(hits: int, n: int, confidence: float) -> list[float]:
    one = coverage_from_counts(hits, n, confidence)
    return [one.low, one.high]


OPERATIONS: dict[str, Callable[..., Any]] = {
    "class_score": lambda score, probabilities, labels, u=None: confide.class_score(probabilities, labels, score, u=u),
    "all_scores": lambda score, probabilities: confide.all_scores(probabilities, score),
    "softmax": lambda logits: softmax(np.array(logits)),
    "interval_score": lambda score, predictions, targets, difficulty=None: confide.interval_score(
        predictions, targets, score, difficulty=difficulty
    ),
    "scale": support.scale_for,
    "statement": _of_statement,
    "plan": mechanisms.chosen,
    "utilities": lambda statement, counts: _statement(statement).utilities(np.array(counts, dtype=np.int64)),
    "law": _law,
    "law_of_weights": lambda weights: selection_law(np.array([float(Fraction(w)) for w in weights])),
    "loss": _loss,
    "tail": lambda deficit, slope, rivals: float(guarantee.tail(np.array(deficit), slope, rivals)),
    "mean_overshoot": guarantee.mean_overshoot,
    "rivals": lambda log_weights: guarantee.competitor_ratio(np.array(log_weights)),
    "marginal_coverage": guarantee.marginal_coverage,
    "conditional_failure": guarantee.conditional_failure,
    "sharp_loss": guarantee.sharp_loss,
    "certificate": _certificate,
    "split_rank": _split_rank,
    "zcdp": lambda **given: selection.zcdp_of_range(given["range"]),
    "sets": _sets,
    "intervals": _intervals,
    "sets_of_release": lambda release, probabilities: _sets("lac", probabilities, Release.from_json(release).threshold),
    "canonical": lambda text: json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), allow_nan=False),
    "release": _release,
    "release_claims": _release,
    "seals": _seals,
    "chain": _chain,
    "signed_bytes": lambda kind, payload: messages._signed_bytes(kind, payload.encode()).decode(),
    "seal": _seal,
    "unseal": _unseal,
    "identity": keys.identity_of,
    "roster": lambda identities: keys.roster([SimpleNamespace(identity=one) for one in identities]),
    "fingerprint": keys.fingerprint,
    "public_keys": _public_keys,
    "mask": _mask,
    "open_sum": lambda masked, bits: channels.open_sum(
        [np.array(list(map(int, one)), dtype=channels.word_type(bits)) for one in masked], bits
    ),
    "rank_of_ranks": lambda replies, k: order_statistic_coverage(
        [RandomRankReply.fixed(one["n"], one["rank"]) for one in replies], k
    ),
    "noise_law": _noise_law,
    "log_mgf": lambda epsilon, s: float(noisy_counts.log_mgf(s, epsilon)),
    "coverage_of_counts": _coverage_of_counts,
    "noisy_interval": lambda covered, size, epsilon, error: noisy_counts.one_count_interval(
        covered, size, epsilon, error=error
    ),
    "noisy_interval_secret": lambda covered, missed, epsilon, error, guess: noisy_counts.coverage_interval(
        covered, missed, epsilon, error=error, guess=guess
    ),
    "log_e_value": _log_e_value,
    "stake": lambda look, looks: [e_process.entering_wealth(look, looks), e_process.cash(look, looks)],
    "evidence": _evidence,
}


REFUSALS = (confide.ConfideError, InputError, ValueError)
"""Errors of the library; contradictory shares are a ValueError, which protocols convert."""
