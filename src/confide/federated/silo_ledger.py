"""A silo's answers and their cost in its budget ledger, and the checkpoint that detects a restored copy of the ledger.

An answer is a release like any other. Its request is the plan's digest, and its token is the plan's session, which a
ledger accepts once: a second request gets the first message again, and an interrupted request never gets an answer.

A restored backup, or a standby that took over too early, is a whole and valid ledger of an earlier day. Only a later
charge that is stored elsewhere, next to the keys of the silo, shows that charges are missing.
"""

import json
import math
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec

from confide.errors import BudgetError, FormatError, InputError, LedgerError, OtherDataWarning
from confide.federated.plan import FederatedPlan
from confide.federated.refusals import Refusal
from confide.ledger import (
    Charge,
    Checkpoint,
    Cost,
    Dataset,
    Entry,
    Ledger,
    Limit,
    MissingRecordsError,
    Server,
    decimal_form,
    is_hexadecimal,
    parse_location,
    pay_once,
)
from confide.support import (
    SCHEMA,
    FileKind,
    caller_stacklevel,
    check_schema,
    has_locks,
    locked,
    new_file,
    parse_document,
    read_as,
    refused_content,
    to_disk,
)

# The name of a silo's records in its ledger, by default
RECORDS = "calibration records"

MechanismInput = TypeVar("MechanismInput")


@dataclass(frozen=True)
class SiloLedger:
    """A silo's answers in a budget ledger, which it may share with other releases about the same records.

    Parameters
    ----------
    path
        The ledger's file, which is made if it does not exist. Keep it on a local disk of the silo. Or the address of a
        PostgreSQL server of the silo, as `confide.Ledger` takes it.
    dataset
        The name of the silo's records in the ledger. A release without privacy makes their spent budget infinite.

    Attributes
    ----------
    ledger
        The ledger itself.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     SiloLedger(Path(folder) / "budget.db").spent
    0.0
    """

    path: str | Path | Server
    dataset: str = RECORDS

    ledger: Ledger = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", parse_location(self.path))
        object.__setattr__(self, "ledger", Ledger(self.path))

    @property
    def spent(self) -> float:
        """The sum of all losses charged on the silo's records so far, other releases included.

        Infinite after a release without privacy.
        """
        balance = self.ledger.balance(self.dataset)
        return 0.0 if balance is None else balance.totals.epsilon

    @property
    def identity(self) -> str:
        """Identity of this ledger for public files: see `confide.Ledger.identity`."""
        return self.ledger.identity()

    def answered(self, plan: FederatedPlan) -> str | None:
        """Time at which this plan was answered, UTC, ISO 8601; None if it was not."""
        entry = self.ledger.entry(plan.session)
        return None if entry is None or entry.request != plan.digest or entry.release is None else entry.charged_at

    def cost(self, plan: FederatedPlan, own: int) -> Cost:
        """The charge for the answer of silo `own`: its loss under the adjacency of the ledger's account.

        Raises
        ------
        InputError
            If the ledger accounts for these records under an adjacency for which the plan has no finite loss.
        """
        return Cost.of(plan.privacy([own]), plan.method, self.ledger.relation(self.dataset))

    def charge_answer(
        self,
        plan: FederatedPlan,
        cost: Cost,
        budget: float,
        read: Callable[[], MechanismInput],
        fingerprint_bytes: Callable[[MechanismInput], bytes],
        draw: Callable[[MechanismInput], str],
        *,
        read_again: Callable[[], bytes],
    ) -> str:
        """The message that answers a plan: the stored one, or a new one, which is charged first.

        The cost is that of the method `cost`, and `budget` bounds the total cost of all releases about these records.
        `read`, `fingerprint_bytes` and `draw` are arguments of `confide.ledger.pay_once`. If an answer is stored,
        `read_again` returns the fingerprint input of the present data.

        Warns
        -----
        OtherDataWarning
            If the stored answer is from other data.

        Raises
        ------
        Refusal
            `session-used` if the session served another plan, `interrupted` if an answer was charged and never
            finished, `budget-spent` if the ledger's limit or the budget does not allow it.
        InputError
            If the ledger accounts for these records under another adjacency than that of the cost.
        """

        # Only a finished answer to this plan is returned again
        def stored_answer(entry: Entry) -> str:
            if entry.request != plan.digest:
                raise Refusal("session-used")
            if entry.release is None:
                raise Refusal("interrupted")
            self._point_out_other_data(entry, read_again())
            return entry.release

        # Charge, draw and store, within the limit of the ledger and the budget of the policy
        charge = Charge(Dataset(self.dataset), cost, plan.digest, plan.session)
        limit = Limit(budget)
        try:
            return pay_once(self.ledger, charge, read, fingerprint_bytes, draw, reuse=stored_answer, at_most=limit)
        except BudgetError as error:
            raise Refusal("budget-spent", self._policy_exceeded(cost, budget) or str(error)) from None

    def _point_out_other_data(self, entry: Entry, mechanism_input: bytes) -> None:
        if not self.ledger.is_about(entry, mechanism_input):
            text = (
                f"the answer of {entry.charged_at} was made from other data than these; it is returned unchanged, and "
                "nothing was charged; request a new plan for an answer from these data"
            )
            warnings.warn(OtherDataWarning(text), stacklevel=caller_stacklevel())

    def _policy_exceeded(self, cost: Cost, budget: float) -> str | None:
        """The reason for a rejected charge, if a larger budget of the policy would allow it; None otherwise."""
        balance = self.ledger.balance(self.dataset)
        spent = self.spent
        if math.isinf(spent) or (balance is not None and not balance.allows(cost)):
            return None
        return (
            f"the policy's budget for {self.dataset!r} is {decimal_form(budget)}, all releases so far cost "
            f"{decimal_form(spent)}, and this answer costs {decimal_form(cost.epsilon)}; request a plan that costs "
            "less, or raise the budget"
        )


