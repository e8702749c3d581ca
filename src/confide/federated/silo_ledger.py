"""What a silo has answered and what that cost: plans, sessions and losses, all of it in the silo's budget ledger.

An answer is a release like any other. Its request is the plan's digest, its token the plan's session, which a ledger
accepts once. The charge is on disk before the data are touched, the message before it is handed out. So a second
request gets the first message again, a session serves one answer, and a silo that was interrupted in between has spent
its budget rather than answered twice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confide.errors import BudgetError, InputError
from confide.federated.plan import FederatedPlan
from confide.federated.refusals import Refusal
from confide.ledger import Cost, Entry, Ledger, request_digest

RECORDS = "calibration records"


@dataclass(frozen=True)
class SiloLedger:
    """A silo's answers in a budget ledger, which it may share with other releases about the same records.

    Parameters
    ----------
    path
        The ledger's file; made if it does not exist. Keep it on a local disk of the silo.
    dataset
        The name of the silo's records in the ledger. Answers of methods that are not private are kept under this name
        with " (not private)" added and cost nothing there: no account can hold their infinite loss.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     SiloLedger(Path(folder) / "budget.db").spent
    0.0
    """

    path: str | Path
    dataset: str = RECORDS

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        self._ledger()

    @property
    def spent(self) -> float:
        """The sum of all losses charged on the silo's records so far, other releases included."""
        account = self._ledger().accounts().get(self.dataset)
        return 0.0 if account is None else account.spent().epsilon

    def earlier_answer(self, plan: FederatedPlan) -> str | None:
        """The message that answered this plan before, or None.

        Raises
        ------
        Refusal
            `interrupted` if an answer was charged and never finished, `session-used` if the session served another
            plan.
        """
        entries: list[Entry] = []
        for account in self._ledger().accounts().values():
            entries += [entry for entry in account.entries if entry.token == plan.session]
        if not entries:
            return None
        if entries[0].request != plan.digest:
            raise Refusal("session-used")
        if entries[0].release is None:
            raise Refusal("interrupted")
        return entries[0].release

    def charge(self, plan: FederatedPlan, own: int, budget: float) -> str | None:
        """Charge the answer of silo `own`. When this returns, the charge is on disk.

        Returns
        -------
        str or None
            The message of another process that was faster; then nothing was charged and nothing may be drawn.

        Raises
        ------
        Refusal
            `budget-spent` if the ledger's limit or the budget, all releases about these records together, does not
            allow it; `session-used` or `interrupted` if another process was faster.
        InputError
            If the ledger accounts for these records under a relation for which the plan has no finite loss.
        """
        dataset, relation, ledger = self.dataset, self._ledger().relation(self.dataset), Ledger(self.path, limit=budget)
        if not plan.protocol.private:
            dataset += " (not private)"
            cost = Cost(0.0, plan.neighbors, plan.method)
        else:
            cost = Cost.of(plan.privacy([own]), plan.method, relation)
        try:
            ledger.charge(dataset, cost, plan.digest, token=plan.session, at_most=budget)
            return None
        except BudgetError as error:
            raise Refusal("budget-spent", str(error)) from None
        except InputError:
            earlier = self.earlier_answer(plan)  # what another process did meanwhile
            if earlier is None:
                raise
            return earlier

    def store_answer(self, plan: FederatedPlan, message: str) -> None:
        """Store the message of a charged plan. When this returns, it is on disk and may leave."""
        self._ledger().attach(plan.session, message)

    def release(
        self, cost: Cost, request: Mapping[str, Any], draw: Callable[[], str], budget: float | None = None
    ) -> str:
        """Another release about these records: the same again if it was asked before, else charged, drawn and stored.

        Parameters
        ----------
        cost
            Its price.
        request
            Everything public that was asked, plain JSON values.
        draw
            Makes the release; called after the charge is on disk.
        budget
            What all releases about these records together may cost; by default the ledger's limit alone decides.

        Raises
        ------
        BudgetError
            If the ledger's limit or the budget does not allow it.
        """
        ledger, name = self._ledger(), request_digest(request)
        earlier = ledger.find(self.dataset, name)
        if earlier is not None:
            return earlier
        token = ledger.charge(self.dataset, cost, name, at_most=budget)
        drawn = draw()
        ledger.attach(token, drawn)
        return drawn

    def _ledger(self) -> Ledger:
        return Ledger(self.path)
