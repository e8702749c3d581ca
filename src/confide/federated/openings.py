"""The second round of a sum with dropouts: the survivor set (list of answers), the openings and the parts.

The list of a session names the silos whose answers are summed, and their answers, because a silo with a restored ledger
may have two. The coordinator signs an opening for each share holder (opener), with the list and the share holder's
encrypted shares of the listed answers. Each share holder returns a part, the sum of its shares. `needed` parts open the
sum, and every further one is a check. The list and the parts stay in the release, so that every reader can recompute
the sum.
"""

import base64
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from confide.errors import InputError
from confide.federated.answers import read_answers
from confide.federated.envelope import digest, fields_of, seal, unseal
from confide.federated.keys import SiloKeys
from confide.federated.plan import AnyPlan
from confide.federated.protocols import Counts, Dealt, Shared
from confide.federated.protocols.channels import read_ephemeral, read_shares
from confide.federated.refusals import Refusal
from confide.federated.several_plans import read_plan
from confide.federated.sharing import Elements, NotOnePolynomialError, combine, unpack
from confide.support import Fields, shapes

Counted: TypeAlias = tuple[tuple[str, str], ...]
"""The names of silos, sorted, and the fresh public keys of their answers."""


def read_counted(plan: AnyPlan, pairs: Sequence[Any]) -> Counted:
    """Check a list of silos of the plan: sorted, each once, and as many as the plan requires.

    Raises
    ------
    Refusal
        `malformed`, `foreign` or `too-few`.
    """
    if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        raise Refusal("malformed", "the list must contain pairs of a name and a key")
    names = [name for name, _ in pairs]
    if names != sorted(set(names)):
        raise Refusal("malformed", "the list must be sorted and name each silo once")
    known = {silo.name for silo in plan.silos}
    if not known.issuperset(names):
        raise Refusal("foreign", "the list names silos that the plan does not name")
    if len(names) < (least := opened_sum(plan).least(plan.asks[0])):
        raise Refusal("too-few", f"the list must have at least {least} silos; found {len(names)}")
    return tuple((name, read_ephemeral(key)) for name, key in pairs)


def list_digest(plan: AnyPlan, counted: Counted) -> str:
    """The digest of a plan and a list, which parts of this list have in common."""
    return digest([plan.digest, [list(pair) for pair in counted]])


def opened_sum(plan: AnyPlan) -> Shared:
    """The channel of a plan of a sum with dropouts."""
    if not isinstance(plan.channel, Shared):
        raise InputError(
            "plan",
            "must be for the method 'secure-sum' or 'fedcp2-qq-sum' with dropouts",
            remedy="Others have no second message",
        )
    return plan.channel


class Opening(NamedTuple):
    """The coordinator's request to one share holder: a list, and the encrypted shares of the answers on it."""

    to: str
    counted: Counted
    shares: list[str]


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
    read, envelope = read_plan(plan)
    channel = opened_sum(read)
    least = channel.least(read.asks[0])
    if keys.public().signing != envelope.signer:
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
    counted = [[read.silos[i].name, accepted[i].ephemeral] for i in order]
    texts = {}
    for place, i in enumerate(channel.openers):
        content = {
            "plan": read.digest,
            "session": read.session,
            "to": read.silos[i].name,
            "counted": counted,
            "shares": [accepted[j].shares[place] for j in order],
        }
        texts[read.silos[i].name] = seal("opening", content, keys.signing)
    return texts


def addressee(text: str) -> str | None:
    """The share holder that an opening is addressed to; None if it cannot be read."""
    try:
        return str(unseal("opening", text).content.get("to"))
    except Refusal:
        return None


def read_opening(plan: AnyPlan, text: str, coordinator: str) -> Opening:
    """Read and check an opening of the coordinator with this signing key.

    Raises
    ------
    Refusal
        `malformed`, `altered`, `coordinator-unknown`, `foreign` or `too-few`.
    """
    envelope = unseal("opening", text)
    opened_sum(plan)
    if envelope.signer != coordinator:
        raise Refusal("coordinator-unknown", "the opening is signed with another key than the plan")
    with fields_of("opening", envelope.content) as fields:
        if [fields.read(part, shapes.TEXT) for part in ("plan", "session")] != [plan.digest, plan.session]:
            raise Refusal("foreign", "the opening belongs to another plan")
        to, counted = fields.read("to", shapes.TEXT), read_counted(plan, fields.read("counted", shapes.LIST))
        shares = read_shares(fields, plan.width, len(counted))
    return Opening(to, counted, shares)