# The file of a checkpoint
KIND = "confide/federated.checkpoint"
_MOST_CHARACTERS = 10_000


class _CheckpointForm(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["confide/federated.checkpoint"]
    schema: Literal[1]
    number: Annotated[int, msgspec.Meta(ge=0)]
    seal: str


def update_checkpoint(file: Path | None, ledger: Ledger, *, charged: bool) -> None:
    """Compare a ledger with the keys' checkpoint and write the new checkpoint, which is on disk when this returns.

    A ledger that was restored from a copy lacks the answers that were given since: a second answer to the same plan
    would cost a second loss that is not counted. So keys sign nothing if the ledger lacks the charge of their last
    answer, or if the checkpoint cannot be written. A loss of both files together cannot be detected.

    Call this function before a charge and again, with `charged`, between the charge and the draw. Keys that were not
    read from a file have no checkpoint.

    Raises
    ------
    LedgerError
        If the ledger lacks the charge of the checkpoint: an older copy of it was restored, or it is another ledger.
    Refusal
        `internal` if the checkpoint cannot be written, for example on a full disk. Then nothing may be signed.
    """
    if file is None:
        return
    try:
        with locked(file, "checkpoint") if has_locks() else nullcontext():
            store_checkpoint(ledger, file)
    except FormatError:
        raise
    except MissingRecordsError as error:
        lost = "If it is lost, make new keys: with these keys the lost answers could be given again"
        raise LedgerError(error.argument, error.requirement, remedy=f"{error.remedy}. {lost}") from None
    except (InputError, OSError) as error:
        # The file cannot be written
        why = error.strerror if isinstance(error, OSError) else str(error)
        if charged:
            then = "so nothing was signed; the charge stands, and a charged answer needs a new plan"
        else:
            then = (
                "and a restored ledger would not be detected; nothing was charged. Keep the keys in a folder that this "
                "program can write"
            )
        raise Refusal("internal", f"the checkpoint next to the keys cannot be written ({why}), {then}") from None


def store_checkpoint(ledger: Ledger, path: Path) -> Checkpoint:
    """Check that a ledger still has the last charge stored in a file, and store the current last charge.

    The first call creates the file. It contains a number and a hash, nothing secret, and is on disk when this returns.

    Raises
    ------
    LedgerError
        If the stored charge is missing or differs: charges are missing in the ledger. The file is not changed.
    FormatError
        If the file is not a checkpoint.
    """
    # The file is read before the ledger, which is written first
    stored = read_as(path, _read_checkpoint) if path.exists() else Checkpoint()
    present = ledger.checkpoint(stored, repr(str(path)))

    # On disk, the file and its name
    with new_file(path, overwrite=True, kind=FileKind.CHECKPOINT) as temporary:
        content = {"kind": KIND, "schema": SCHEMA, "number": present.number, "seal": present.seal}
        temporary.write_text(json.dumps(content) + "\n")
        to_disk(temporary)
    to_disk(path.parent)
    return present


def _read_checkpoint(text: str) -> Checkpoint:
    content = parse_document(text, "checkpoint", _MOST_CHARACTERS, hint="Restore the file with the keys")
    check_schema(content, KIND, "checkpoint")
    with refused_content("checkpoint", "checkpoint"):
        stated = msgspec.convert(content, _CheckpointForm, strict=True)
    if not (is_hexadecimal(stated.seal, least=64) if stated.number else stated.seal == ""):
        raise FormatError("checkpoint.seal", "must be 64 hexadecimal digits, or empty before the first charge")
    return Checkpoint(stated.number, stated.seal)
