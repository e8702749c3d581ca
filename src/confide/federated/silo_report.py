"""Coverage in one silo: its own share of the guarantee, private reports, and thresholds of its own.

A common threshold can cover the average and fail a silo. So each silo can check it and use a threshold of its own.

Own share (`own_share`), from the same round and without another charge. If silos reply with candidates, the reply is a
threshold of the silo's own records: it is at least their S_(R) with R of a known law. So the larger of the common
threshold and the reply covers new records of this silo with the probability that the law of one reply certifies, for
all distributions of the other silos. If silos are IID the common guarantee holds as well (docs/theory-federated.md,
Theorem F14). It is a function of published messages and has no privacy cost.

The other functions run in a silo, on its own scores. Their output is a `SiloReport`, whose estimate is private, or a
private calibration of the silo.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from confide.arrays import as_vector
from confide.calibration import calibrate
from confide.candidates import Candidates
from confide.counting import ScoreHistogram
from confide.errors import FormatError, InputError
from confide.federated.answers import read_answer
from confide.federated.calibration import (
    FederatedCalibration,
    FederatedRelease,
    part_of,
    plan_of,
    read_federated,
)
from confide.federated.certificates import order_statistic_coverage
from confide.federated.envelope import MOST_CHARACTERS
from confide.federated.protocols.sorted_replies import SortedReplies
from confide.federated.refusals import Refusal
from confide.federated.reply_laws import ReplyLaw
from confide.federated.silo_ledger import SiloLedger
from confide.guarantee import Guarantee
from confide.ledger import Cost
from confide.mechanisms import weak_privacy_text
from confide.noisy_counts import draw_counts, one_count_interval
from confide.releases import Calibration, register_kind
from confide.sets import CoverageEstimate
from confide.support import (
    VERSIONS,
    Described,
    Facts,
    Fields,
    Form,
    Level,
    Section,
    check_versions,
    exact_level,
    library_versions,
    privacy_loss,
    read_as,
    shapes,
    write_text,
)

SHARE_KIND = "confide.federated.own-share"


@dataclass(frozen=True, repr=False)
class OwnShare(Calibration):
    """The larger of a common threshold and one silo's reply, with a guarantee for new records of this silo.

    Made by `own_share`. It is a `Calibration`.

    Parameters
    ----------
    released
        The common calibration.
    answer
        The silo's signed answer.
    silo
        Name of the silo.
    of
        The level, group, class or side, as str, if there are several thresholds; else None.
    """

    released: FederatedRelease
    answer: str
    silo: str
    of: str | None = None

    @property
    def common(self) -> FederatedCalibration:
        """The common calibration whose threshold is compared with the reply."""
        return part_of(self.released, self.of)[1]

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """The function c -> a bound on the probability that this silo's coverage given its records is below c."""
        if n is not None:
            raise InputError("n", "must be left out: the plan contains the public sizes")
        law = _law(self.common, self.silo)
        return lambda level: float(law.below(np.array([level]))[0])

    def coverage_at_most(self, n: int | None = None) -> float:
        """1, because federated calibrations have no better upper bound."""
        return 1.0

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnShare.from_json, (self.to_json(),)

    def to_json(self) -> str:
        """The share as JSON: the common calibration and the answer, from which the rest follows."""
        parts = {"calibration": json.loads(self.released.to_json()), "answer": json.loads(self.answer)}
        return _SHARE.write(parts if self.of is None else {**parts, "of": self.of})

    @classmethod
    def from_json(cls, text: str) -> "OwnShare":
        """Read what `to_json` wrote; both parts are checked, and the rest is computed again.

        Raises
        ------
        FormatError
            If the text is not such a document, was altered, or its parts do not belong together.
        """
        try:
            return _SHARE.read(text, _read_share)
        except Refusal as refusal:
            raise FormatError("share", "must contain an answer to its calibration", remedy=str(refusal)) from None

    def _brief(self) -> str:
        return f"{super()._brief()}, for new records of silo {self.silo!r}"

    def _mechanism_facts(self) -> Facts:
        larger = f"the larger of the common threshold and the answer of {self.silo!r}"
        return (("own share", larger), *self.common._mechanism_facts())

    def _proof(self) -> str:
        return "docs/theory-federated.md, Theorem F14 with one silo"

    def _section(self) -> Section:
        base = super()._section()
        own = ("new records", f"those of {self.silo!r}, for all distributions of the other silos")
        return replace(base, facts=(*base.facts, own, ("also, for IID silos", str(self.common.guarantee))))


