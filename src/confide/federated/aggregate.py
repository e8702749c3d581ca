"""What runs at the coordinator: a plan and the messages in, a calibration certified for those who answered out."""

import warnings
from collections.abc import Sequence

from confide.errors import CoverageWarning, FormatError, InputError
from confide.federated.answers import in_order, read_answers, replies_of, unlike_replies
from confide.federated.calibration import FederatedRelease, make_release, sign_release
from confide.federated.keys import SiloKeys
from confide.federated.openings import open_parts
from confide.federated.several_plans import read_plan
from confide.support import outside


def aggregate(
    plan: str,
    answers: Sequence[str],
    *,
    parts: Sequence[str] = (),
    keys: SiloKeys | None = None,
    drop_refused: bool = False,
) -> FederatedRelease:
    """Make the threshold, or those of several plans, from the answers of the silos that answered.

    Parameters
    ----------
    plan
        The signed plan, or several plans under one signature.
    answers
        The messages. A copy of a message counts once.
    parts
        For sums with dropouts: what the openers sent, of `open_part`. The silos whose answers were listed are
        those that answered; later answers are left out.
    keys
        The coordinator's private keys, which signed the plan: the calibration is signed with them, and carries what
        its threshold was made from, so that `verify` can tell. By default it is not signed.
    drop_refused
        Leave messages out that are malformed, altered, foreign, late, out of range or contradict another of the same
        silo, and record why, instead of refusing them all. Their silos count as not having answered.

    Returns
    -------
    FederatedCalibration, FederatedLevels, FederatedGroups or FederatedSides
        Works with `confide.predict_set` and `confide.predict_interval`.

    Warns
    -----
    CoverageWarning
        If replies lie so far apart that silos are hardly alike, as the promise assumes: see `unlike_replies`.

    Raises
    ------
    Refusal
        Naming the message's silo and what is wrong.
    InputError
        If the keys are not those that signed the plan.
    """
    read, envelope = read_plan(plan)
    if keys is not None and keys.face().signing != envelope.signer:
        raise InputError("keys", "must be the coordinator's, which signed the plan", got="others")
    messages, refused = read_answers(read, answers, drop_refused)
    accepted = {i: one.reply for i, one in messages.items()}
    if far := unlike_replies(read, replies_of(read, messages)):
        warnings.warn(CoverageWarning(far), stacklevel=outside())
    opened = None
    if parts:
        opened, others = open_parts(read, accepted, parts, drop_refused, after=len(answers))
        refused |= others
    who = sorted(accepted) if opened is None else opened.who(read)
    total = read.add(accepted) if opened is None else opened.total(read)
    made = make_release(plan, read, envelope, who, total, in_order(refused), opened)
    return made if keys is None else _readable(sign_release(made, keys, [messages[i] for i in who if i in messages]))


def _readable(made: FederatedRelease) -> FederatedRelease:
    """What was signed, read back as everybody will read it."""
    if made.signature is not None:
        try:
            type(made).from_json(made.to_json())
        except FormatError as error:
            raise InputError(
                "release", f"cannot be signed: {error}", remedy="Leave keys out, or ask for a smaller plan"
            ) from None
    return made
