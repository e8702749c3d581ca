"""The second round of a sum with dropouts: the survivor set (list of answers), the openings and the parts.

The list of a session names the silos whose answers are summed, and their answers, because a silo with a restored ledger
may have two. The coordinator signs an opening for each share holder (opener), with the list and the share holder's
encrypted shares of the listed answers. Each share holder returns a part, the sum of its shares. `needed` parts open the
sum, and every further one is a check. The list and the parts stay in the release, so that every reader can recompute
the sum.
"""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from confide.errors import InputError
from confide.federated.answers import read_answers
from confide.federated.keys import SiloKeys, check_name
from confide.federated.messages import Form, Message, digest, encode, read_content, read_message, sign
from confide.federated.plan import FederatedPlan, read_plan
from confide.federated.protocols import Shared, SharedAnswer
from confide.federated.protocols.channels import check_shares, read_ephemeral
from confide.federated.refusals import Refusal
from confide.federated.sharing import Elements, NotOnePolynomialError, combine, unpack
from confide.federated.terms import Counts

Counted: TypeAlias = tuple[tuple[str, str], ...]
"""The names of silos, sorted, and the fresh public keys of their answers."""


class Opening(Form):
    """The coordinator's request to one share holder: a list, and the encrypted shares of the answers on it."""

    plan: str
    to: str
    counted: Counted
    shares: list[str]


class Opened(Form):
    """What a share holder states: the digest of the list, the positions of its silos, and the sum of its shares."""

    plan: str
    silo: str
    counted: str
    places: tuple[int, ...]
    sum: str


def opening_head(text: str) -> Message[Opening]:
    """The coordinator's opening for a share holder without a plan, after its signature is verified.

    Raises
    ------
    Refusal
        `malformed` or `altered`.
    """
    message = read_message("opening", text, Opening)
    read_content("opening", lambda: check_name(message.content.to))
    return message


def part_head(text: str) -> Message[Opened]:
    """A share holder's part without a plan, after its signature is verified; raises as `opening_head`."""
    message = read_message("part", text, Opened)
    read_content("part", lambda: check_name(message.content.silo))
    return message


def check_counted(plan: FederatedPlan, counted: Counted) -> Counted:
    """Check a list of silos of the plan: sorted, each once, and as many as the plan requires.

    Raises
    ------
    Refusal
        `malformed`, `foreign` or `too-few`.
    """
    names = [name for name, _ in counted]
    if names != sorted(set(names)):
        raise Refusal("malformed", "the list must be sorted and name each silo once")
    if not {silo.name for silo in plan.silos}.issuperset(names):
        raise Refusal("foreign", "the list names silos that the plan does not name")
    if len(names) < (least := shared_channel(plan).least(plan.first)):
        raise Refusal("too-few", f"the list must have at least {least} silos; found {len(names)}")
    for _, key in counted:
        read_ephemeral(key)
    return counted


def list_digest(plan: FederatedPlan, counted: Counted) -> str:
    """The digest of a plan and a list, which parts of this list have in common."""
    return digest(encode([plan.digest, counted]))


def shared_channel(plan: FederatedPlan) -> Shared:
    """The channel of a plan of a sum with dropouts."""
    if not isinstance(plan.channel, Shared):
        raise InputError(
            "plan",
            "must be for the method 'secure-sum' or 'fedcp2-qq-sum' with dropouts",
            remedy="Others have no second message",
        )
    return plan.channel


