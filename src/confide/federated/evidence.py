"""What a signed release tells of the messages that it was made from, and the files of releases, signed or not."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from confide.federated.answers import Answer, read_answer
from confide.federated.envelope import PREFIX, envelope, parse, unseal
from confide.federated.plan import AnyPlan
from confide.federated.refusals import CODES, Refusal
from confide.federated.release_size import MOST_CHARACTERS_OF_RELEASE, tells_whole
from confide.support import Form

Refused: TypeAlias = tuple[tuple[str | int, str], ...]
"""Pairs (silo, or place of a message of no silo, and code) that were left out."""


def told_of(plan: AnyPlan, text: str, messages: Sequence[Answer]) -> dict[str, Any]:
    """What of the messages that count may be known to all who read the release, by silo.

    A reply that is private by itself is private against them, too. Of a vector that protects a sum only the digest is
    told: its masks are random, and so is that. A message that is not private would be found from its digest by trying
    all replies, so nothing is told; nor where parts of openers list the answers. Of replies that would together make a
    longer file than is read, the digests are told, too; whether they would follows from the plan, signed as `text`.
    """
    if not _is_told(plan):
        return {}
    by_digest = not plan.channel.each or not tells_whole(text, plan)
    return {plan.silos[one.silo].name: one.digest if by_digest else json.loads(one.text) for one in messages}


def read_told(plan: AnyPlan, text: str, sent: Mapping[str, Any], answered: Collection[str]) -> dict[int, Any]:
    """The replies that a release tells, by place, from the silos' signed answers; none where it tells digests.

    Raises
    ------
    Refusal
        If it does not tell what it has to, or an answer cannot be used.
    """
    whole = {name: told for name, told in sent.items() if isinstance(told, dict)}
    digests = {name for name, told in sent.items() if isinstance(told, str) and re.fullmatch("[0-9a-f]{64}", told)}
    expected = set(answered) if _is_told(plan) else set()
    by_digest = not plan.channel.each
    if digests and not by_digest:  # 0.2 told whole answers, however long the file became
        by_digest = not tells_whole(text, plan)
    if expected != (digests if by_digest else whole.keys()) or len(sent) != len(expected):
        raise Refusal("malformed", "the calibration does not tell what it was made from; do not use it")
    replies = {}
    for name, message in whole.items():
        one = read_answer(plan, json.dumps(message))
        replies[one.silo] = one.reply
        if plan.silos[one.silo].name != name:
            raise Refusal("malformed", "the calibration tells an answer under another name; do not use it")
    return replies


def read_answered(plan: AnyPlan, names: Sequence[Any]) -> list[int]:
    """The places of the silos whose answers count, each once, as they are named.

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
    """What was left out, and why.

    Raises
    ------
    Refusal
        `malformed`.
    """
    if not all(isinstance(pair, list) and len(pair) == 2 and type(pair[0]) in (str, int) for pair in pairs):
        raise Refusal("malformed", "the messages that were refused must be pairs of a name, or a place, and a code")
    refused = tuple((sender, str(code)) for sender, code in pairs)
    if not {code for _, code in refused} <= set(CODES):
        raise Refusal("malformed", "the codes of the messages that were refused must be known; do not use it")
    return refused


def write_release(kind: str, content: Mapping[str, Any], signer: str, signature: str | None) -> str:
    """The file of a release: signed by `signer` if there is a signature, else with a checksum."""
    if signature is None:
        return _form(kind).write(content)
    return envelope(kind, content, signer, signature)


def open_release(kind: str, text: str) -> tuple[Mapping[str, Any], str | None, str | None]:
    """The content of a file; and its signature and the key of that, if it is signed."""
    most = MOST_CHARACTERS_OF_RELEASE
    found = parse(text, "file", most)
    if "signature" not in found:
        return _form(kind).open(text).content, None, None
    content, signer = unseal(kind, text, most)
    return content, str(found["signature"]), signer


def _form(kind: str) -> Form:
    return Form(PREFIX + kind, "release", most_characters=MOST_CHARACTERS_OF_RELEASE, integer_bits=64, indent=1)


def _is_told(plan: AnyPlan) -> bool:
    return plan.protocol.private and not plan.channel.second
