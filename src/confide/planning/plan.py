"""What a calibration will cost and promise, decided before any data is touched.

A plan fixes the whole mechanism: slopes, target rank, noise scale. It depends on public numbers only.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from confide.candidates import AnyCandidates
from confide.guarantee import Guarantee
from confide.mechanisms import PrivacyStatement, Slopes, certify, privacy_statement
from confide.planning.choice import desert_crossed, law_of
from confide.planning.combinations import unusual
from confide.planning.expected import (
    OnPilot,
    Pilot,
    chance_text,
    closely_needed,
    least,
    likely_enough,
    needed_text,
    on_pilot,
    typical_answer,
    typical_law,
)
from confide.planning.population import ClassShift, shifted_population
from confide.planning.terms import CHOICES, Choices, Terms, slopes_for_request
from confide.scores import score_kind
from confide.support import MOST_RECORDS, Described, Level, Section, decimal_text, positive_integer, refuse_unknown

UNLIKELY = 0.01
"""The chance of an answer beyond all scores that a plan calls unlikely."""


@dataclass(frozen=True, repr=False)
class Plan(Described):
    """The mechanism that answers a request, and what it promises and costs. Nothing here depends on data.

    Parameters
    ----------
    request
        What was asked for.
    mechanism
        Slopes, target rank and noise scale; None if no target rank serves and the answer is +inf without the data.
    n
        The number of records that `target_rank`, `expected_excess` and `expected_coverage` are stated for.
    pilot
        A public sample that `on_pilot` is stated for; nothing else depends on it.

    Examples
    --------
    >>> p = plan(alpha=0.1, epsilon=1.0, n=1000)
    >>> round(p.expected_coverage, 3), p.records_needed
    (0.904, 210)
    """

    request: Terms
    mechanism: Slopes | None
    n: int
    pilot: Pilot | None = None

    @property
    def guarantee(self) -> Guarantee:
        """What the calibration will promise."""
        r = self.request
        made = certify(self.mechanism, r.alpha, r.m, r.n, r.n_min if r.n is None else None, r.delta)
        return made if r.population is None else replace(made, population=str(r.population))

    @property
    def privacy(self) -> PrivacyStatement:
        """What it will cost."""
        r = self.request
        return privacy_statement(self.mechanism, r.neighbors, r.records_per_person, r.selector, r.size_scale)

    @property
    def counted(self) -> int:
        """The number of records that ranks are of: n, or with weights as many of the largest one as n weigh, about."""
        return self.n if self.request.population is None else max(1, round(self.request.heaviest_among(self.n)))

    @property
    def target_rank(self) -> float:
        """The rank that the mechanism aims at with n records; above `counted` it stands for +inf."""
        return float(self.mechanism.target(self.counted)) if self.mechanism else math.inf

    @property
    def nonprivate_rank(self) -> int:
        """ceil((n+1)(1-alpha)), the rank of split conformal prediction without privacy; n is `counted`."""
        return math.ceil(self.request.level * (self.counted + 1))

    @property
    def typical_scores(self) -> str:
        """What scores the expected coverage and the chances are stated for, in words."""
        law = law_of(self.request.candidates)
        if law is None or law.kind not in ("residual", "signed"):
            return "evenly spread scores"
        size = "the size of the guess" if law.around else "the size of the unit" if law.unit else "a size of about 1"
        return f"bell-shaped residuals of {size}"

    @property
    @np.errstate(under="ignore")
    def expected_coverage(self) -> float:
        """Mean coverage on typical scores: evenly spread ones, or residuals of a bell whose unit is right."""
        return 1.0 if self.mechanism is None else min(1.0, float(self._answer() @ typical_law(self.request.candidates)))

    @property
    def expected_excess(self) -> float:
        """Expected ranks above (n+1)(1-alpha) on typical scores: what privacy costs, in records."""
        return (self.expected_coverage - float(self.request.level)) * (self.counted + 1)

    @property
    def unit_of_cost(self) -> str:
        """What `expected_excess` counts, in words."""
        return "records" if self.request.population is None else "records of the largest weight"

    @property
    def chance_of_all(self) -> float:
        """Chance that the answer is +inf, on typical scores."""
        return 1.0 if self.mechanism is None else float(self._answer()[-1])

    @property
    @np.errstate(under="ignore")
    def chance_beyond(self) -> float:
        """Chance that the answer lies beyond all scores, +inf included, on typical scores."""
        if self.mechanism is None:
            return 1.0
        none_above = np.append(0.0, typical_law(self.request.candidates)[:-1]) ** self.n
        return min(1.0, float(self._answer() @ none_above))

    @property
    def desert(self) -> float:
        """Within how many ranks after `nonprivate_rank` an empty half of the candidates must begin to be jumped.

        If it does, the answer tends to lie beyond it, though scores before it would do.
        """
        if self.mechanism is None:
            return math.inf
        shift = self.target_rank - float(self.request.level * (self.counted + 1))
        rivals, rise = self.mechanism.rivals(self.request.m), self.mechanism.total_rise
        return desert_crossed(rise, rivals, shift, self.mechanism.slope_right, share=0.5)

    @property
    def coverage_at_most(self) -> float:
        """Upper bound on mean coverage for continuous scores, up to the mass of one bin (docs/theory.md, Theorem 5)."""
        return 1.0 if self.mechanism is None else self.mechanism.coverage_at_most(self.counted, self.request.m)

    @property
    def on_pilot(self) -> OnPilot | None:
        """Set sizes or widths beside those without privacy, if scores are as in the pilot sample; None without one."""
        return None if self.pilot is None else on_pilot(self.pilot, self.mechanism, self.request, self.counted)

    @property
    def records_needed(self) -> int:
        """About the smallest number of records with which the answer lies among the scores, but for a chance of 1 %.

        On typical scores; within a tenth. With fewer, +inf or a threshold beyond all scores gets likely quickly. A
        public number gets the candidates that suit it, if they are spread; a secret one the same mechanism. It follows
        from what a release states as well: the mechanism, and the loss that is spent.
        """
        spent = self.request if self.mechanism is None else replace(self.request, epsilon=self.privacy.epsilon)
        return _records_needed(spent, self.mechanism)

    @property
    def enough_records(self) -> bool:
        """Whether `n` records are enough: the answer lies among the scores, but for a chance of 1 %."""
        return self.chance_beyond <= UNLIKELY

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be said before anything is asked: too few records, and numbers that are often mistaken."""
        said = unusual(self.request.alpha, self.request.delta)
        if self.enough_records:
            return said
        few = (
            f"NOT ENOUGH RECORDS: with {self.n:,} the threshold is useless (+inf, or above every score) in "
            f"{chance_text(self.chance_beyond)} of calibrations; about {self.records_needed:,} are needed"
        )
        return few, *said

    def _section(self) -> Section:
        r, privacy, serves = self.request, self.privacy, self.nonprivate_rank <= self.counted
        with_n = [
            ("target rank", self._rank()),
            ("rank without privacy", f"{self.nonprivate_rank}" if serves else "+inf"),
            ("expected coverage", f"{self.expected_coverage:.4f}, on {self.typical_scores}"),
            ("cost of privacy", f"about {self.expected_excess:.1f} {self.unit_of_cost} more covered than asked for"),
            ("chance of +inf", f"{chance_text(self.chance_of_all)}; of +inf or a threshold above every score, "
             f"{chance_text(self.chance_beyond)}"),
            ("coverage at most", f"{self.coverage_at_most:.4f} on average, for continuous scores"),
        ]  # fmt: skip
        if r.population is not None:
            with_n[-1] = ("their weight", f"that of about {self.counted} of the largest weight, which ranks are of")
        if self.mechanism is not None:
            near = f"within {self.desert:.0f} ranks of the non-private one"
            with_n.append(
                ("gaps in the scores", f"a draw may cross one, half of the candidates wide, that starts {near}")
            )
        always = [
            ("records needed", needed_text(self.records_needed)),
            ("loss, add or remove one", _loss(privacy.loss("add_remove"))),
            ("loss, replace one", _loss(privacy.loss("replace_one"))),
            ("candidate thresholds", r.candidates.description),
        ]  # fmt: skip
        if r.size_scale is not None:
            said = f"released first, with noise of scale {r.size_scale:g}; it decides the rest"
            always.append(("number of records", said))
        elif r.n is None:
            always.append(("chosen for", f"{max(r.n_min, r.n_typical)} records, a public guess (n_typical)"))
        parts = [
            Section(f"With {self.n} calibration records", facts=tuple(with_n)),
            Section("With any number of records", facts=tuple(always)),
        ]
        if (found := self.on_pilot) is not None:
            like = f"With {self.n} records like the {found.records} of the pilot sample"
            parts.append(Section(like, facts=tuple(found.in_words)))
        return Section(
            "Plan",
            facts=(("promise", str(self.guarantee)), ("privacy", str(privacy))),
            warnings=tuple(self.remarks),
            parts=tuple(parts),
        )

    def _answer(self) -> NDArray[np.float64]:
        """The law of the answer on typical scores; shape (m,)."""
        assert self.mechanism is not None
        return typical_answer(self.mechanism, self.request.candidates, self.counted)

    def _rank(self) -> str:
        if math.isinf(self.target_rank):
            return "none serves: the answer is +inf, without touching the data"
        beyond = ", above the number of records: +inf is the likely answer" if self.target_rank > self.counted else ""
        return f"{self.target_rank:.2f}{beyond}"

    def _brief(self) -> str:
        few = "" if self.enough_records else f", NOT ENOUGH RECORDS (about {self.records_needed} are needed)"
        rank = f"target rank {self._rank()} with {self.n} records"
        return f"alpha {float(self.request.alpha):g}, {self.guarantee.brief}, {self.privacy.brief}, {rank}{few}"


