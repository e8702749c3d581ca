"""How long the answers and the release of a plan can become: checked when it is made, before a silo pays.

The bounds are in characters. They follow from the plan alone, so that writer and reader agree on what a signed release
contains of its answers: the answers themselves, or, where these would make it too long, their digests.
"""

import json
from collections.abc import Sequence
from typing import Protocol

from confide.errors import InputError
from confide.federated.envelope import MOST_CHARACTERS, envelope
from confide.federated.keys import Silo
from confide.federated.protocols import Channel, Shared
from confide.federated.terms import MOST_CANDIDATES
from confide.ledger import MOST_RELEASE as MOST_ANSWER
from confide.support import library_versions

MOST_CHARACTERS_OF_RELEASE = 2 * MOST_CHARACTERS
_NESTED = 3
"""How much deeper a plan or an answer lies in a release: so many blanks more in each line."""
_ENTRY = 40
"""A name or number in a list or object of the release, beside its own characters."""
_HEAD = 4_000
"""Guarantee, privacy loss, versions, signature: what every release states once."""


class Asked(Protocol):
    """A plan, of one threshold or of several."""

    @property
    def silos(self) -> tuple[Silo, ...]:
        """Who is invited."""

    @property
    def channel(self) -> Channel:
        """How the silos' vectors are added."""

    @property
    def asks(self) -> Sequence[object]:
        """One for each threshold."""

    @property
    def width(self) -> int:
        """How many numbers the vectors of one silo have together."""


def refuse_too_long(text: str, plan: Asked) -> None:
    """Refuse a plan, as it was signed, whose answers no ledger keeps or whose release could not be read.

    Raises
    ------
    InputError
        With the bound.
    """
    if _longest_answer(plan) > MOST_ANSWER:
        raise InputError(
            "plan",
            (
                f"the answers to {len(plan.asks)} thresholds would have more than the {MOST_ANSWER} "
                "characters that a ledger keeps"
            ),
            remedy="Plan fewer groups, classes or levels at once",
        )
    if _characters(text, plan, whole=False) > MOST_CHARACTERS_OF_RELEASE:
        raise InputError(
            "plan",
            (
                f"the release of {len(plan.asks)} thresholds with {len(plan.silos)} silos would have more "
                f"than {MOST_CHARACTERS_OF_RELEASE} characters"
            ),
            remedy="Plan fewer of them at once",
        )


def tells_whole(text: str, plan: Asked) -> bool:
    """Whether a signed release has room for the answers of all silos, where each is private by itself."""
    written = json.dumps(json.loads(text), indent=1) + "\n"  # as a release contains it
    return _characters(written, plan, whole=True) <= MOST_CHARACTERS_OF_RELEASE


def _characters(text: str, plan: Asked, *, whole: bool) -> int:
    silos, channel = plan.silos, plan.channel
    names = sum(len(silo.name) + _ENTRY for silo in silos)
    told = _longest_answer(plan) if whole else 64
    total = _nested(text) + _HEAD + 3 * _ENTRY * len(plan.asks) + 3 * names + len(silos) * told
    if isinstance(channel, Shared):
        of_sum = 4 * (8 * plan.width // 3 + 2)
        part = _HEAD + of_sum + len(silos) * (len(str(len(silos))) + 10)
        total += names + 64 * len(silos) + len(channel.openers) * part
    return total


def _longest_answer(plan: Asked) -> int:
    """What an answer of candidates has at most beside its silo's name; vectors of sums have bounds of their own."""
    replies = [_LONGEST_REPLY] * len(plan.asks) if plan.channel.each else []
    content = {
        "plan": "0" * 64,
        "session": "0" * 32,
        "silo": "",
        "answered": "2030-01-31T12:00:00Z",
        "versions": {name: version + _NEWER for name, version in library_versions().items()},
        "replies": replies,
    }
    return _nested(envelope("answer", content, "0" * 64, "0" * 128))


_LONGEST_REPLY = {"candidate": MOST_CANDIDATES, "threshold": -1.2345678901234567e-300}
_NEWER = ".dev1234"
"""How much longer the version of a library may be in a silo than here."""


def _nested(text: str) -> int:
    return len(text) + _NESTED * text.count("\n")
