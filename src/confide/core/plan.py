"""Cost and guarantee of a calibration, computed before any data are read.

A plan determines the whole mechanism: slopes, target rank, noise scale. It depends on public numbers only.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

from confide.candidates import AnyCandidates, Candidates
from confide.core.answer_law import gap_crossed
from confide.core.description import needed_text
from confide.core.design import Design, design_at
from confide.core.expected import UNLIKELY, candidates_of, expectation, records_for, terms_of
from confide.core.options import Choices
from confide.core.pilot import OnPilot, Pilot, on_pilot
from confide.core.population import ClassShift, shifted_population
from confide.core.reference_laws import law_of, typical_law
from confide.core.request import Request
from confide.core.rules import unusual
from confide.core.terms import Terms, typical_of_groups
from confide.core.threshold import Threshold
from confide.core.thresholds import Thresholds
from confide.guarantee import Guarantee
from confide.mechanisms import PrivacyStatement, Slopes
from confide.scores import score_kind
from confide.support import (
    MOST_RECORDS,
    Described,
    Level,
    Section,
    chance_text,
    check_unknown_arguments,
    decimal_text,
    positive_integer,
    takes_alpha,
)


@dataclass(frozen=True, repr=False)
class Plan(Described):
    """The mechanism for a request, with its guarantee and cost. A plan does not depend on data.

    Parameters
    ----------
    design
        Candidates, mechanism, guarantee and privacy loss.
    n
        The number of records for `target_rank`, `expected_excess` and `expected_coverage`.
    pilot
        A public sample for `on_pilot`; nothing else depends on it.

    Examples
    --------
    >>> p = plan(alpha=0.1, epsilon=1.0, n=1000)
    >>> round(p.expected_coverage, 3), p.records_needed
    (0.903, 162)
    """

    design: Design
    n: int
    pilot: Pilot | None = None

    @property
    def terms(self) -> Terms:
        """The terms of the threshold."""
        return self.design.terms

    @property
    def candidates(self) -> Candidates:
        """The candidate thresholds, the last one +inf."""
        return self.design.candidates

    @property
    def mechanism(self) -> Slopes | None:
        """Slopes, target rank and noise scale; None if no target rank suffices: the answer is +inf."""
        mechanism = self.design.mechanism
        assert mechanism is None or isinstance(mechanism, Slopes)
        return mechanism

    @property
    def guarantee(self) -> Guarantee:
        """The coverage guarantee of the calibration."""
        return self.design.guarantee

    @property
    def privacy(self) -> PrivacyStatement:
        """The privacy cost of the calibration."""
        return self.design.privacy

    @property
    def effective_n(self) -> int:
        """The n of all ranks: the number of records; with weights, about their total weight over the largest one."""
        return self.terms.effective(self.n)

    @property
    def target_rank(self) -> float:
        """The target rank of the mechanism with n records; a rank above `counted` stands for +inf."""
        return float(self.mechanism.target(self.effective_n)) if self.mechanism else math.inf

    @property
    def nonprivate_rank(self) -> int:
        """ceil((n+1)(1-alpha)), the rank of split conformal prediction without privacy; n is `counted`."""
        return math.ceil(self.terms.level * (self.effective_n + 1))

    @property
    def typical_scores(self) -> str:
        """The scores that expected coverage and probabilities are stated for, in words."""
        law = law_of(self.candidates)
        if law is None or not law.shape.has_unit:
            return "uniform scores"
        size = "the size of the guess" if law.around else "the size of the unit" if law.unit else "a size of about 1"
        return f"Gaussian residuals of {size}"

    @property
    def expected_coverage(self) -> float:
        """Mean coverage for typical scores: uniform ones, or Gaussian residuals with the right unit.

        Like all expectations, it is the mean over noisy numbers of records, if one is released.
        """
        return expectation(self.design, self.n).coverage

    @property
    def expected_excess(self) -> float:
        """Expected ranks above (n+1)(1-alpha) for typical scores: the cost of noise and candidates, in records."""
        return (self.expected_coverage - float(self.terms.level)) * (self.effective_n + 1)

    @property
    def unit_of_cost(self) -> str:
        """The unit of `expected_excess`, in words."""
        return "records" if self.terms.population is None else "records of the largest weight"

    @property
    def chance_of_all(self) -> float:
        """Probability that the answer is +inf, for typical scores."""
        return expectation(self.design, self.n).chance_of_all

    @property
    def chance_beyond(self) -> float:
        """Probability that the answer lies beyond all scores, +inf included, for typical scores."""
        return expectation(self.design, self.n).chance_beyond

    @property
    def gap(self) -> float:
        """The number of ranks after `nonprivate_rank` within which an empty candidate range is likely to be crossed.

        The range contains half of the candidates. If it begins within this many ranks after `nonprivate_rank`, the
        threshold tends to lie beyond the range, although one before it would be enough for the guarantee.
        """
        if self.mechanism is None:
            return math.inf
        shift = self.target_rank - float(self.terms.level * (self.effective_n + 1))
        rivals = self.mechanism.rivals(self.candidates.size)
        rise = self.mechanism.total_rise
        return gap_crossed(rise, rivals, shift, self.mechanism.slope_right, share=0.5)

    @property
    def coverage_at_most(self) -> float:
        """Upper bound on mean coverage of continuous scores, up to the mass of one bin (docs/theory.md, Theorem C4)."""
        if self.mechanism is None:
            return 1.0
        return self.mechanism.coverage_at_most(self.effective_n, self.candidates.size)

    @property
    def on_pilot(self) -> OnPilot | None:
        """Set sizes or widths, with those without privacy, if scores are as in the pilot sample; None without one."""
        if self.pilot is None:
            return None
        return on_pilot(self.pilot, self.mechanism, self.candidates, self.terms.level, self.effective_n)

    @property
    def records_needed(self) -> int:
        """About the number of records from which on the answer lies among the scores with probability 99 %.

        The number is accurate to about 10 %. With fewer records, +inf or a threshold beyond all typical scores soon
        becomes likely. Each public or noisy number of records has its own design. A release made by this plan needs as
        many records.
        """
        return records_for(self.terms)

    @property
    def enough_records(self) -> bool:
        """Whether `n` records suffice: the answer lies among the scores with probability at least 99 %."""
        return self.chance_beyond <= UNLIKELY

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings before a calibration: too few records, and numbers that are often mistaken."""
        notes = unusual(self.terms.alpha, self.terms.delta)
        if self.enough_records:
            return notes
        needed = max(self.records_needed, self.n + 1)
        too_few = (
            f"NOT ENOUGH RECORDS: with {self.n:,} the threshold is useless (+inf, or above every score) in "
            f"{chance_text(self.chance_beyond)} of calibrations; about {needed:,} are needed"
        )
        return too_few, *notes

    def _section(self) -> Section:
        sections = [self._with_n(), self._with_any_number()]
        if (on_pilot := self.on_pilot) is not None:
            like = f"With {self.n} records like the {on_pilot.records} of the pilot sample"
            sections.append(Section(like, facts=tuple(on_pilot.in_words)))
        return Section(
            "Plan",
            facts=(("promise", str(self.guarantee)), ("privacy", str(self.privacy))),
            warnings=tuple(self.remarks),
            parts=tuple(sections),
        )

    def _with_n(self) -> Section:
        infinite = chance_text(self.chance_of_all)
        beyond = chance_text(self.chance_beyond)
        if self.terms.population is None:
            bound = ("coverage at most", self._at_most())
        else:
            bound = ("their weight", f"that of about {self.effective_n} of the largest weight, which ranks are of")
        facts = (
            ("target rank", self._rank()),
            ("rank without privacy", f"{self.nonprivate_rank}" if self.nonprivate_rank <= self.effective_n else "+inf"),
            ("expected coverage", f"{self.expected_coverage:.4f}, on {self.typical_scores}"),
            ("beyond the request", f"about {excess_text(self)}"),
            ("chance of +inf", f"{infinite}; of +inf or a threshold above every score, {beyond}"),
            bound,
            ("gaps in the scores", self._crossed_gaps()),
        )
        return Section(f"With {self.n} calibration records", facts=facts)

    def _with_any_number(self) -> Section:
        facts = [
            ("records needed", needed_text(self.records_needed)),
            ("loss, add or remove one", _loss(self.privacy.loss("add_remove"))),
            ("loss, replace one", _loss(self.privacy.loss("replace_one"))),
            ("candidate thresholds", self.candidates.description),
        ]
        if (scale := self.terms.size_scale) is not None:
            text = f"released first, with noise of scale {scale:g}; the design follows it"
            facts.append(("number of records", text))
        return Section("With any number of records", facts=tuple(facts))

    def _crossed_gaps(self) -> str:
        if self.mechanism is None:
            return "a draw crosses every gap: the answer is +inf"
        near = f"within {self.gap:.0f} ranks of the non-private one"
        return f"a draw may cross one, half of the candidates wide, that starts {near}"

    def _at_most(self) -> str:
        # A score that is not continuous adds the mass between two candidates: for typical scores, the largest.
        below = typical_law(self.candidates)
        apart = float((below[1:] - below[:-1]).max(initial=below[0]))
        words = f"{min(1.0, self.coverage_at_most + apart):.4f} on average, on {self.typical_scores}: "
        return f"{words}{self.coverage_at_most:.4f} for continuous scores, and the mass between two candidates"

    def _rank(self) -> str:
        if math.isinf(self.target_rank):
            without = "whatever the data are" if self.terms.sized else "without reading the data"
            return f"none suffices: the answer is +inf, {without}"
        if self.target_rank > self.effective_n:
            return f"{self.target_rank:.2f}, above the number of records: +inf is the likely answer"
        return f"{self.target_rank:.2f}"

    def _brief(self) -> str:
        too_few = "" if self.enough_records else f", NOT ENOUGH RECORDS (about {self.records_needed} are needed)"
        rank = f"target rank {self._rank()} with {self.n} records"
        return f"alpha {float(self.terms.alpha):g}, {self.guarantee.brief}, {self.privacy.brief}, {rank}{too_few}"


