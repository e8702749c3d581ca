"""Thresholds with a guarantee for new records of one silo, whatever the other silos are: `own_share` and `local`.

A common threshold can cover the average and fail a silo. A reply is itself a threshold of the silo's own records. So
the larger of both covers new records of this silo, without another charge (docs/theory-federated.md, F14). `local`
calibrates a threshold of the silo alone, which is charged.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Unpack

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from confide.candidates import AnyCandidates
from confide.core import Options, Release, calibrate, class_list, documents
from confide.errors import FormatError, InputTypeError
from confide.federated.answers import read_answer
from confide.federated.certificates import order_statistic_coverage
from confide.federated.messages import MOST_CHARACTERS
from confide.federated.protocols import ThresholdPlan
from confide.federated.protocols.sorted_replies import SortedReplies
from confide.federated.refusals import Refusal
from confide.federated.release import FederatedRelease, FederatedThreshold, PlanStatement
from confide.federated.reply_laws import ReplyLaw
from confide.support import Facts, Form, Section, bisect, exact_level, require

_KIND = "confide/federated.own-share"


@dataclass(frozen=True, repr=False, kw_only=True)
class OwnThreshold(FederatedThreshold):
    """The threshold of an `OwnShare`; `silo` is the name of the silo."""

    silo: str

    def coverage_failure(self, n: int | None = None) -> Callable[[float], float]:
        """The function c -> a bound on the probability that this silo's coverage given its records is below c."""
        require("n", n is None, "must be left out: the plan contains the public sizes")
        law = _law(self.plan, self.silo)
        return lambda level: float(law.below(np.array([level]))[0])

    @property
    def mechanism_facts(self) -> Facts:
        """The facts of the common threshold, and that the larger of two was taken."""
        larger = f"the larger of the common threshold and the answer of {self.silo!r}"
        return (("own share", larger), *super().mechanism_facts)

    @property
    def proof(self) -> str:
        """The theorem from which the guarantee follows."""
        return "docs/theory-federated.md, Theorem F14 with one silo"


@dataclass(frozen=True, repr=False, kw_only=True)
class OwnShare(Release):
    """The larger of a common threshold and one silo's reply, with a guarantee for new records of this silo.

    Made by `own_share`. It is a `Release` with one threshold. Its file has the common release and the answer; the rest
    is computed again when it is read.

    Parameters
    ----------
    released
        The common release.
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

    __hash__ = Release.__hash__

    @property
    def common(self) -> FederatedThreshold:
        """The common threshold that is compared with the reply."""
        return _common(self.released, self.of)[1]

    def _brief(self) -> str:
        return f"{super()._brief()}, for new records of silo {self.silo!r}"

    def _section(self) -> Section:
        base = super()._section()
        records = ("new records", f"those of {self.silo!r}, for all distributions of the other silos")
        return replace(base, facts=(*base.facts, records, ("also, for IID silos", str(self.common.guarantee))))


def own_share(released: FederatedRelease, answer: str, of: object = None) -> OwnShare:
    """A silo's threshold and guarantee for its own population, from the round that made the common threshold.

    Parameters
    ----------
    released
        The release of `aggregate`.
    answer
        The silo's signed answer to the plan of this release. The answer need not count in the release.
    of
        For a release of several thresholds the level, group, class or side.

    Returns
    -------
    OwnShare
        A threshold that is at least the common one, and its guarantee for new records of this silo.

    Raises
    ------
    InputError
        If the method reveals only a sum over all silos, so that no answer of a single silo is a threshold. In this case
        `confide.calibrate` makes a threshold for the silo, which is charged separately.
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
    # The common threshold, and the reply of the silo
    position, common = _common(released, of)
    plan = common.plan
    why = f"the method {plan.method!r} reveals only a sum over all silos, and no answer of a single silo"
    remedy = "A threshold for the silo by confide.calibrate is charged separately"
    require("plan", plan.channel.single_replies, why, remedy=remedy)
    message = read_answer(released.plan, answer)
    reply = message.reply[position]
    silo = plan.silos[message.silo]

    # The larger of both, with the certificate of one reply
    coverage = _certified(_law(plan, silo.name), plan.delta)
    claims = {
        "threshold": max(common.threshold, float(plan.candidates.values[reply])),
        "guarantee": replace(common.guarantee, coverage=coverage, n=silo.size, silos=None),
        "privacy": released.privacy,
        "silo": silo.name,
    }
    key = released.plan.names[position]
    return OwnShare(
        request=PlanStatement(released.plan, key),
        parts={None: OwnThreshold(**vars(common) | claims)},
        versions=released.versions,
        released=released,
        answer=answer,
        silo=silo.name,
        of=None if of is None else str(key),
    )