def openings(plan: str, answers: Sequence[str], keys: SiloKeys, *, drop_refused: bool = False) -> dict[str, str]:
    """List the answers and make a signed opening for every share holder; the texts by the share holder's name.

    Make the list once: a share holder helps to open one list per session, and with two lists both may have too few
    parts. Share holders that have not answered get an opening as well. The same answers give the same texts.

    Parameters
    ----------
    plan
        The signed plan of a sum with dropouts.
    answers
        The messages of the silos.
    keys
        The coordinator's private keys, which signed the plan.
    drop_refused
        As in `aggregate`: leave unusable answers out instead of raising a `Refusal`.

    Raises
    ------
    Refusal
        `missing` if fewer silos answered than the plan's list needs, and as in `aggregate`.
    InputError
        If the plan has no second message, or other keys signed it.
    """
    read = read_plan(plan)
    channel = shared_channel(read)
    least = channel.least(read.first)
    if read.coordinator is None or keys.public_keys().signing != read.coordinator.signing:
        raise InputError("keys", "must be the coordinator's keys, which signed the plan", got="other keys")
    messages, _ = read_answers(read, answers, drop_refused)
    accepted = {i: one.reply for i, one in messages.items()}
    if len(accepted) < least:
        absent = [silo.name for i, silo in enumerate(read.silos) if i not in accepted]
        names = ", ".join(map(repr, absent[:5])) + (", ..." if len(absent) > 5 else "")
        raise Refusal(
            "missing",
            f"a list needs the answers of at least {least} of {len(read.silos)} silos; found "
            f"{len(accepted)}, without {names}; wait for them, or make a new plan, for which the others pay again",
        )
    order = sorted(accepted, key=lambda i: read.silos[i].name)
    counted = tuple((read.silos[i].name, accepted[i].ephemeral) for i in order)
    texts = {}
    for place, i in enumerate(channel.openers):
        name, shares = read.silos[i].name, [accepted[j].shares[place] for j in order]
        texts[name] = sign("opening", Opening(read.digest, name, counted, shares), keys.signing)
    return texts


def addressee(text: str) -> str | None:
    """The share holder that an opening is addressed to; None if it cannot be read."""
    try:
        return opening_head(text).content.to
    except Refusal:
        return None


def read_opening(plan: FederatedPlan, text: str) -> Opening:
    """Read and check an opening of the plan's coordinator.

    Raises
    ------
    Refusal
        `malformed`, `altered`, `coordinator-unknown`, `foreign` or `too-few`.
    """
    opening, signer, _ = opening_head(text)
    shared_channel(plan)
    if plan.coordinator is None or signer != plan.coordinator.signing:
        raise Refusal("coordinator-unknown", "the opening is signed with another key than the plan")
    if opening.plan != plan.digest:
        raise Refusal("foreign", "the opening belongs to another plan")
    check_counted(plan, opening.counted)
    check_shares(opening.shares, plan.width, len(opening.counted))
    return opening


class Part(NamedTuple):
    """The message of a share holder: the digest of the list, the positions of its silos, and the sum of its shares."""

    opener: int
    counted: str
    places: tuple[int, ...]
    total: Elements
    text: str


class OpenedList(Form):
    """The list of the summed answers, and the signed parts that open the sum.

    Parameters
    ----------
    counted
        The list.
    parts
        Signed messages of share holders, all for this list.
    """

    counted: Counted
    parts: tuple[str, ...]

    def who(self, plan: FederatedPlan) -> list[int]:
        """The positions of the silos on the list."""
        return sorted(plan.position(name) for name, _ in self.counted)

    def total(self, plan: FederatedPlan) -> Counts:
        """The opened sum, shape (draws, m).

        Raises
        ------
        Refusal
            `missing`, `foreign`, `duplicate`, `inconsistent` or `implausible`, or the code of an invalid part.
        """
        check_counted(plan, self.counted)
        total, wrong = _total(plan, self.counted, [read_part(plan, text) for text in self.parts])
        if wrong is not None:
            raise _contradicts(plan, wrong)
        return total


def combine_parts(
    plan: FederatedPlan, dealt: Mapping[int, SharedAnswer], texts: Sequence[str], drop_refused: bool, after: int = 0
) -> tuple[OpenedList, dict[str | int, str]]:
    """The list that the parts have opened, and the codes of messages left out, by silo or message number.

    Parameters
    ----------
    plan
        The plan.
    dealt
        The answers by position. Those that are not on the list are left out as `late`.
    texts
        The parts.
    drop_refused
        Leave out parts that cannot be used, and one that contradicts the others if it can be identified.
    after
        Number of messages that precede the parts.
    """
    parts, refused = _read_parts(plan, texts, drop_refused, after)
    needed = shared_channel(plan).needed
    lists = Counter((part.counted, part.places) for part in parts.values())
    listed, count = max(lists.items(), key=lambda item: (item[1], item[0]), default=(("", ()), 0))
    chosen = [part for part in parts.values() if (part.counted, part.places) == listed]
    if count < needed:
        silent = [plan.silos[i].name for i in shared_channel(plan).openers if i not in parts]
        names = ", ".join(map(repr, silent[:5])) + (", ..." if len(silent) > 5 else "")
        ask = f"ask {names}" if silent else "the share holders received different lists: make a new plan"
        raise Refusal("missing", f"the sum opens with {needed} parts of one list; found {count}; {ask}")
    for other in sorted(parts.keys() - {part.opener for part in chosen}):
        name = plan.silos[other].name
        if not drop_refused:
            raise Refusal("foreign", f"the part of {name!r} opens another list than the others", name)
        refused[name] = "foreign"
    counted = _counted(plan, dealt, *listed)
    refused |= {plan.silos[i].name: "late" for i in dealt if plan.silos[i].name not in dict(counted)}
    _, wrong = _total(plan, counted, chosen)
    if wrong is not None:
        if not drop_refused:
            raise _contradicts(plan, wrong)
        refused[plan.silos[wrong].name] = "inconsistent"
        chosen = [part for part in chosen if part.opener != wrong]
    return OpenedList(counted, tuple(part.text for part in chosen)), refused