def excess_text(plan: Plan) -> str:
    """The expected excess, and what of it lies above `coverage_at_most`: the mass between two candidates."""
    words = f"{plan.expected_excess:.1f} more {plan.unit_of_cost} covered than requested"
    apart = (plan.expected_coverage - plan.coverage_at_most) * (plan.effective_n + 1)
    if apart < 0.05:
        return words
    return f"{words}, at least {apart:.1f} of them because the candidates lie apart, and not for privacy"


def _loss(value: float) -> str:
    return "unlimited: the number of records is public" if math.isinf(value) else decimal_text(value)


@takes_alpha
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
    """Compute the guarantee and cost of a private calibration before any data are read.

    Parameters
    ----------
    alpha
        Miscoverage level in (0, 1): a float, a decimal string or a `Fraction`.
    epsilon
        Privacy loss per person, in [1e-6, 1e6]. Give this or `rho`.
    n
        Number of calibration records: the public number under `replace_one`. Under `add_remove` the cost is stated for
        it; a calibration does not use it.
    score
        The name of the score, which determines default candidates.
    candidates
        As in `calibrate`: the candidate thresholds, or how they are spread; or their number, +inf included.
    unit
        For residuals: a public typical size, as in `calibrate`.
    pilot
        A PUBLIC sample, to evaluate thresholds, sets and intervals: scores of shape (N,), or a `Pilot` that also has
        the scores of all classes. Never pass private records: the plan reveals what it computes from them. With
        weights, pass a sample of the new population: sums of weights are expected to be spread as its scores are.
    class_weights, weight_bound
        As in `calibrate`: for a guarantee for a population with a known shift.
    **choices
        The fields of `Choices`, without `mechanism`.

    Raises
    ------
    InputError, InputTypeError
        If an argument is out of range or of the wrong type.

    Examples
    --------
    >>> p = plan(alpha=0.1, epsilon=1.0, n=1000, neighbors="replace_one")
    >>> p.target_rank, p.nonprivate_rank
    (903.3125, 901)
    """
    check_unknown_arguments("plan", choices, set(Choices.__annotations__) - {"mechanism"})
    population = shifted_population(class_weights, weight_bound)
    request = Request(
        alpha=alpha, epsilon=epsilon, score=score_kind(score).name, candidates=candidates, unit=unit,
        population=population, **choices,
    )  # fmt: skip
    (terms,) = request.terms.values()
    result = make_plan(terms, n)
    return result if pilot is None else replace(result, pilot=Pilot.of(pilot, score))


def make_plan(terms: Terms, n: int) -> Plan:
    """The plan for these terms, stated for n records; with a noisy number, the design is that for n."""
    n = positive_integer("n", n, most=MOST_RECORDS)
    return Plan(design_at(terms, n), n)


def plan_of(release: Thresholds) -> Plan:
    """The plan of a release with one threshold, by slopes."""
    (terms,) = terms_of(release).values()
    (threshold,) = release.parts.values()
    n = records_of_design(threshold)
    candidates = candidates_of(threshold)
    return Plan(Design(terms, n, candidates, threshold.mechanism, threshold.guarantee, threshold.privacy), n)


def records_of_design(threshold: Threshold) -> int:
    """The public number of records, or the secret one of the design: for the noisy number, or a guess."""
    if threshold.n is not None:
        return threshold.n
    n_min = threshold.guarantee.n_min or 1
    return typical_of_groups(1, n_min) if threshold.size is None else max(n_min, threshold.size.design_for)