class Part(NamedTuple):
    """The message of a share holder: the digest of the list, the positions of its silos, and the sum of its shares."""

    opener: int
    counted: str
    places: tuple[int, ...]
    total: Elements
    text: str


@dataclass(frozen=True)
class OpenedList:
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

    def fields(self) -> dict[str, Any]:
        """The list and the parts as JSON values."""
        return {"counted": [list(pair) for pair in self.counted], "parts": [json.loads(text) for text in self.parts]}

    @classmethod
    def read(cls, plan: AnyPlan, fields: Fields) -> "OpenedList":
        """Read the list and the parts from JSON values."""
        counted, parts = read_counted(plan, fields.read("counted", shapes.LIST)), fields.read("parts", shapes.LIST)
        if not all(isinstance(part, dict) for part in parts):
            raise Refusal("malformed", "the parts must be messages")
        return cls(counted, tuple(json.dumps(part, indent=1) + "\n" for part in parts))

    def who(self, plan: AnyPlan) -> list[int]:
        """The positions of the silos on the list."""
        return sorted(plan.position(name) for name, _ in self.counted)

    def total(self, plan: AnyPlan) -> Counts:
        """The opened sum, shape (draws, m).

        Raises
        ------
        Refusal
            `missing`, `foreign`, `duplicate`, `inconsistent` or `implausible`, or the code of an invalid part.
        """
        total, wrong = _total(plan, self.counted, [read_part(plan, text) for text in self.parts])
        if wrong is not None:
            raise _contradicts(plan, wrong)
        return total


def open_parts(
    plan: AnyPlan, dealt: Mapping[int, Dealt], texts: Sequence[str], drop_refused: bool, after: int = 0
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
    needed = opened_sum(plan).needed
    lists = Counter((part.counted, part.places) for part in parts.values())
    listed, count = max(lists.items(), key=lambda item: (item[1], item[0]), default=(("", ()), 0))
    chosen = [part for part in parts.values() if (part.counted, part.places) == listed]
    if count < needed:
        silent = [plan.silos[i].name for i in opened_sum(plan).openers if i not in parts]
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


def read_part(plan: AnyPlan, text: str) -> Part:
    """Check one part against the plan.

    Raises
    ------
    Refusal
        `malformed`, `altered` or `foreign`.
    """
    channel, envelope = opened_sum(plan), unseal("part", text)
    with fields_of("part", envelope.content) as fields:
        if [fields.read(part, shapes.TEXT) for part in ("plan", "session")] != [plan.digest, plan.session]:
            raise Refusal("foreign", "the part belongs to another plan")
        i = plan.position(name := fields.read("silo", shapes.TEXT))
        if envelope.signer != plan.silos[i].signing or i not in channel.openers:
            raise Refusal("foreign", f"the part of {name!r} is not signed by a share holder of the plan")
        counted, places = fields.read("counted", shapes.TEXT), fields.read("places", shapes.LIST)
        if not all(type(place) is int and 0 <= place < len(plan.silos) for place in places):
            raise Refusal("malformed", "the part's places must be positions of silos in the plan")
        packed = base64.b64decode(fields.read("sum", shapes.TEXT), validate=True)
        total = unpack(packed, plan.width)
    return Part(i, counted, tuple(places), total, text)


def _read_parts(
    plan: AnyPlan, texts: Sequence[str], drop_refused: bool, after: int
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


def _counted(plan: AnyPlan, dealt: Mapping[int, Dealt], listed: str, places: Sequence[int]) -> Counted:
    """The list for which parts were made, from the given answers."""
    if absent := [plan.silos[i].name for i in places if i not in dealt]:
        raise Refusal("missing", f"the parts open a list with the answer of {absent[0]!r}; pass this answer, too")
    counted = tuple(sorted((plan.silos[i].name, dealt[i].ephemeral) for i in places))
    if list_digest(plan, counted) != listed:
        raise Refusal("foreign", "the parts open a list of other answers than these; pass the listed answers")
    return read_counted(plan, [list(pair) for pair in counted])


def _total(plan: AnyPlan, counted: Counted, parts: Sequence[Part]) -> tuple[Counts, int | None]:
    """The opened sum, and the position of a share holder whose part contradicts the others, or None."""
    channel, listed = opened_sum(plan), list_digest(plan, counted)
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
    total = values.reshape(len(plan.draws), -1)
    plan.refuse_total(sorted(plan.position(name) for name, _ in counted), total)
    return total, None if wrong is None else channel.openers[wrong - 1]


def _contradicts(plan: AnyPlan, wrong: int) -> Refusal:
    name = plan.silos[wrong].name
    return Refusal("inconsistent", f"the part of {name!r} contradicts those of all others; leave it out", name)
