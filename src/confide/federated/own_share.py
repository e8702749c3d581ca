"""A silo's own share of the promise: from the same round, without another question and without another charge.

Where every silo replies with a candidate, the reply is a threshold of the silo's own, at least S_(R) of its own records
with R of known law. So the larger of the common threshold and the reply covers new records of this silo with the
probability that the law of one reply certifies, whatever the other silos are like, and if all are alike with the common
promise as well (docs/federated.md, Theorem F1 with one silo). It is a function of what was sent: nothing is paid.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.errors import FormatError, InputError
from confide.federated.answers import read_answer
from confide.federated.calibration import FederatedCalibration
from confide.federated.envelope import MOST_CHARACTERS, fields_of, read_document, write_document
from confide.federated.order_statistics import order_statistic_coverage
from confide.federated.protocols.sorted_replies import SortedCandidates
from confide.federated.random_rank_reply import ReplyLaw
from confide.federated.refusals import Refusal
from confide.guarantee import Guarantee
from confide.releases import Calibration, register_kind

KIND = "confide.federated.own-share"


@dataclass(frozen=True, repr=False)
class OwnShare(Calibration):
    """The larger of a common threshold and one silo's own reply; its promise is about new records of this silo.

    Made by `own_share`; usable wherever a `Calibration` is.

    Parameters
    ----------
    released
        The common calibration.
    answer
        The silo's signed answer.
    silo
        Its name.
    """

    released: FederatedCalibration
    answer: str
    silo: str

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """The function c -> a bound on the probability that this silo's coverage given its records is below c."""
        if n is not None:
            raise InputError("n must be left out: the plan knows the sizes that are public")
        law = _law(self.released, self.silo)
        return lambda level: float(law.below(np.array([level]))[0])

    def coverage_at_most(self, n: int | None = None) -> float:
        """No upper bound better than 1 is stated for federated calibrations."""
        return 1.0

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnShare.from_json, (self.to_json(),)

    def to_json(self) -> str:
        """As JSON: the common calibration and the answer, from which all else follows."""
        parts = {"calibration": json.loads(self.released.to_json()), "answer": json.loads(self.answer)}
        return write_document(KIND, parts)

    @classmethod
    def from_json(cls, text: str) -> "OwnShare":
        """Read what `to_json` wrote; both parts are checked, and the rest is computed again.

        Raises
        ------
        FormatError
            If the text is no such document, was altered, or its parts do not belong together.
        """
        try:
            with fields_of("own share", read_document(KIND, text, 3 * MOST_CHARACTERS)) as fields:
                released = FederatedCalibration.from_json(json.dumps(fields.take("calibration", dict)))
                return own_share(released, json.dumps(fields.take("answer", dict), indent=1) + "\n")
        except Refusal as refusal:
            raise FormatError(f"the silo's own share cannot be used: {refusal}") from None

    def _brief(self) -> str:
        return f"{super()._brief()}, for new records of silo {self.silo!r}"

    def __str__(self) -> str:
        alike = f"where all silos are alike also: {self.released.guarantee}"
        return f"{super().__str__()}\nnew records: those of {self.silo!r}, whatever the other silos are like\n{alike}"


def own_share(released: FederatedCalibration, answer: str) -> OwnShare:
    """What a silo may promise its own population from the round that made the common threshold.

    Parameters
    ----------
    released
        What `aggregate` made.
    answer
        The silo's signed answer to its plan, whether or not it counted there.

    Returns
    -------
    OwnShare
        A threshold that is at least the common one, and what it guarantees for new records of this silo.

    Raises
    ------
    InputError
        If the method's answers are no thresholds: of a sum nothing of one silo opens, and `own_calibration`
        makes a threshold of its own for a charge of its own.
    Refusal
        If the answer is not one to the plan of the calibration.

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
    plan = released.plan
    if not isinstance(plan.protocol, SortedCandidates):
        raise InputError(
            f"a silo has no share of its own with the method {plan.method!r}: nothing of one silo opens; "
            "own_calibration makes a threshold of the silo's own, for a charge of its own"
        )
    one, common = read_answer(plan, answer), released.guarantee
    silo = plan.silos[one.silo]
    certified = _certified(_law(released, silo.name), plan.delta)
    guarantee = Guarantee(common.kind, certified, plan.delta, silo.size, common.n_min)
    return OwnShare(
        threshold=max(released.threshold, float(plan.candidates.values[one.reply])),
        alpha=released.alpha,
        guarantee=guarantee,
        privacy=released.privacy,
        mechanism=None,
        candidates=released.candidates,
        recipe=released.recipe,
        score=released.score,
        versions=released.versions,
        classes=released.classes,
        about=released.about,
        released=released,
        answer=answer,
        silo=silo.name,
    )


def _law(released: FederatedCalibration, silo: str) -> ReplyLaw:
    """What the reply of a silo dominates, by its own records and its own noise alone."""
    protocol = released.plan.protocol
    assert isinstance(protocol, SortedCandidates)
    return protocol.reply_law(released.plan, released.plan.position(silo))


def _certified(law: ReplyLaw, delta: float | None) -> float:
    """The coverage of one reply: on average, or the most that fails with probability delta at most."""
    if delta is None:
        return order_statistic_coverage([law], 1)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if float(law.below(np.array([middle]))[0]) <= delta else (low, middle)
    return low


register_kind(KIND, OwnShare.from_json)