def read_part(plan: FederatedPlan, text: str) -> Part:
    """Check one part against the plan.

    Raises
    ------
    Refusal
        `malformed`, `altered` or `foreign`.
    """
    channel, (part, signer, _) = shared_channel(plan), part_head(text)
    if part.plan != plan.digest:
        raise Refusal("foreign", "the part belongs to another plan")
    i = plan.position(part.silo)
    if signer != plan.silos[i].signing or i not in channel.openers:
        raise Refusal("foreign", f"the part of {part.silo!r} is not signed by a share holder of the plan")
    if not all(0 <= place < len(plan.silos) for place in part.places):
        raise Refusal("malformed", "the part's places must be positions of silos in the plan")
    total = read_content("part", lambda: unpack(base64.b64decode(part.sum, validate=True), plan.width))
    return Part(i, part.counted, part.places, total, text)


def _read_parts(
    plan: FederatedPlan, texts: Sequence[str], drop_refused: bool, after: int
) -> tuple[dict[int, Part], dict[str | int, str]]:
    parts: dict[int, Part] = {}
    refused: dict[str | int, str] = {}
    for number, text in enumerate(texts, start=after + 1):
        try:
            part = read_part(plan, text)
            name = plan.silos[part.opener].name
            earlier = parts.get(part.opener, part)
            if earlier[:3] != part[:3] or (earlier.total != part.total).any() or name in refused:
                parts.pop(part.opener, None)
                raise Refusal("duplicate", f"the part of {name!r} contradicts another of the same silo", name)
            parts[part.opener] = part
        except Refusal as refusal:
            if not drop_refused:
                raise
            refused[refusal.silo or number] = refusal.code
    return parts, refused


def _counted(plan: FederatedPlan, dealt: Mapping[int, SharedAnswer], listed: str, places: Sequence[int]) -> Counted:
    """The list for which parts were made, from the given answers."""
    if absent := [plan.silos[i].name for i in places if i not in dealt]:
        raise Refusal("missing", f"the parts open a list with the answer of {absent[0]!r}; pass this answer, too")
    counted = tuple(sorted((plan.silos[i].name, dealt[i].ephemeral) for i in places))
    if list_digest(plan, counted) != listed:
        raise Refusal("foreign", "the parts open a list of other answers than these; pass the listed answers")
    return check_counted(plan, counted)


def _total(plan: FederatedPlan, counted: Counted, parts: Sequence[Part]) -> tuple[Counts, int | None]:
    """The opened sum, and the position of a share holder whose part contradicts the others, or None."""
    channel, listed = shared_channel(plan), list_digest(plan, counted)
    if any(part.counted != listed for part in parts) or len({part.opener for part in parts}) < len(parts):
        raise Refusal("foreign", "the parts must be for one list, and from different share holders")
    if len(parts) < channel.needed:
        raise Refusal("missing", f"the sum opens with {channel.needed} parts; found {len(parts)}")
    try:
        point = {place: number for number, place in enumerate(channel.openers, start=1)}
        values, wrong = combine({point[part.opener]: part.total for part in parts}, channel.needed)
    except NotOnePolynomialError:
        raise Refusal(
            "inconsistent",
            f"the parts contradict each other; with {channel.needed + 2} parts one wrong part can be identified",
        ) from None
    total = values.reshape(len(plan.drawn), -1)
    plan.check_total(sorted(plan.position(name) for name, _ in counted), total)
    return total, None if wrong is None else channel.openers[wrong - 1]


def _contradicts(plan: FederatedPlan, wrong: int) -> Refusal:
    name = plan.silos[wrong].name
    return Refusal("inconsistent", f"the part of {name!r} contradicts those of all others; leave it out", name)
