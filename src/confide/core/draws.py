"""The draws of a request: of a threshold, or of a noisy histogram that serves several levels.

`Draw` has a design that is known before a record is read; `CountThenDraw` releases a noisy number of records first.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias

from confide.candidates import Candidates
from confide.core.account import Bill
from confide.core.design import Design, compared_list, sized_design, unanswered_design
from confide.core.promised import sized_privacy
from confide.core.request import Request
from confide.core.statement import Key
from confide.core.terms import Terms
from confide.core.thresholds import Threshold
from confide.counting import ScoreHistogram
from confide.errors import InputError
from confide.mechanisms import NoisyHistogram, PpsOfSecretSize, PrivacyStatement, draw_size
from confide.support import MOST_RECORDS


@dataclass(frozen=True)
class Draw:
    """Thresholds whose designs are known: one, or those of several levels, which follow from one noisy histogram."""

    designs: Mapping[Key, Design]
    request: Request

    @property
    def design(self) -> Design:
        """The first design; the candidates and the noise are the same in all of them."""
        return next(iter(self.designs.values()))

    @property
    def terms(self) -> Terms:
        """The terms that the first design follows from."""
        return self.design.terms

    @property
    def bill(self) -> Bill:
        """What it costs, and what identifies its request."""
        terms, candidates = self.terms, self.candidates
        mechanisms = [None if design.mechanism is None else repr(design.mechanism) for design in self.designs.values()]
        identity = {
            "request": _plain_fields(terms) | {"candidates": candidates.size},
            "n": self.design.n if terms.public_n else None,
            "mechanism": mechanisms if terms.levels else mechanisms[0],
            "candidates": candidates.digest,
        }
        dearest = max((design.privacy for design in self.designs.values()), key=lambda privacy: privacy.epsilon)
        return _bill(terms, self.request, dearest, identity)

    @property
    def candidates(self) -> Candidates:
        """The candidates over which the records are recognised."""
        return self.design.candidates

    def prepared(self, counts: ScoreHistogram) -> "Draw":
        """The step itself: its designs wait for nothing."""
        return self

    def draw(self, counts: ScoreHistogram) -> dict[Key, Threshold]:
        """Draw noisy counts, or one candidate: the only step that depends on private counts and is released."""
        counted = counts.over(self.candidates).counts
        mechanisms = (design.mechanism for design in self.designs.values())
        mechanism = next((known for known in mechanisms if known is not None), None)
        if mechanism is None:
            return self.rehearsed()
        if isinstance(mechanism, NoisyHistogram):  # several levels have histograms with the same noise
            noisy = tuple(mechanism.noisy(counted).tolist())
            return {key: design.counted_threshold(noisy) for key, design in self.designs.items()}
        value = float(self.candidates.values[mechanism.choose(counted)])
        return {key: design.threshold(value) for key, design in self.designs.items()}

    def rehearsed(self) -> dict[Key, Threshold]:
        """The threshold +inf, without a draw."""
        return {key: design.threshold(math.inf) for key, design in self.designs.items()}


@dataclass(frozen=True)
class CountThenDraw:
    """The default: a noisy number of records is released first, and the designs of one or several levels follow it."""

    parts: Mapping[Key, Terms]
    request: Request

    @property
    def terms(self) -> Terms:
        """The first terms; all have the same noisy number, and the same price."""
        return next(iter(self.parts.values()))

    @property
    def bill(self) -> Bill:
        """What it costs at most, whatever the noisy number is, and what identifies its request."""
        terms, spread = self.terms, self.terms.known_spread
        identity = {
            "request": _plain_fields(terms),
            "mechanism": None,
            "candidates": spread.digest if isinstance(spread, Candidates) else repr(replace(spread, most=None)),
        }
        return _bill(terms, self.request, sized_privacy(terms), identity)

    @property
    def candidates(self) -> Candidates:
        """The candidates over which the records are recognised, whatever the noisy number is."""
        return compared_list(self.terms)

    def prepared(self, counts: ScoreHistogram) -> Draw:
        """Draw the noisy number of records, and search the designs for it."""
        assert self.terms.size_scale is not None
        size = draw_size(counts.total, self.terms.size_scale, self.terms.n_min)
        return Draw({key: sized_design(terms, size) for key, terms in self.parts.items()}, self.request)

    def rehearsed(self) -> dict[Key, Threshold]:
        """The answer +inf without a mechanism, as for the smallest possible noisy number of records.

        `Terms.check_designs` has checked all mechanisms.
        """
        size = self.terms.noisy_size(-MOST_RECORDS)
        few = {key: replace(unanswered_design(terms), size=size) for key, terms in self.parts.items()}
        return Draw(few, self.request).rehearsed()


Step: TypeAlias = Draw | CountThenDraw


def _bill(terms: Terms, request: Request, privacy: PrivacyStatement, identity: dict[str, Any]) -> Bill:
    # A renewed release and a private choice of the score make a request another one.
    if request.renews is not None:
        identity["renews"] = request.renews
    if (chosen := request.chosen) is not None:
        identity["chosen"] = [chosen.name, *chosen.among, str(chosen.share), chosen.epsilon]
    return Bill(privacy, terms.mechanism, identity)


# Fields of terms that a request in a ledger states otherwise, or that do not matter to its answer.
_UNIDENTIFIED = ("spread", "largest", "choice", "noise")


def _plain_fields(terms: Terms) -> dict[str, Any]:
    names = [field.name for field in fields(terms) if field.name not in _UNIDENTIFIED]
    stated = {name: _plain(getattr(terms, name)) for name in names}
    return stated | {"population": None if terms.population is None else terms.population.fields()}


def _plain(value: Any) -> Any:
    # As JSON values, of which infinity is none.
    if value == math.inf:
        return "+inf"
    return value if value is None or isinstance(value, int | float | str) else str(value)


def prepare(request: Request, n: int | None = None) -> dict[Key, Step]:
    """The steps of a request by draw, from public numbers alone; `n` is the number of records if it is public."""
    steps: dict[Key, Step] = {}
    designs = request.designs(n)
    for draw, keys in request.draws.items():
        known = {key: design for key in keys if (design := designs[key]) is not None}
        waiting = {key: request.terms[key] for key in keys if key not in known}
        steps[draw] = CountThenDraw(waiting, request) if waiting else Draw(known, request)
        for design in known.values():
            _check_pps_minimum(design)
    return steps


def _check_pps_minimum(design: Design) -> None:
    """Reject `pps` with a secret n and n_min = 1 before anything is charged: it would guarantee next to nothing."""
    mechanism, terms = design.mechanism, design.terms
    if not isinstance(mechanism, PpsOfSecretSize) or terms.n_min > 1:
        return
    if (enough := mechanism.certified_from(terms.level, design.candidates.size)) > 1:
        must = (
            "must be given for mechanism='pps' with neighbors='add_remove', because this mechanism guarantees almost "
            "no coverage if there is only one calibration record"
        )
        remedy = (
            f"With n_min={enough} or more the guaranteed coverage is {float(terms.level):g}; with a smaller n_min, at "
            "least 2, it is lower"
        )
        raise InputError("n_min", must, remedy=remedy)
