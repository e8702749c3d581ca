"""Refusals with a code from a fixed public list: the code may travel, the sentence stays where it was raised."""

from confide.errors import InputError

CODES = {
    "malformed": "the message is not readable, is too large, or lacks a field",
    "altered": "the signature does not match the content",
    "foreign": "the message belongs to another plan or comes from a silo outside of it",
    "duplicate": "the silo has answered already",
    "late": "the plan was closed, or its answers were listed, before the silo answered",
    "out-of-range": "the answer is not one of the candidates",
    "implausible": "the opened sum cannot be that of the silos' records: a message is wrong",
    "missing": "not all silos that are needed have answered",
    "too-few": "the list has fewer silos than the plan's noise is made for",
    "unreadable": "a share of a silo does not open for this opener",
    "inconsistent": "the part of an opener does not fit those of the others",
    "coordinator-unknown": "the silo's policy pins another coordinator",
    "not-allowed": "the silo's policy does not allow this plan",
    "not-invited": "the plan does not name this silo with its keys",
    "size-differs": "the silo does not have the number of records that the plan states",
    "budget-spent": "the silo's privacy budget does not suffice",
    "session-used": "the silo has used this session for another plan or list",
    "interrupted": "an earlier answer to this plan was charged and never finished; a new plan is needed",
    "internal": "the silo failed; its own log says why",
}
"""What each code means."""


class Refusal(InputError):  # noqa: N818 - a refusal is what the protocol calls it
    """A plan or a message that is refused by name.

    Parameters
    ----------
    code
        One of `CODES`.
    detail
        What was found and what to do, for the side that refuses; never a private value.
    silo
        Whose message it was, if its signature was good.

    Examples
    --------
    >>> str(Refusal("late", "answer of 'north' came after the plan was closed; make a new plan"))
    "late: answer of 'north' came after the plan was closed; make a new plan"
    """

    def __init__(self, code: str, detail: str = "", silo: str | None = None) -> None:
        assert code in CODES
        self.code, self.silo = code, silo
        super().__init__(code, detail or CODES[code])

    def __reduce__(self) -> tuple[type, tuple[str, str, str | None]]:
        return Refusal, (self.code, self.requirement, self.silo)
