"""The coordinator's step: a calibration from a plan and the silos' messages, certified for those that answered."""

import math
import warnings
from collections.abc import Sequence

from confide.core import Threshold, too_large
from confide.errors import CoverageWarning, InputError
from confide.federated.answers import distant_replies, read_answers, replies_of, sorted_refusals
from confide.federated.calibration import FederatedRelease, make_release
from confide.federated.keys import SiloKeys
from confide.federated.openings import combine_parts
from confide.federated.plan import read_plan
from confide.support import caller_stacklevel, library_versions


def aggregate(
    plan: str,
    answers: Sequence[str],
    *,
    parts: Sequence[str] = (),
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
    parts
        For sums with dropouts: the share holders' messages from `open_part`. The silos that count are those on their
        list; later answers are left out.
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
    read = read_plan(plan)
    if keys is not None and read.coordinator is not None and keys.public_keys().signing != read.coordinator.signing:
        raise InputError("keys", "must be the coordinator's keys, which signed the plan", got="other keys")
    messages, refused = read_answers(read, answers, drop_refused)
    accepted = {i: one.reply for i, one in messages.items()}
    if far := distant_replies(read, replies_of(read, messages)):
        warnings.warn(CoverageWarning(far), stacklevel=caller_stacklevel())
    opened = None
    if parts:
        opened, others = combine_parts(read, accepted, parts, drop_refused, after=len(answers))
        refused |= others
    who = sorted(accepted) if opened is None else opened.who(read)
    total = read.add(accepted) if opened is None else opened.total(read)
    each = {} if opened is not None else {read.silos[i].name: messages[i] for i in who}
    sent = {name: one.text if read.channel.single_replies else one.digest for name, one in each.items()}
    versions = library_versions()
    made = make_release(plan, who, total, sorted_refusals(refused), versions, sent=sent, opened=opened)
    for name, part in made.by_name.items():
        if part.excludes_nothing:
            warnings.warn(
                CoverageWarning(_useless(name, part, len(who), len(read.silos))), stacklevel=caller_stacklevel()
            )
    return made if keys is None else made.signed(keys.signing)


def _useless(name: str, part: Threshold, answered: int, invited: int) -> str:
    """The warning about a threshold that excludes nothing; sizes are secret, so that it states reasons alone."""
    reason = "some silos may have too few records"
    if answered < invited:
        reason = f"more of the {invited} silos must answer, or {reason}"
    if part.threshold != math.inf:
        reason = f"{too_large(part)}; or {reason}"
    return f"the threshold{f' of {name}' if name else ''} is {part.text}; {reason}"
