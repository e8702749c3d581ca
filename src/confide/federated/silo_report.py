"""Silo by silo: a pooled threshold can protect the average and fail a hospital, so look, and offer a silo its own.

Everything here runs in a silo, on its own scores. What leaves it is a `SiloReport`, whose estimate is private, or a
calibration of the silo's own.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
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
from confide.federated.envelope import fields_of, read_document, write_document
from confide.federated.refusals import Refusal
from confide.federated.silo_ledger import SiloLedger
from confide.ledger import Cost, Ledger
from confide.mechanisms import practically_none
from confide.noisy_counts import draw_counts, one_count_interval
from confide.releases import Calibration
from confide.sets import CoverageEstimate
from confide.support import (
    MOST_RECORDS,
    Level,
    check_versions,
    exact_level,
    library_versions,
    optional_versions,
    positive_integer,
    privacy_loss,
    read_as,
    write_text,
)

KIND = "confide.federated.silo-report"


@dataclass(frozen=True)
class SiloReport:
    """A private estimate of the coverage that a threshold has in one silo.

    Parameters
    ----------
    silo
        Its name.
    estimate
        Share of the silo's records at or below the threshold, with noise, cut to [0, 1], and an interval for the
        coverage of its population.
    epsilon
        What it cost when one record is replaced; the number of records is public.
    versions
        The libraries that drew the noise; empty where the file does not say.
    """

    silo: str
    estimate: CoverageEstimate
    epsilon: float
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", MappingProxyType(dict(self.versions)))

    def to_json(self) -> str:
        """The report as a JSON document with a schema version and a checksum."""
        content = {"silo": self.silo, "epsilon": self.epsilon, "coverage": asdict(self.estimate)}
        if not self.versions:
            return write_document(KIND, content)
        return write_document(KIND, {**content, "versions": dict(self.versions)}, schema=2)

    @classmethod
    def from_json(cls, text: str) -> "SiloReport":
        """Read what `to_json` wrote.

        Raises
        ------
        FormatError
            If the text is no report of a silo, or was altered.
        """
        try:
            with fields_of("report", read_document(KIND, text, since_2=frozenset({"versions"}))) as fields:
                silo, epsilon = fields.take("silo", str), privacy_loss("epsilon", fields.take("epsilon", (float, int)))
                found = fields.group("coverage")
                names = ("value", "low", "high", "confidence")
                value, low, high, confidence = (float(found.take(name, (float, int))) for name in names)
                n = positive_integer("n", found.take("n", int), most=MOST_RECORDS)
                found.finish()
                if not 0 <= low <= high <= 1 or not 0 <= value <= 1 or not 0 < confidence < 1:
                    raise Refusal("malformed", "the coverage and its interval must lie in [0, 1]")
                return cls(silo, CoverageEstimate(value, low, high, confidence, n), epsilon, optional_versions(fields))
        except Refusal as refusal:
            raise FormatError(f"the silo's report cannot be used: {refusal}") from None

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write `to_json()` to a file, atomically."""
        write_text(path, self.to_json(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> "SiloReport":
        """Read a file written by `save`."""
        return read_as(path, cls.from_json)

    def __str__(self) -> str:
        weak = practically_none(self.epsilon)
        return f"{self.silo}: coverage {self.estimate}, privacy loss {self.epsilon:g}{f': {weak}' if weak else ''}"


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
    """How well a released threshold covers in this silo, privately.

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
        Loss when one record is replaced.
    confidence
        Of the interval.
    ledger
        Where the loss is charged before the noise is drawn; asked the same again about the same records, the same
        report costs nothing, with an `EarlierReleaseWarning`.
    budget
        What all releases in that ledger about these records together may cost.
    again
        Count and charge anew, although the same was asked before: new records of the same people.

    Raises
    ------
    BudgetError
        If the silo's ledger or the budget does not allow it.
    OtherDataError
        If the same was asked before, about other records.
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
        if Ledger(ledger.path).relation(ledger.dataset) == "add_remove":
            raise InputError(
                f"the ledger keeps the number of records of {ledger.dataset!r} secret, and a report makes it public; "
                "report on other records, under another data set's name"
            )
        request = {"report": "coverage", "threshold": repr(float(threshold)), "epsilon": loss, "n": n}
        seen = f"{covered} of {n}".encode()
        cost = Cost(loss, "replace_one", "coverage report")
        noisy, versions = _kept(ledger.release(cost, request, seen, count, budget, again=again))
    return SiloReport(name, _estimate(noisy, n, loss, error), loss, versions)


def _kept(text: str) -> tuple[int, dict[str, str]]:
    """A noisy count and the versions that drew it; of older ledgers the count alone."""
    kept = json.loads(text)
    noisy, versions = kept if isinstance(kept, list) else (kept, {})
    return int(noisy), check_versions("ledger's answer", versions)


def _counted(scores: ArrayLike | ScoreHistogram, threshold: float) -> tuple[int, int]:
    """How many scores there are, and how many of them are at or below the threshold."""
    if not isinstance(scores, ScoreHistogram):
        array = as_vector("scores", scores)
        return len(array), int(np.count_nonzero(array <= threshold))
    if scores.total == 0:
        raise InputError("scores must not be empty; found no values")
    if threshold not in scores.candidates.values:
        raise InputError("threshold must be among the candidates over which the scores were counted")
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
    """A threshold of the silo's own: coverage at least 1 - alpha for its own population, whatever the others are like.

    A plain private calibration (`confide.calibrate`) of the silo's scores, charged in the silo's ledger if `ledger` is
    given (`again` as there). With few records it is +inf.
    """
    paid: dict[str, Any] = {}
    if ledger is not None:
        paid = {"ledger": Ledger(ledger.path), "dataset": ledger.dataset, "again": again}
    return calibrate(scores, alpha, epsilon, score=score, candidates=candidates, neighbors="replace_one", **paid)


def shrunk_threshold(pooled: Calibration, own: Calibration) -> float:
    """The larger of the pooled threshold and an own one, made at a lower level as a safety net.

    What it guarantees: the own population is covered at the level of `own`, whatever the other silos are like; if all
    silos are alike, at the level of `pooled` as well, for raising a threshold never lowers coverage. Made at, say,
    alpha = 0.25 the net costs little and needs few records.

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
