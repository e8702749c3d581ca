"""The evidence in a signed release for its messages, and the files of releases, signed or not."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from confide.federated.answers import Answer, read_answer
from confide.federated.envelope import PREFIX, envelope, parse, verify_message
from confide.federated.plan import AnyPlan
from confide.federated.refusals import CODES, Refusal
from confide.federated.release_size import MOST_CHARACTERS_OF_RELEASE, fits_whole_answers
from confide.support import Form

Refused: TypeAlias = tuple[tuple[str | int, str], ...]
"""Messages left out: pairs of a silo, or the number of a message without a silo, and a code."""

CALIBRATION, SEVERAL = "calibration", "several"
"""The kinds of releases with one threshold, and with several."""


def evidence_of(plan: AnyPlan, text: str, messages: Sequence[Answer]) -> dict[str, Any]:
    """The evidence by silo: the messages that count, if all readers of the release may see them.

    A reply that is private by itself is private from these readers, too. For a masked vector the evidence is its
    digest, which is random because the masks are. With parts of share holders there is no evidence, because they list
    the answers. If all replies would make the file longer than the limit, the evidence is their digests; this follows
    from the plan, signed as `text`.
    """
    if not _has_evidence(plan):
        return {}
    by_digest = _by_digest(plan, text)
    return {plan.silos[one.silo].name: one.digest if by_digest else json.loads(one.text) for one in messages}


def read_evidence(plan: AnyPlan, text: str, sent: Mapping[str, Any], answered: Collection[str]) -> dict[int, Any]:
    """The replies by position, from the signed answers in the evidence of a release; empty if it has digests.

    Raises
    ------
    Refusal
        If the evidence is not the required one, or an answer cannot be used.
    """
    whole = {name: item for name, item in sent.items() if isinstance(item, dict)}
    digests = {name for name, item in sent.items() if isinstance(item, str) and re.fullmatch("[0-9a-f]{64}", item)}
    expected = set(answered) if _has_evidence(plan) else set()
    if expected != (digests if _by_digest(plan, text) else whole.keys()) or len(sent) != len(expected):
        raise Refusal("malformed", "the calibration does not contain the required evidence; do not use it")
    replies = {}
    for name, message in whole.items():
        one = read_answer(plan, json.dumps(message))
        replies[one.silo] = one.reply
        if plan.silos[one.silo].name != name:
            raise Refusal("malformed", "the calibration contains an answer under another name; do not use it")
    return replies


def read_answered(plan: AnyPlan, names: Sequence[Any]) -> list[int]:
    """The positions of the silos whose answers count, in the order of their names; each must occur once.

    Raises
    ------
    Refusal
        `malformed`, or `foreign`.
    """
    who = [plan.position(str(name)) for name in names]
    if len(set(who)) != len(who) or not who:
        raise Refusal("malformed", "the silos that answered must be named once each")
    return who


def read_refused(pairs: Sequence[Any]) -> Refused:
    """Read the messages left out and their codes.

    Raises
    ------
    Refusal
        `malformed`.
    """
    if not all(isinstance(pair, list) and len(pair) == 2 and type(pair[0]) in (str, int) for pair in pairs):
        raise Refusal("malformed", "rejected messages must be pairs of a name, or a message number, and a code")
    refused = tuple((sender, str(code)) for sender, code in pairs)
    if not {code for _, code in refused} <= set(CODES):
        raise Refusal("malformed", "the codes of rejected messages must be on the public list; do not use it")
    return refused


def write_release(kind: str, content: Mapping[str, Any], signer: str, signature: str | None) -> str:
    """The text of a release's file: signed by `signer` if there is a signature, else with a checksum."""
    if signature is None:
        return _form(kind).write(content)
    return envelope(kind, content, signer, signature)


def open_release(text: str) -> tuple[str, Mapping[str, Any], str | None, str | None]:
    """The kind and the content of a file, and its signature and signer, if it is signed."""
    most = MOST_CHARACTERS_OF_RELEASE
    found = parse(text, "file", most)
    kind = SEVERAL if found.get("kind") == PREFIX + SEVERAL else CALIBRATION
    if "content" in found and "signature" not in found:
        raise Refusal("malformed", "the signature of the release was removed; request the original")
    if "signature" not in found:
        return kind, _form(kind).open(text).content, None, None
    content, signer = verify_message(kind, text, most)
    return kind, content, str(found["signature"]), signer


def _form(kind: str) -> Form:
    return Form(PREFIX + kind, "release", most_characters=MOST_CHARACTERS_OF_RELEASE, integer_bits=64, indent=1)


def _by_digest(plan: AnyPlan, text: str) -> bool:
    """Whether the evidence is digests instead of whole answers; `text` is the signed plan."""
    return not plan.channel.single_replies or not fits_whole_answers(text, plan)


def _has_evidence(plan: AnyPlan) -> bool:
    return not plan.channel.second_message
