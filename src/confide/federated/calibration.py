"""The result of a federated calibration: a `Calibration` that carries its plan, so that its claims can be checked.

Everything but the threshold and the names of those who answered follows from the plan and is computed again on reading.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confide.errors import FormatError, InputError
from confide.federated.envelope import MOST_CHARACTERS, digest, parse, take
from confide.federated.keys import Silo
from confide.federated.plan import FederatedPlan
from confide.federated.refusals import CODES, Refusal
from confide.guarantee.statement import Guarantee
from confide.releases.calibration import Calibration

if TYPE_CHECKING:
    from pathlib import Path

    from confide.evaluation import Evaluation
    from confide.federated.report import SiloReport

KIND = "confide.federated.calibration"
SCHEMA = 1


@dataclass(frozen=True)
class FederatedCalibration(Calibration):
    """What a federation releases. Made by `aggregate`; usable wherever a `Calibration` is.

    Parameters
    ----------
    plan_text
        The signed plan.
    plan
        The same, read.
    k
        Which of the sorted answers is the threshold; 0 if the method does not sort, more than the answers for +inf.
    answered
        Names of the silos whose answers count.
    refused
        Pairs (silo or message, code) that were left out.
    """

    plan_text: str
    plan: FederatedPlan
    k: int
    answered: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]

    @classmethod
    def build(
        cls,
        threshold: float,
        guarantee: Guarantee,
        plan_text: str,
        plan: FederatedPlan,
        k: int,
        answered: tuple[str, ...],
        refused: tuple[tuple[str, str], ...],
        versions: Mapping[str, str],
    ) -> "FederatedCalibration":
        """Fill in what follows from the plan."""
        return cls(
            threshold=threshold,
            alpha=plan.alpha,
            guarantee=guarantee,
            privacy=plan.privacy([plan.position(name) for name in answered]),
            mechanism=None,
            candidates=plan.candidates.size,
            recipe=plan.candidates.recipe,
            score=plan.score,
            versions=versions,
            plan_text=plan_text,
            plan=plan,
            k=k,
            answered=answered,
            refused=refused,
        )

    @property
    def silos(self) -> tuple[Silo, ...]:
        """The silos whose answers count."""
        return tuple(silo for silo in self.plan.silos if silo.name in self.answered)

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """The function c -> a bound on the probability that coverage given the calibration data is below c.

        Exact for continuous scores with `fedcp-qq`, an upper bound for the private methods (docs/federated.md, Theorem
        F2), and 1 for `fedcp-avg`. Sizes are those of the plan; `n` must be left out.
        """
        from confide.federated.order_statistics import conditional_coverage_failure
        from confide.federated.secure_sum import summed_failure, total_deficit

        if n is not None:
            raise InputError("n must be left out: a federated calibration knows the sizes that are public")
        plan = self.plan
        if plan.method == "fedcp-avg":
            return lambda level: 1.0
        if plan.method == "secure-sum":
            m = len(plan.silos)
            deficit = total_deficit(plan.scale, m, m - plan.colluding, plan.candidates.size)
            size, target = plan.size or 0, int(plan.targets[0])
            return lambda level: summed_failure(size, target, deficit, level)
        who = [plan.position(name) for name in self.answered]
        if self.k > len(who):
            return lambda level: 0.0
        arbitrary = plan.missing == "arbitrary"
        replies = [plan.reply(i) for i in (range(len(plan.silos)) if arbitrary else who)]
        honest = None if arbitrary else len(who) - plan.liars
        return lambda level: conditional_coverage_failure(replies, self.k - plan.liars, level, honest)

    def report(
        self,
        path: "str | Path | None" = None,
        *,
        title: str | None = None,
        evaluation: "Evaluation | str | Path | None" = None,
        overwrite: bool = False,
        answers: Sequence[str] = (),
        silo_reports: "Sequence[SiloReport]" = (),
    ) -> str:
        """The calibration as one self-contained HTML page for people; see `Calibration.report`.

        Parameters
        ----------
        answers
            The messages that the silos sent, to show their replies.
        silo_reports
            Private estimates of coverage that silos made (`confide.federated.report.coverage_in_silo`).
        """
        from confide.reports.write import write_report

        return write_report(
            self,
            path,
            title=title,
            evaluation=evaluation,
            overwrite=overwrite,
            answers=answers,
            silo_reports=silo_reports,
        )

    def coverage_at_most(self, n: int | None = None) -> float:
        """No upper bound better than 1 is stated for federated calibrations."""
        return 1.0

    def __reduce__(self) -> tuple[Any, ...]:
        return FederatedCalibration.from_json, (self.to_json(),)

    def to_json(self) -> str:
        """The calibration as a JSON document, its signed plan inside."""
        content = {
            "kind": KIND,
            "schema": SCHEMA,
            "threshold": "+inf" if math.isinf(self.threshold) else self.threshold,
            "k": self.k,
            "guarantee": guarantee_fields(self.guarantee),
            "epsilon": "none" if math.isinf(self.privacy.epsilon) else self.privacy.epsilon,
            "answered": list(self.answered),
            "refused": [list(pair) for pair in self.refused],
            "plan": json.loads(self.plan_text),
            "versions": dict(self.versions),
        }
        return json.dumps({**content, "sha256": digest(content)}, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "FederatedCalibration":
        """Read what `to_json` wrote; the plan's signature is checked and every claim computed again.

        Raises
        ------
        FormatError
            If the text is not a federated calibration, was altered, or claims what does not follow.
        """
        try:
            return _read(text)
        except Refusal as refusal:
            raise FormatError(f"the federated calibration cannot be used: {refusal}") from None

    def __str__(self) -> str:
        who = f"{len(self.answered)} of {len(self.plan.silos)} silos answered"
        left_out = "".join(f"\nleft out: {name} ({code})" for name, code in self.refused)
        base = super().__str__()
        if math.isinf(self.privacy.epsilon):
            base = base.rsplit("\nprivacy:", 1)[0] + "\nprivacy: none; this method sends order statistics of the scores"
        return f"{base}\nmethod: {self.plan.method}, {who}{left_out}"


def guarantee_fields(guarantee: Guarantee) -> dict[str, Any]:
    """As JSON values."""
    return {
        "kind": guarantee.kind,
        "coverage": guarantee.coverage,
        "delta": guarantee.delta,
        "n": guarantee.n,
        "n_min": guarantee.n_min,
    }


def _read(text: str) -> FederatedCalibration:
    content = parse(text, "federated calibration", 2 * MOST_CHARACTERS)
    fields = {"kind", "schema", "threshold", "k", "guarantee", "epsilon", "answered", "refused", "plan", "versions"}
    if content.get("kind") != KIND or content.get("schema") != SCHEMA:
        raise Refusal("malformed", f"the file must have kind {KIND!r} and schema {SCHEMA}")
    if digest({name: value for name, value in content.items() if name != "sha256"}) != content.pop("sha256", None):
        raise Refusal("altered", "the checksum does not match; get the original")
    if set(content) != fields:
        raise Refusal("malformed", "the file lacks fields or has unknown ones")
    plan_text = json.dumps(take(content, "plan", dict, "calibration"), indent=1) + "\n"
    plan, _ = FederatedPlan.read(plan_text)
    answered = tuple(str(name) for name in take(content, "answered", list, "calibration"))
    who = [plan.position(name) for name in answered]
    if len(set(who)) != len(who) or not who:
        raise Refusal("malformed", "the silos that answered must be named once each")
    k, guarantee = plan.certify(who)
    claimed = take(content, "guarantee", dict, "calibration")
    fair, coverage = guarantee_fields(guarantee), take(claimed, "coverage", (float, int), "guarantee")
    if {**claimed, "coverage": 0} != {**fair, "coverage": 0} or not 0 <= coverage <= fair["coverage"] + 1e-9:
        raise Refusal("malformed", "the calibration claims more coverage than its plan guarantees; do not use it")
    pairs = take(content, "refused", list, "calibration")
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise Refusal("malformed", "the silos that were refused must be pairs of a name and a code")
    refused = tuple((str(name), str(code)) for name, code in pairs)
    if content["k"] != k or not {code for _, code in refused} <= set(CODES):
        raise Refusal("malformed", "the calibration contradicts its plan; do not use it")
    stated = take(content, "threshold", (float, int, str), "calibration")
    threshold = math.inf if stated == "+inf" else float(stated) if not isinstance(stated, str) else math.nan
    possible = threshold in plan.candidates.values or (plan.method == "fedcp-avg" and math.isfinite(threshold))
    if not possible or (k > len(answered) and not math.isinf(threshold)):
        raise Refusal("malformed", "the threshold does not follow from the plan; do not use it")
    versions = {str(name): str(version) for name, version in take(content, "versions", dict, "calibration").items()}
    guarantee = Guarantee(guarantee.kind, float(coverage), guarantee.delta, guarantee.n, guarantee.n_min)
    read = FederatedCalibration.build(threshold, guarantee, plan_text, plan, k, answered, refused, versions)
    loss = "none" if math.isinf(read.privacy.epsilon) else read.privacy.epsilon
    if content["epsilon"] != loss:
        raise Refusal("malformed", "the calibration claims another privacy loss than its plan has; do not use it")
    return read
