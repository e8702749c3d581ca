"""What a silo has answered and what that cost: plans, sessions and losses, all of it in the silo's budget ledger.

An answer is a release like any other. Its request is the plan's digest, its token the plan's session, which a ledger
accepts once. The charge is on disk before the data are touched, the message before it is handed out. So a second
request gets the first message again, a session serves one answer, and a silo that was interrupted in between has spent
its budget rather than answered twice.

Which list of answers a silo has helped to open is kept in the same way, at no cost: on disk before the part leaves, and
one list per session.
"""

import hashlib
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from confide.errors import BudgetError, OtherDataError, OtherDataWarning
from confide.federated.plan import AnyPlan
from confide.federated.refusals import Refusal
from confide.ledger import (
    Cost,
    Dataset,
    Entry,
    Ledger,
    Limit,
    Once,
    Payment,
    Server,
    decimal_form,
    known,
    pay,
    place_of,
    request_digest,
)
from confide.support import outside

RECORDS = "calibration records"
OPENINGS = "sums opened with other silos"
"""Where a ledger keeps which list of a session it has opened: it is not about the silo's own records."""

Seen = TypeVar("Seen")


@dataclass(frozen=True)
class SiloLedger:
    """A silo's answers in a budget ledger, which it may share with other releases about the same records.

    Parameters
    ----------
    path
        The ledger's file; made if it does not exist. Keep it on a local disk of the silo. Or the address of a
        PostgreSQL server of the silo, as `confide.Ledger` takes it.
    dataset
        The name of the silo's records in the ledger. An answer without privacy makes what was spent on them infinite.

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
        object.__setattr__(self, "path", place_of(self.path))
        object.__setattr__(self, "ledger", Ledger(self.path))

    @property
    def spent(self) -> float:
        """The sum of all losses charged on the silo's records so far, other releases included.

        Infinite after an answer without privacy, also where 0.1 kept it apart, under this name and " (not private)".
        """
        accounts = self.ledger.accounts()
        names = (self.dataset, f"{self.dataset} (not private)")
        found = [account for name in names if (account := known(accounts, name)) is not None]
        return sum((account.spent().epsilon for account in found), 0.0)

    @property
    def identity(self) -> str:
        """What a public file says of this ledger, so that no other one serves: see `confide.Ledger.identity`."""
        return self.ledger.identity()

    def answered(self, plan: AnyPlan) -> str | None:
        """When this plan was answered, UTC, ISO 8601; None if it was not."""
        entry = self._entry(plan.session)
        return None if entry is None or entry.request != plan.digest or entry.release is None else entry.made

    def kept_answer(self, plan: AnyPlan) -> str | None:
        """The message that answered this plan; None if there is none, for whatever reason."""
        entry = self._entry(plan.session)
        return None if entry is None or entry.request != plan.digest else entry.release

    def has_opened(self, plan: AnyPlan) -> bool:
        """Whether this silo has written down a list of this plan's session that it opens."""
        return self._entry(opening_token(plan)) is not None

    def _entry(self, token: str) -> Entry | None:
        return self.ledger.snapshot().entry(token)

    def cost(self, plan: AnyPlan, own: int) -> Cost:
        """What the answer of silo `own` is charged: its loss under the relation of the ledger's account.

        Raises
        ------
        InputError
            If the ledger accounts for these records under a relation for which the plan has no finite loss.
        """
        return Cost.of(plan.privacy([own]), plan.method, self.ledger.relation(self.dataset))

    def pay_answer(
        self,
        plan: AnyPlan,
        cost: Cost,
        budget: float,
        look: Callable[[], Seen],
        mark: Callable[[Seen], bytes],
        draw: Callable[[Seen], str],
        *,
        look_again: Callable[[], bytes],
    ) -> str:
        """The message that answers a plan: the one that was kept, or a new one, which is charged first.

        Parameters
        ----------
        plan
            The plan.
        cost
            What `cost` says.
        budget
            What all releases about these records together may cost. It does not bound an answer without privacy, which
            a policy allows by the name of its method; a limit in the ledger refuses it.
        look, mark, draw
            As in `confide.ledger.pay`.
        look_again
            The mark of the data as they are now, where an answer is kept.

        Warns
        -----
        OtherDataWarning
            If the kept answer cannot be known to be about these data: it is about others, or of a version that kept
            nothing to tell.

        Raises
        ------
        Refusal
            `session-used` if the session served another plan, `interrupted` if an answer was charged and never
            finished, `budget-spent` if the ledger's limit or the budget does not allow it.
        InputError
            If the ledger accounts for these records under another relation than that of the cost.
        """

        def kept(entry: Entry) -> str:
            if entry.request != plan.digest:
                raise Refusal("session-used")
            if entry.release is None:
                raise Refusal("interrupted")
            self._point_out_other_data(entry, look_again())
            return entry.release

        most = Limit(budget) if plan.protocol.private else None
        once = Once(plan.session, kept)
        payment = Payment(self.ledger, Dataset(self.dataset), cost, plan.digest, at_most=most, once=once)
        try:
            return pay(payment, look, mark, draw)
        except BudgetError as error:
            raise Refusal("budget-spent", self._refusal(cost, budget) or str(error)) from None

    def _point_out_other_data(self, entry: Entry, seen: bytes) -> None:
        name = self.ledger.snapshot().charged_to(entry.token)
        assert name is not None
        try:
            self.ledger.find(name, entry.request, seen)
        except OtherDataError:
            text = (
                f"the answer of {entry.made} was made from other data than these, or by a version that kept "
                "nothing to tell; it is returned as it was, and nothing was charged; only a new plan gets an answer "
                "from these data"
            )
            warnings.warn(OtherDataWarning(text), stacklevel=outside())

    def _refusal(self, cost: Cost, budget: float) -> str | None:
        """Why a charge was refused, if a larger budget of the policy would allow it; None otherwise."""
        account = known(self.ledger.accounts(), self.dataset)
        spent = 0.0 if account is None else account.spent().epsilon
        if math.isinf(spent) or (account is not None and not account.allows(cost)):
            return None
        return (
            f"the policy's budget for {self.dataset!r} is {decimal_form(budget)}, all releases so far cost "
            f"{decimal_form(spent)}, and this answer costs {decimal_form(cost.epsilon)}; ask for a plan that costs "
            "less, or raise the budget"
        )

    def pay_part(self, plan: AnyPlan, listed: str, look: Callable[[], Seen], draw: Callable[[Seen], str]) -> str:
        """The part of a list of answers: the one that was kept, or a new one; which list it is, is on disk first.

        It costs nothing, whatever was spent. A run that ended before its part was kept is taken up again: the part
        follows from the list and the keys.

        Raises
        ------
        Refusal
            `session-used` if another list of the session was opened.
        """

        def kept(entry: Entry) -> str | None:
            if entry.request != listed:
                raise Refusal("session-used", "this silo has opened another list of this session; ask for a new plan")
            return entry.release

        cost, once = Cost(0.0, "replace_one", f"{plan.method}, opened"), Once(opening_token(plan), kept)
        return pay(Payment(self.ledger, Dataset(OPENINGS), cost, listed, once=once), look, lambda _: None, draw)

    def release(
        self,
        cost: Cost,
        request: Mapping[str, Any],
        seen: bytes,
        draw: Callable[[], str],
        budget: float | None = None,
        *,
        again: bool = False,
    ) -> str:
        """Another release about these records: the same if it was asked before about the same data, else a new one.

        Parameters
        ----------
        cost
            Its price.
        request
            Everything public that was asked, plain JSON values.
        seen
            What the release is made from, as bytes.
        draw
            Makes the release; called after the charge is on disk.
        budget
            What all releases about these records together may cost; by default the ledger's limit alone decides.
        again
            Draw and charge anew, although this was asked before: the same people with new records or a new model.

        Warns
        -----
        EarlierReleaseWarning
            If it is the earlier release; nothing was charged.

        Raises
        ------
        OtherDataError
            If the same was asked about other data; nothing was charged.
        BudgetError
            If the ledger's limit or the budget does not allow it.
        """
        most = None if budget is None else Limit(budget)
        payment = Payment(self.ledger, Dataset(self.dataset), cost, request_digest(request), again, most)
        return pay(payment, lambda: seen, lambda seen: seen, lambda _: draw())


def opening_token(plan: AnyPlan) -> str:
    """The token of the one list that is opened in a session."""
    return hashlib.sha256(f"open|{plan.session}".encode()).hexdigest()[:32]
