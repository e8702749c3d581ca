"""The coordinator's step: a calibration from a plan and the silos' messages, certified for those that answered."""

import math
import warnings
from collections.abc import Sequence

from confide.core import Threshold, too_large
from confide.errors import CoverageWarning, InputError
from confide.federated.answers import distant_replies, read_answers, replies_of, sorted_refusals
from confide.federated.calibration import FederatedRelease, make_release
from confide.federated.keys import SiloKeys
from confide.federated.plan import FederatedPlan, read_plan
from confide.support import caller_stacklevel, library_versions


def aggregate(
    plan: str,
    answers: Sequence[str],
    *,
    keys: SiloKeys | None = None,
    drop_refused: bool = False,
) -> FederatedRelease:
    """Make the threshold, or the thresholds, of a plan from the silos' answers.

    Parameters
    ----------
    plan
        The signed plan.
    answers
        The messages. A copy of a message counts once.
    keys
        The coordinator's private keys, which signed the plan. The calibration is signed with them. By default it is not
        signed.
    drop_refused
        Leave out messages that are malformed, altered, foreign, late, out of range or contradict another one of the
        same silo, and record the code, instead of raising a `Refusal`. Their silos count as missing.

    Returns
    -------
    FederatedRelease
        Works with `confide.predict_set` and `confide.predict_interval`.

    Warns
    -----
    CoverageWarning
        If a threshold is +inf. Also if replies differ so much that silos are hardly IID, as the guarantee assumes: see
        `distant_replies`.

    Raises
    ------
    Refusal
        With the message's silo and the reason.
    InputError
        If the keys are not those that signed the plan.
    """
    # The answers that count
    read = read_plan(plan)
    check_keys(read, keys)
    messages, refused = read_answers(read, answers, drop_refused)
    replies = {i: message.reply for i, message in messages.items()}
    if far := distant_replies(read, replies_of(read, messages)):
        warnings.warn(CoverageWarning(far), stacklevel=caller_stacklevel())

    # The evidence: the messages, or their digests if only the sum is private
    who, versions = sorted(replies), library_versions()
    evidence = {i: messages[i].text if read.channel.single_replies else messages[i].digest for i in who}
    sent = {read.silos[i].name: item for i, item in evidence.items()}

    released = make_release(plan, who, read.add(replies), sorted_refusals(refused), versions, sent=sent)
    for name, threshold in released.by_name.items():
        if threshold.excludes_nothing:
            text = _useless(name, threshold, len(who), len(read.silos))
            warnings.warn(CoverageWarning(text), stacklevel=caller_stacklevel())
    return released if keys is None else released.signed(keys.signing)


def check_keys(plan: FederatedPlan, keys: SiloKeys | None) -> None:
    """Raise unless the keys, if there are any, signed the plan."""
    if keys is not None and plan.coordinator is not None and keys.public_keys().signing != plan.coordinator.signing:
        raise InputError("keys", "must be the coordinator's keys, which signed the plan", got="other keys")


def _useless(name: str, threshold: Threshold, answered: int, invited: int) -> str:
    """The warning about a threshold that excludes nothing; sizes are secret, so that it states reasons alone."""
    reason = "some silos may have too few records"
    if answered < invited:
        reason = f"more of the {invited} silos must answer, or {reason}"
    if threshold.threshold != math.inf:
        reason = f"{too_large(threshold)}; or {reason}"
    return f"the threshold{f' of {name}' if name else ''} is {threshold.text}; {reason}"
