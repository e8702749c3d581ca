"""What runs in a silo: one plan and the silo's own scores in, one small signed message out."""

from datetime import UTC, datetime

from numpy.typing import ArrayLike

from confide.counting import ScoreHistogram
from confide.errors import InputError, InputTypeError
from confide.federated.envelope import seal, write_time
from confide.federated.keys import SiloKeys
from confide.federated.plan import FederatedPlan
from confide.federated.policy import Policy
from confide.federated.refusals import Refusal
from confide.federated.silo_ledger import SiloLedger
from confide.scores import named_by


def answer(
    plan: str,
    scores: ArrayLike | ScoreHistogram,
    keys: SiloKeys,
    policy: Policy,
    ledger: SiloLedger,
    *,
    now: datetime | None = None,
) -> str:
    """Answer a plan once; asked again, return the same message.

    The plan is checked first, then the scores are counted, then the loss is charged durably in the silo's ledger, then
    the mechanism runs, and the message is stored there before it is returned.

    Parameters
    ----------
    plan
        The signed plan.
    scores
        The silo's conformity scores, shape (n,), or a histogram of them over the plan's candidates.
    keys
        The silo's private keys.
    policy
        What the silo agrees to.
    ledger
        Its budget ledger, which remembers answers and charges them.
    now
        The present time, with a time zone; by default the clock.

    Returns
    -------
    str
        A signed JSON message: the index of one candidate, a masked vector, or sealed shares.

    Warns
    -----
    OtherDataWarning
        If the plan was answered before, and the scores are others now: the old message is returned all the same.

    Raises
    ------
    Refusal
        With a code of `confide.federated.refusals`. Whether a silo refuses may depend on its data only where a score is
        invalid (`InputError`); that text must not travel.
    """
    time = now or datetime.now(UTC)
    read, envelope = FederatedPlan.read(plan)
    own = invited(read, keys)
    policy.check(read, envelope.signer, own)
    if (earlier := ledger.earlier_answer(read)) is not None:
        ledger.point_out_other_data(read, _seen_again(read, scores))
        return earlier
    if read.closed(time):
        raise Refusal("late", "the plan is closed; ask for a new one")
    if ledger.has_opened(read):
        raise Refusal("late", "this silo has helped to open the sum of the others; ask for a new plan")
    histogram = _counts(read, scores)
    if read.silos[own].size not in (None, histogram.total):
        raise Refusal("size-differs", "the silo does not have the number of records that the plan states")
    if (faster := ledger.charge(read, own, policy.budget)) is not None:
        ledger.point_out_other_data(read, _seen(histogram))
        return faster
    context = f"{read.session}|{read.digest}".encode()
    content = {
        "plan": read.digest,
        "session": read.session,
        "silo": keys.name,
        "answered": write_time(time),
        **read.protocol.message(read, own, histogram.counts, keys.agreement, context),
    }
    message = seal("answer", content, keys.signing)
    ledger.store_answer(read, message, _seen(histogram))
    return message


def invited(plan: FederatedPlan, keys: SiloKeys) -> int:
    """The place of a silo in a plan that names it with its keys; else `not-invited`."""
    me = keys.face().identity
    for i, silo in enumerate(plan.silos):
        if silo.identity == me:
            return i
    raise Refusal("not-invited", "the plan does not name this silo with its keys; send your public file again")


def _counts(plan: FederatedPlan, scores: ArrayLike | ScoreHistogram) -> ScoreHistogram:
    try:
        named_by(scores, plan.score, plan.classes)
    except InputError as error:
        raise InputError(f"scores must be those that the plan is for: {error}") from None
    if not isinstance(scores, ScoreHistogram):
        return ScoreHistogram.from_scores(scores, plan.candidates, plan.score)
    if scores.candidates != plan.candidates:
        raise InputTypeError("scores must be counted over the candidates of the plan; found others")
    return scores


def _seen(histogram: ScoreHistogram) -> bytes:
    """What the mechanism sees; the candidates are those of the plan."""
    return histogram.counts.astype("<i8").tobytes()


def _seen_again(plan: FederatedPlan, scores: ArrayLike | ScoreHistogram) -> bytes:
    """The same where an answer is kept already, so that scores which cannot be used are others and no error."""
    try:
        return _seen(_counts(plan, scores))
    except (InputError, InputTypeError):
        return b""
