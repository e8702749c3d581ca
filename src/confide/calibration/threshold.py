"""One threshold: priced from public numbers, drawn once from what the mechanism sees, and stated."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import CoverageWarning, InputError
from confide.guarantee import coverage_text
from confide.mechanisms import Mechanism, PpsOfSecretSize, SplitConformal, certify, privacy_statement
from confide.planning import OPTIONS, Request, check_request, make_plan, mechanism_for
from confide.releases import Calibration, Predecessor, Words, remark
from confide.support import Level, library_versions, outside

if TYPE_CHECKING:
    from confide.ledger import Account, Dataset, Ledger, Payment


Seen: TypeAlias = "ScoreHistogram | NDArray[Any]"
"""What a mechanism sees: counts over the candidates, or for `none` the scores themselves, shape (n,)."""


@dataclass(frozen=True)
class PricedThreshold:
    """A threshold that was asked for, checked and priced; made by `price_threshold`."""

    request: Request
    score: str | None
    payment: "Payment | None"
    words: Words

    def draw(self, seen: Seen) -> Calibration:
        """Run the mechanism, once."""
        request, mechanism = self.request, mechanism_for(self.request)
        if isinstance(seen, ScoreHistogram):
            m, recipe, values = request.m, seen.candidates.recipe, seen.candidates.values
            threshold = math.inf if mechanism is None else float(values[mechanism.choose(seen.counts)])
        else:
            m, recipe = len(seen) + 1, {"kind": "scores"}
            threshold = mechanism.threshold(seen) if isinstance(mechanism, SplitConformal) else math.inf
        return self.words.of(_stated(threshold, mechanism, request, m, recipe, self.score))

    def warn(self, drawn: Calibration) -> None:
        """Say that a threshold is +inf, or nearly so, and why; and that less is promised than was asked for."""
        made, level, m = drawn.mechanism, self.request.level, self.request.m
        if isinstance(made, PpsOfSecretSize) and drawn.guarantee.coverage < float(level):
            enough = made.certified_from(level, m)
            note = (
                f"the promise is coverage of at least {coverage_text(drawn.guarantee.coverage)}, not {float(level):g}: "
                f"with few records pps covers less; state n_min={enough} or more, if so many are certain"
            )
            warnings.warn(note, CoverageWarning, stacklevel=outside())
        needed = _records_needed(self.request) if math.isinf(drawn.threshold) else None
        if note := remark(drawn, needed, self.request.epsilon):
            warnings.warn(note, CoverageWarning, stacklevel=outside())


def seen_by(mechanism: str | None, scores: NDArray[Any], candidates: Candidates, score: str | None) -> Seen:
    """What a mechanism sees of scores of shape (n,); those that cannot be counted are refused, whichever it is."""
    counted = ScoreHistogram.from_scores(scores, candidates, score)
    return scores if mechanism == "none" else counted


def content(seen: Seen) -> bytes:
    """What a mechanism sees, as bytes: the same for the same data, wherever they were counted.

    Examples
    --------
    >>> candidates = Candidates.unit(10)
    >>> one, other = (ScoreHistogram.from_scores(scores, candidates) for scores in ([0.1, 0.9], [0.9, 0.1]))
    >>> content(one) == content(other)
    True
    """
    if isinstance(seen, ScoreHistogram):
        return seen.candidates.digest.encode() + seen.counts.astype("<i8").tobytes()
    return np.sort(seen.astype("<f8")).tobytes()


def price_threshold(
    alpha: Level,
    epsilon: float | None = None,
    n: int | None = None,
    *,
    candidates: Candidates,
    score: str | None,
    ledger: "Ledger | None" = None,
    dataset: "str | Dataset | None" = None,
    again: bool = False,
    accounts: "Mapping[str, Account] | None" = None,
    classes: Iterable[Any] | int | None = None,
    about: Mapping[str, str] | None = None,
    predecessors: Sequence[Predecessor] = (),
    **options: Any,
) -> PricedThreshold:
    """Check what is asked of a release; nothing is charged.

    `n` is the public number of records under `replace_one`, and not used else; `accounts` are those of the ledger where
    it was read already, for many thresholds at once; `predecessors` the earlier releases of its chain; the rest as in
    `calibrate`.

    Examples
    --------
    >>> candidates = Candidates.unit(100)
    >>> priced = price_threshold(0.1, 1.0, candidates=candidates, score="lac")
    >>> priced.draw(ScoreHistogram.from_scores([0.5] * 1000, candidates)).privacy.epsilon
    1.0
    """
    if unknown := sorted(set(options) - OPTIONS):
        hint = "; counts of weighted records take population alone" if "class_weights" in unknown else ""
        raise InputError(f"options must be those of calibrate; found {', '.join(unknown)}{hint}")
    words = Words.stated(classes, about, predecessors)
    request = check_request(alpha=alpha, epsilon=epsilon, n=n or 1, candidates=candidates, **options)
    _refuse_a_promise_for_no_records(request)
    payment = None
    if ledger is not None or dataset is not None:
        from confide.ledger import make_payment

        mechanism = mechanism_for(request)
        privacy = privacy_statement(mechanism, request.neighbors, request.records_per_person, request.selector)
        asked = _asked(request, mechanism, score)
        if predecessors:  # to renew another release is another request
            asked["renewed"] = predecessors[-1].checksum
        payment = make_payment(privacy, request.mechanism, asked, ledger, dataset, again=again, accounts=accounts)
    elif again:
        raise InputError("again must be left out without a ledger: nothing is remembered, and every call is new")
    if n == 0 and request.n is not None:  # an account that keeps n secret has refused by now, whatever n is
        raise InputError("n must be a positive integer; found 0, no records, whose number would be public")
    return PricedThreshold(request, score, payment, words)


def _stated(
    threshold: float,
    mechanism: Mechanism | None,
    request: Request,
    m: int,
    recipe: Mapping[str, Any],
    score: str | None,
) -> Calibration:
    """A threshold with everything that is said about it, all from public numbers."""
    secret_from = request.n_min if request.n is None else None
    guarantee = certify(mechanism, request.alpha, m, request.n, secret_from, request.delta)
    if request.population is not None:
        guarantee = replace(guarantee, population=str(request.population))
    return Calibration(
        threshold=threshold,
        alpha=request.alpha,
        guarantee=guarantee,
        privacy=privacy_statement(mechanism, request.neighbors, request.records_per_person, request.selector),
        mechanism=mechanism,
        candidates=m,
        recipe=recipe,
        score=score,
        versions=library_versions(),
        population=request.population,
    )


def _refuse_a_promise_for_no_records(request: Request) -> None:
    """Refuse `pps` for every secret n, one record included, before it is paid: it would promise next to nothing."""
    made = mechanism_for(request) if request.mechanism == "pps" and request.n_min == 1 else None
    if isinstance(made, PpsOfSecretSize) and (enough := made.certified_from(request.level, request.m)) > 1:
        raise InputError(
            f"n_min must be given for mechanism='pps' with neighbors='add_remove', which promises next to nothing for "
            f"one record: from n_min={enough} on it promises {float(request.level):g}; for less state a smaller one, "
            "2 at least"
        )


def _asked(request: Request, mechanism: Mechanism | None, score: str | None) -> dict[str, Any]:
    """Everything public that is asked of a threshold: equal ones about the same data are one request."""
    return {
        "request": _choices(request),
        "mechanism": None if mechanism is None else repr(mechanism),
        "candidates": request.candidates.digest,
        "score": score,
    }


def _choices(request: Request) -> dict[str, Any]:
    """The choices of a request as plain values; as version 0.1 stated them where it knew all of them."""
    stated = {field.name: _plain(getattr(request, field.name)) for field in fields(request)} | {"candidates": request.m}
    if request.population is not None:
        stated["population"] = request.population.fields()
    return {name: value for name, value in stated.items() if name not in _LATER or value is not None}


_LATER = ("rise", "population", "rho")


def _plain(value: Any) -> Any:
    if value == math.inf:
        return "+inf"
    return value if value is None or isinstance(value, int | float | str) else str(value)


def _records_needed(request: Request) -> int | None:
    """How many records a finite threshold needs, about; None for mechanisms of which it is not known."""
    return make_plan(request, request.n or 1).records_needed if request.mechanism == "slopes" else None
