"""Fingerprints: what two people compare by another channel before they trust a public file.

An identity covers a name and both public keys; sizes are signed by the key that it covers, so they can be issued anew
without another comparison. A roster is the identities of all who take part.
"""

import hashlib
from collections.abc import Iterable
from typing import Protocol

_IDENTITY = b"confide/federated/identity/1\n"
_ROSTER = b"confide/federated/roster/1\n"


class Identified(Protocol):
    """Who has an identity."""

    @property
    def identity(self) -> str:
        """64 hexadecimal digits."""


def identity_of(name: str, signing: str, agreement: str) -> str:
    """SHA-256 over a name without a newline and two public keys of 64 hexadecimal digits each, hexadecimal.

    Examples
    --------
    >>> identity_of("north", "00" * 32, "11" * 32)[:8]
    '09fc018f'
    """
    keys = bytes.fromhex(signing) + bytes.fromhex(agreement)
    return hashlib.sha256(_IDENTITY + name.encode() + b"\n" + keys).hexdigest()


def roster(silos: Iterable[Identified]) -> str:
    r"""SHA-256 over the identities of all who take part, in whatever order they are given; 64 hexadecimal digits.

    Parameters
    ----------
    silos
        The silos of a plan and its coordinator, `Silo` objects.

    Examples
    --------
    Two silos that see the same number see the same keys of everybody, so one comparison serves instead of one for each
    silo:

    >>> from confide.federated import SiloKeys
    >>> north, south = SiloKeys("north", b"\1" * 32, b"\2" * 32), SiloKeys("south", b"\3" * 32, b"\4" * 32)
    >>> fingerprint(roster([south.public(), north.public(size=300)]))
    '86842 99050 48183 85556 75012 31362 22996 60270'
    """
    return hashlib.sha256(_ROSTER + b"".join(sorted(bytes.fromhex(silo.identity) for silo in silos))).hexdigest()


def fingerprint(digest: str, groups: int = 8) -> str:
    r"""An identity or a roster as people compare it: groups of 5 decimal digits, by default 40 digits or 132 bits.

    An identity's owner is honest, so who wants to be taken for it has to meet its very digits, by 2^132 attempts. Who
    makes up the rosters that several silos see may try all of them at once, and finds two that agree by half as many
    bits: 2^66 with 8 groups. The command line shows rosters in 12 groups, 199 bits and 2^99 attempts.

    Parameters
    ----------
    digest
        64 hexadecimal digits: an identity, or what `roster` returns.
    groups
        How many groups; fewer are the last ones of more.

    Examples
    --------
    >>> from confide.federated import SiloKeys
    >>> fingerprint(SiloKeys("north", b"\1" * 32, b"\2" * 32).public().identity)
    '56142 33978 35996 60287 69298 19768 37038 69948'
    """
    size = 5 * groups
    digits = f"{int(digest, 16) % 10**size:0{size}d}"
    return " ".join(digits[i : i + 5] for i in range(0, size, 5))
