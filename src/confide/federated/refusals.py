"""Refusals: errors with a code from a fixed public list. Only the code may be sent to another party."""

from collections.abc import Sequence

from confide.errors import InputError

# The meaning of each code
CODES = {
    "malformed": "the message is not readable, is too large, or lacks a field",
    "altered": "the signature does not match the content",
    "foreign": "the message belongs to another plan or comes from a silo that is not in the plan",
    "duplicate": "the silo has answered already",
    "late": "the plan was closed before the silo answered",
    "out-of-range": "the answer is not one of the candidates",
    "implausible": "the opened sum cannot be that of the silos' records: a message is wrong",
    "missing": "not all required silos have answered",
    "coordinator-unknown": "the silo's policy names another coordinator",
    "not-allowed": "the silo's policy does not allow this plan",
    "not-invited": "the plan does not name this silo with its keys",
    "size-differs": "the silo does not have the number of records that the plan states",
    "budget-spent": "the silo's privacy budget does not suffice",
    "session-used": "the silo has used this session for another plan",
    "interrupted": "an earlier answer to this plan was charged and never finished; a new plan is needed",
    "internal": "the silo failed; its own log contains the reason",
}


class Refusal(InputError):  # noqa: N818 - a refusal is what the protocol calls it
    """The error for a plan or a message that is rejected with a code.

    Parameters
    ----------
    code
        One of `CODES`.
    detail
        The reason and the remedy, for the party that rejects; never a private value.
    silo
        Name of the message's silo, if its signature was valid.

    Examples
    --------
    >>> str(Refusal("late", "answer of 'north' came after the plan was closed; make a new plan"))
    "late: answer of 'north' came after the plan was closed; make a new plan"
    """

    def __init__(self, code: str, detail: str = "", silo: str | None = None) -> None:
        assert code in CODES
        self.code = code
        self.silo = silo
        super().__init__(code, detail or CODES[code])

    def __reduce__(self) -> tuple[type, tuple[str, str, str | None]]:
        return Refusal, (self.code, self.requirement, self.silo)


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are, for messages.

    Examples
    --------
    >>> listed(["north", "south", "east"], 2)
    'north, south and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