def own_share(released: FederatedRelease, answer: str, of: object = None) -> OwnShare:
    """A silo's threshold and guarantee for its own population, from the round that made the common threshold.

    Parameters
    ----------
    released
        The release of `aggregate`.
    answer
        The silo's signed answer to its plan. It need not count in the release.
    of
        For a release of several thresholds the level, group, class or side.

    Returns
    -------
    OwnShare
        A threshold that is at least the common one, and its guarantee for new records of this silo.

    Raises
    ------
    InputError
        If the method's answers are not thresholds: no single silo's part of a sum opens. In this case
        `own_calibration` makes a threshold for the silo, which is charged separately.
    Refusal
        If the answer does not belong to the plan of the calibration.

    Examples
    --------
    >>> import tempfile
    >>> from confide import federated
    >>> coordinator = federated.SiloKeys.generate("coordinator")
    >>> hospitals = [federated.SiloKeys.generate(name) for name in ("north", "south", "east")]
    >>> plan = federated.plan([keys.public(size=300) for keys in hospitals], 0.1, 4.0, method="private-qq", score="lac")
    >>> text, folder, answers = plan.sign(coordinator), tempfile.TemporaryDirectory(), []
    >>> policy = federated.Policy(coordinator.public().identity, budget=4.0, per_plan=4.0)
    >>> for i, keys in enumerate(hospitals):
    ...     ledger = federated.SiloLedger(f"{folder.name}/{keys.name}.db")
    ...     scores = np.random.default_rng(i).random(300) ** (3 - i)  # they differ
    ...     answers.append(federated.answer(text, scores, keys, policy, ledger))
    >>> released = federated.aggregate(text, answers)
    >>> east = own_share(released, answers[2])
    >>> east.threshold >= released.threshold, 0.8 < east.coverage < 0.92, east.silo
    (True, True, 'east')
    >>> folder.cleanup()
    """
    place, part = part_of(released, of)
    plan = part.plan
    if not plan.channel.single_replies or not isinstance(plan.protocol, SortedReplies):
        raise InputError(
            "plan",
            f"a silo has no share of its own with the method {plan.method!r}: no single silo's part opens",
            remedy="own_calibration makes a threshold for the silo, which is charged separately",
        )
    one, common = read_answer(plan_of(released), answer), part.guarantee
    reply = one.reply if of is None else one.reply[place]
    silo = plan.silos[one.silo]
    certified = _certified(_law(part, silo.name), plan.delta)
    guarantee = Guarantee(common.kind, certified, plan.delta, silo.size, common.n_min)
    return OwnShare(
        threshold=max(part.threshold, float(plan.candidates.values[reply])),
        alpha=part.alpha,
        guarantee=guarantee,
        privacy=released.privacy,
        mechanism=None,
        candidates=part.candidates,
        recipe=part.recipe,
        score=part.score,
        versions=part.versions,
        classes=part.classes,
        about=part.about,
        released=released,
        answer=answer,
        silo=silo.name,
        of=None if of is None else str(plan_of(released).names[place]),
    )


def _law(released: FederatedCalibration, silo: str) -> ReplyLaw:
    """The law that the reply of a silo dominates, by its own records and its own noise alone."""
    protocol = released.plan.protocol
    assert isinstance(protocol, SortedReplies)
    return protocol.reply_law(released.plan, released.plan.position(silo))


def _certified(law: ReplyLaw, delta: float | None) -> float:
    """The coverage of one reply: the mean, or the largest that fails with probability at most delta."""
    if delta is None:
        return order_statistic_coverage([law], 1)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if float(law.below(np.array([middle]))[0]) <= delta else (low, middle)
    return low


def _read_share(fields: Fields) -> OwnShare:
    released = read_federated(json.dumps(fields.read("calibration", shapes.OBJECT)))
    answer = json.dumps(fields.read("answer", shapes.OBJECT), indent=1) + "\n"
    return own_share(released, answer, fields.read("of", shapes.TEXT) if "of" in fields else None)