def _loss(value: float) -> str:
    return "unlimited: the number of records is public" if math.isinf(value) else decimal_text(value)


def plan(
    alpha: Level,
    epsilon: float | None = None,
    n: int = 1000,
    *,
    score: str = "lac",
    candidates: AnyCandidates = None,
    unit: float | None = None,
    pilot: Any = None,
    class_weights: "Mapping[Any, Any] | ClassShift | None" = None,
    weight_bound: float | None = None,
    **choices: Unpack[Choices],
) -> Plan:
    """Say what a private calibration will promise and cost, before any data is touched.

    Parameters
    ----------
    alpha
        Miscoverage level in (0, 1): a float, a decimal string or a `Fraction`.
    epsilon
        Privacy loss per person, in [1e-6, 1e6]. Give this or `rho`.
    n
        Number of calibration records: the public number under `replace_one`; under `add_remove` only a guess to
        state the cost for, which the mechanism never uses.
    score
        The score that thresholds are for, which default candidates suit.
    candidates
        As in `calibrate`: the candidate thresholds, or how they are spread; or their number, +inf included.
    unit
        For residuals: a public typical size, as in `calibrate`.
    pilot
        A PUBLIC sample, to say what thresholds, sets and intervals are worth: scores of shape (N,), or a `Pilot` with
        the scores of all classes besides. Never private records: the plan tells what it saw. With weights, a sample of
        the new population: expected sums of weights are spread as its scores are.
    class_weights, weight_bound
        As in `calibrate`: the promise is for a population that is a known shift away.
    **choices
        Those of `Choices`, without `mechanism`.

    Raises
    ------
    InputError, InputTypeError
        If an argument is out of range or of the wrong type.

    Examples
    --------
    >>> p = plan(alpha=0.1, epsilon=1.0, n=1000, neighbors="replace_one")
    >>> p.target_rank, p.nonprivate_rank
    (903.5, 901)
    """
    refuse_unknown("plan", choices, set(CHOICES) - {"mechanism"})
    asked, population = score_kind(score).asked(candidates, unit), shifted_population(class_weights, weight_bound)
    made = make_plan(Terms.of(alpha, asked, n, epsilon=epsilon, population=population, **choices), n)
    return made if pilot is None else replace(made, pilot=Pilot.of(pilot, score))


