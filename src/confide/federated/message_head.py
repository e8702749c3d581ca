"""The sender and the plan of a message, as the message states them: enough to sort files without a plan."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from confide.errors import InputError
from confide.federated.envelope import fields_of, read_time, verify_message, write_time
from confide.federated.keys import check_name
from confide.support import VERSIONS, shapes

_DIGEST, _SESSION = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{32}")


class MessageHead(NamedTuple):
    """The fields of a silo's answer without the reply.

    Parameters
    ----------
    silo
        The name of the silo.
    plan, session
        Digest and session of the answered plan.
    answered
        Time of the answer, UTC, ISO format.
    signer
        The Ed25519 key that signed it, hexadecimal. Only the plan shows whether it is that silo's key (`read_answer`).
    versions
        The silo's library versions.
    """

    silo: str
    plan: str
    session: str
    answered: str
    signer: str
    versions: Mapping[str, str]


def message_head(text: str) -> MessageHead:
    """The head of a silo's answer, after its signature is verified.

    Raises
    ------
    Refusal
        `malformed` or `altered`.
    """
    content, signer = verify_message("answer", text)
    names = ("silo", "plan", "session", "answered", "versions")
    with fields_of("answer", {name: content[name] for name in names if name in content}) as fields:
        silo, plan, session, answered = (fields.read(name, shapes.TEXT) for name in names[:-1])
        if not _DIGEST.fullmatch(plan) or not _SESSION.fullmatch(session):
            raise InputError("plan", "plan and session must be hexadecimal")
        when = write_time(read_time(answered))
        return MessageHead(check_name(silo), plan, session, when, signer, fields.read("versions", VERSIONS))


class RoundHead(NamedTuple):
    """The fields of a coordinator's opening, or of a share holder's part, without the shares.

    Parameters
    ----------
    opener
        The name of the share holder to which the opening is addressed, or that made the part.
    listed
        Number of silos on the list.
    plan, session, signer
        As in `MessageHead`.
    """

    opener: str
    listed: int
    plan: str
    session: str
    signer: str


def opening_head(text: str) -> RoundHead:
    """The head of the coordinator's opening for a share holder, after its signature is verified.

    Raises
    ------
    Refusal
        `malformed` or `altered`.
    """
    return _round_head("opening", text, "to", "counted")


def part_head(text: str) -> RoundHead:
    """The head of a share holder's part, after its signature is verified.

    Raises
    ------
    Refusal
        `malformed` or `altered`.
    """
    return _round_head("part", text, "silo", "places")


def _round_head(kind: str, text: str, who: str, listed: str) -> RoundHead:
    content, signer = verify_message(kind, text)
    names = (who, listed, "plan", "session")
    with fields_of(kind, {name: content[name] for name in names if name in content}) as fields:
        plan, session = fields.read("plan", shapes.TEXT), fields.read("session", shapes.TEXT)
        if not _DIGEST.fullmatch(plan) or not _SESSION.fullmatch(session):
            raise InputError("plan", "plan and session must be hexadecimal")
        name = check_name(fields.read(who, shapes.TEXT))
        return RoundHead(name, len(fields.read(listed, shapes.LIST)), plan, session, signer)