_SHARE = Form(SHARE_KIND, "share", most_characters=3 * MOST_CHARACTERS, integer_bits=64, indent=1)
register_kind(SHARE_KIND, OwnShare.from_json)


KIND = "confide.federated.silo-report"


@dataclass(frozen=True)
class SiloReport(Described):
    """A private estimate of the coverage that a threshold has in one silo.

    Parameters
    ----------
    silo
        Name of the silo.
    estimate
        Share of the silo's records at or below the threshold, with noise, cut to [0, 1], and an interval for the
        coverage of its population.
    epsilon
        Privacy loss when one record is replaced. The number of records is public.
    versions
        The versions of the libraries that drew the noise; empty if the file does not state them.
    """

    silo: str
    estimate: CoverageEstimate
    epsilon: float
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))

    def to_json(self) -> str:
        """The report as a JSON document with a schema version and a checksum."""
        return _REPORT.write(shapes.write_shape(self, _OF_REPORT))

    @classmethod
    def from_json(cls, text: str) -> "SiloReport":
        """Read what `to_json` wrote.

        Raises
        ------
        FormatError
            If the text is not a report of a silo, or was altered.
        """
        return _REPORT.read(text, _read_report)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write `to_json()` to a file, atomically."""
        write_text(path, self.to_json(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> "SiloReport":
        """Read a file written by `save`."""
        return read_as(path, cls.from_json)

    def _section(self) -> Section:
        weak = weak_privacy_text(self.epsilon)
        loss = f"privacy loss {self.epsilon:g}{f': {weak}' if weak else ''}"
        return Section("Report of a silo", f"{self.silo}: coverage {self.estimate}, {loss}")


def _read_report(fields: Fields) -> SiloReport:
    values = shapes.read_shape(fields, _OF_REPORT)
    return SiloReport(values["silo"], values["coverage"], values["epsilon"], values["versions"] or {})


def _estimate_of(values: dict[str, Any]) -> CoverageEstimate:
    made = CoverageEstimate(**values)
    if not made.low <= made.high or not 0 < made.confidence < 1:
        raise ValueError
    return made


_SHARE_OF_ONE = shapes.number(0, 1)
_OF_REPORT: shapes.Shape = {
    "silo": shapes.TEXT,
    "epsilon": shapes.Field("a privacy loss", (float, int), partial(privacy_loss, "epsilon")),
    "coverage": shapes.Field(
        "a coverage and its interval",
        (dict,),
        _estimate_of,
        attribute="estimate",
        shape={**dict.fromkeys(("value", "low", "high", "confidence"), _SHARE_OF_ONE), "n": shapes.integer()},
    ),
    "versions": shapes.optional(VERSIONS),
}
_REPORT = Form(KIND, "report", integer_bits=64, later=(frozenset({"versions"}),), indent=1)


def coverage_in_silo(
    name: str,
    scores: ArrayLike | ScoreHistogram,
    threshold: float,
    epsilon: float,
    confidence: Level = 0.95,
    *,
    ledger: SiloLedger | None = None,
    budget: float | None = None,
    again: bool = False,
) -> SiloReport:
    """Estimate privately how well a released threshold covers in this silo.

    The count of covered records gets discrete Laplace noise of scale 1/epsilon. The interval is exact for a binomial
    count with this noise (`confide.noisy_counts.one_count_interval`), if the records are independent of the threshold;
    on records that took part in the calibration it is slightly optimistic.

    Parameters
    ----------
    name
        The silo's name.
    scores
        Its scores, shape (n,), or a histogram of them over candidates that include the threshold; n becomes public.
    threshold
        The released threshold.
    epsilon
        Privacy loss when one record is replaced.
    confidence
        Confidence level of the interval.
    ledger
        The ledger in which the loss is charged before the noise is drawn. A repeated request about the same records
        returns the same report at no cost, with an `EarlierReleaseWarning`.
    budget
        Maximum total cost of all releases in that ledger about these records.
    again
        Count and charge anew for a repeated request: new records of the same people.

    Raises
    ------
    BudgetError
        If the silo's ledger or the budget does not allow it.
    OtherDataError
        If there was the same request about other records.
    InputError
        If the threshold is not among the candidates of a histogram, there are no records, or the ledger keeps their
        number secret.

    Examples
    --------
    >>> report = coverage_in_silo("north", np.random.default_rng(0).random(400), 0.9, epsilon=1.0)
    >>> 0.84 < report.estimate.value < 0.95, SiloReport.from_json(report.to_json()) == report
    (True, True)
    """
    loss, error = privacy_loss("epsilon", epsilon), 1 - float(exact_level("confidence", confidence))
    n, covered = _counted(scores, threshold)

    def count() -> str:
        return json.dumps([int(draw_counts([covered], loss)[0]), dict(library_versions())])

    if ledger is None:
        noisy, versions = _kept(count())
    else:
        if ledger.ledger.relation(ledger.dataset) == "add_remove":
            raise InputError(
                "ledger",
                f"keeps the number of records of {ledger.dataset!r} secret, and a report makes it public",
                remedy="Report on other records, under the name of another data set",
            )
        request = {"report": "coverage", "threshold": repr(float(threshold)), "epsilon": loss, "n": n}
        seen = f"{covered} of {n}".encode()
        cost = Cost(loss, "replace_one", "coverage report")
        noisy, versions = _kept(ledger.release(cost, request, seen, count, budget, again=again))
    return SiloReport(name, _estimate(noisy, n, loss, error), loss, versions)


def _kept(text: str) -> tuple[int, dict[str, str]]:
    """A noisy count and the library versions that drew it; older ledgers have the count only."""
    kept = json.loads(text)
    noisy, versions = kept if isinstance(kept, list) else (kept, {})
    return int(noisy), check_versions("ledger's answer", versions)


def _counted(scores: ArrayLike | ScoreHistogram, threshold: float) -> tuple[int, int]:
    """The number of scores, and the number of scores at or below the threshold."""
    if not isinstance(scores, ScoreHistogram):
        array = as_vector("scores", scores)
        return len(array), int(np.count_nonzero(array <= threshold))
    if scores.total == 0:
        raise InputError("scores", "must not be empty", got="no values")
    if threshold not in scores.candidates.values:
        raise InputError("threshold", "must be among the candidates over which the scores were counted")
    return scores.total, int(scores.counts[scores.candidates.values <= threshold].sum())


def _estimate(noisy: int, n: int, epsilon: float, error: float) -> CoverageEstimate:
    low, high = one_count_interval(noisy, n, epsilon, error=error)
    return CoverageEstimate(min(max(noisy / n, 0.0), 1.0), float(low), float(high), 1 - error, n)


def own_calibration(
    scores: ArrayLike,
    alpha: Level,
    epsilon: float,
    *,
    score: str | None = None,
    candidates: Candidates | None = None,
    ledger: SiloLedger | None = None,
    again: bool = False,
) -> Calibration:
    """A threshold for one silo: coverage at least 1 - alpha for its own population alone.

    It is a private calibration (`confide.calibrate`) of the silo's scores, charged in the silo's ledger if `ledger` is
    given (`again` as there). With few records it is +inf.
    """
    paid: dict[str, Any] = {}
    if ledger is not None:
        paid = {"ledger": ledger.ledger, "dataset": ledger.dataset, "again": again}
    return calibrate(scores, alpha, epsilon, score=score, candidates=candidates, neighbors="replace_one", **paid)


def shrunk_threshold(pooled: Calibration, own: Calibration) -> float:
    """The larger of the pooled threshold and a threshold of the silo at a lower level.

    It covers the silo's own population at the level of `own`, for all distributions of the others. If silos are IID
    it also covers at the level of `pooled`, because raising a threshold never lowers coverage. A lower level, for
    example alpha = 0.25, costs little and needs few records.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> grid = Candidates.unit(101)
    >>> pooled = calibrate(rng.random(3000) / 2, 0.1, 1.0, candidates=grid)
    >>> own = own_calibration(rng.random(300), 0.25, 1.0, candidates=grid)
    >>> shrunk_threshold(pooled, own) == own.threshold > pooled.threshold
    True
    """
    return math.inf if math.isinf(pooled.threshold) else max(pooled.threshold, own.threshold)