def _common(released: FederatedRelease, of: Any = None) -> tuple[int, FederatedThreshold]:
    """The position and the threshold of a level, group, class or side, or of the only threshold if `of` is None."""
    plan = released.plan
    thresholds = list(released.parts.values())
    if plan.by is None:
        require("of", of is None, "must be left out: there is one threshold", got=repr(of))
        return 0, thresholds[0]

    # A file has names as texts, and levels are equal as numbers
    names = [str(float(name)) if plan.by == "level" else name for name in plan.names]
    if plan.by == "level" and of is not None:
        of = str(float(exact_level("of", of)))
    texts = [str(name) for name in names]
    require("of", str(of) in texts, f"must be one of {class_list(tuple(names))}", got=repr(of))
    position = texts.index(str(of))
    return position, thresholds[position]


def _law(plan: ThresholdPlan, silo: str) -> ReplyLaw:
    """The law that the reply of a silo dominates, by its own records and its own noise alone."""
    assert isinstance(plan, SortedReplies)
    return plan.reply_law(plan.position(silo))


def _certified(law: ReplyLaw, delta: float | None) -> float:
    """The coverage of one reply: the mean, or the largest that fails with probability at most delta."""
    if delta is None:
        return order_statistic_coverage([law], 1)
    # To 2**-40, the last level before the first that fails more often
    steps = 2**40
    return (bisect(lambda step: float(law.below(np.array([step / steps]))[0]) > delta, 0, steps) - 1) / steps


def local(
    released: FederatedRelease,
    scores: ArrayLike,
    epsilon: float,
    *,
    candidates: AnyCandidates = None,
    **options: Unpack[Options],
) -> Release:
    """Calibrate a silo's own threshold by the request of the common one.

    Level, delta, score and classes are those of the plan, and so are public candidates or a unit that it states. The
    guarantee is for new records of this silo, and holds however unlike the other silos are. It is a release of one
    owner, and its privacy loss adds up with that of the silo's answer for people who are in both.

    Parameters
    ----------
    released
        The common release. Of several thresholds select one first: `released.alone(key)`.
    scores
        The silo's scores, shape (n,).
    epsilon
        The privacy loss.
    candidates
        Other candidates. `Candidates.around(released.threshold)` is allowed only for records that did **not** answer
        the plan, because the guarantee needs candidates that do not depend on the calibrated records.
    **options
        Other arguments of `confide.calibrate`, such as `ledger` and `dataset`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from confide import federated
    >>> coordinator = federated.SiloKeys.generate("coordinator")
    >>> hospitals = [federated.SiloKeys.generate(name) for name in ("north", "south", "east")]
    >>> plan = federated.plan([keys.public(size=300) for keys in hospitals], 0.1, 4.0, method="private-qq", score="lac")
    >>> text, folder, answers = plan.sign(coordinator), tempfile.TemporaryDirectory(), []
    >>> policy, rng = federated.Policy(coordinator.public().identity, 4.0, 4.0), np.random.default_rng(0)
    >>> for power, keys in enumerate(hospitals, 1):
    ...     ledger = federated.SiloLedger(f"{folder.name}/{keys.name}.db")
    ...     answers.append(federated.answer(text, rng.random(300) ** power, keys, policy, ledger))
    >>> released = federated.aggregate(text, answers)
    >>> north = local(released, rng.random(500), 1.0)
    >>> north.coverage, north.score, north.threshold > 0.85
    (0.9, 'lac', True)
    >>> folder.cleanup()
    """
    if not isinstance(released, FederatedRelease):
        raise InputTypeError("released", "must be the release of a federation", got=type(released).__name__)

    # The request of the common threshold, unless an option replaces a part of it
    common = released.only
    request = released.plan.request
    assert isinstance(common, FederatedThreshold)
    common_candidates: Any = request.candidates
    replaced: dict[str, Any] = {"delta": common.plan.delta, "unit": request.unit, **options}
    return calibrate(
        scores,
        common.alpha,
        epsilon,
        score=common.score,
        classes=request.classes,
        candidates=common_candidates if candidates is None else candidates,
        **replaced,
    )


# Files


class _Stated(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The common release and the answer, from which the rest follows: a file without kind, schema and checksum."""

    calibration: str
    answer: str
    of: str | None = None


def _content(share: OwnShare) -> dict[str, Any]:
    return dict(msgspec.to_builtins(_Stated(share.released.to_json(), share.answer, share.of)))


def _read(content: dict[str, Any]) -> OwnShare:
    stated = msgspec.convert(content, _Stated, strict=True)
    try:
        return own_share(FederatedRelease.from_json(stated.calibration), stated.answer, stated.of)
    except Refusal as refusal:
        raise FormatError("share", "must contain an answer to its calibration", remedy=str(refusal)) from None


_FORM = Form(_KIND, "share", most_characters=3 * MOST_CHARACTERS, integer_bits=64, indent=1)
documents.register(OwnShare, documents.Kind(_FORM, _content, _read))