@lru_cache(maxsize=1024)
def _records_needed(request: Terms, mechanism: Slopes | None) -> int:
    """The number of records that `Plan.records_needed` tells."""
    if request.n is None and request.size_scale is None:
        return least(lambda n: Plan(request, mechanism, n).enough_records, likely_enough(request))
    asked = request if mechanism is None else _asked_for(request, mechanism)
    law = law_of(asked.candidates) if asked.candidates.recipe["kind"] == "spread" else None

    def enough(n: int) -> bool:
        other = asked.at(n)
        made = other if law is None else other.suited(law)
        return Plan(made, slopes_for_request(made), n).enough_records

    if asked.slopes is not None or asked.shift is not None:  # then nothing, or little, is decided
        return least(enough, likely_enough(asked))
    many = closely_needed(asked, law or asked.candidates, UNLIKELY)
    while many < MOST_RECORDS and not enough(many):
        many = min(many + max(1, many // 30), MOST_RECORDS)
    return many


def _asked_for(request: Terms, mechanism: Slopes) -> Terms:
    """Of a public n: the request with those of slopes, rise and shift that the mechanism shows were asked for."""
    decided = replace(request, slopes=None, rise=None, shift=None)
    given = replace(decided, slopes=(mechanism.left, mechanism.right), rise=mechanism.total_rise)
    for one in (decided, given):
        made = slopes_for_request(one)
        if made is not None and (made.left, made.right, made.offset) == (
            mechanism.left,
            mechanism.right,
            mechanism.offset,
        ):
            return one
    return replace(given, shift=mechanism.offset - request.level * ((request.n or 0) + 1))


def make_plan(request: Terms, n: int) -> Plan:
    """The plan for a checked request, stated for n records; designed for them where a noisy number decides."""
    n = positive_integer("n", n, most=MOST_RECORDS)
    if request.size_scale is not None:
        law = law_of(request.candidates) if request.candidates.recipe["kind"] == "spread" else None
        request = request.designed_for(n).over(law or request.candidates, None)
    return Plan(request, slopes_for_request(request), n)
