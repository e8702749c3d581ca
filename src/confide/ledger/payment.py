"""A calibration that is paid for: find the release of an identical request, or charge, run, and record the release.

Two requests are identical if everything public about them is: data set, group and fingerprint; alpha, losses,
relation and all other choices; the mechanism that follows from them; the candidates; and the score's name.
"""

from dataclasses import asdict, dataclass
from typing import Any

from confide.candidates import Candidates
from confide.errors import BudgetError, InputError, InputTypeError
from confide.ledger.book import Ledger, as_dataset, refusal
from confide.ledger.cost import Cost
from confide.ledger.identity import Dataset, request_digest
from confide.mechanisms import privacy_statement
from confide.planning import Request, mechanism_for
from confide.releases import Calibration


@dataclass(frozen=True)
class Payment:
    """Who pays what for which request: the price under the data set's relation, and the request's digest."""

    ledger: Ledger
    dataset: Dataset
    cost: Cost
    request: str

    def earlier(self) -> Calibration | None:
        """The kept release of an identical request. Without one, a request over the limit is refused here and now.

        Raises
        ------
        BudgetError
            If the limit does not allow the release; the data were not touched.
        """
        kept = self.ledger.find(self.dataset, self.request)
        if kept is not None:
            return Calibration.from_json(kept)
        account = self.ledger.accounts().get(self.dataset.name)
        if account is not None and not account.allows(self.cost):
            raise BudgetError(refusal(account, self.cost))
        return None

    def charge(self) -> str:
        """Charge the cost durably; only then may the mechanism run."""
        return self.ledger.charge(self.dataset, self.cost, self.request)

    def record_release(self, token: str, calibration: Calibration) -> None:
        """Record the release durably; only then may it be returned."""
        self.ledger.attach(token, calibration.to_json())


def make_payment(
    request: Request,
    candidates: Candidates,
    score: str | None,
    ledger: Ledger | None,
    dataset: str | Dataset | None,
) -> Payment:
    """The payment for a checked request.

    Raises
    ------
    InputError, InputTypeError
        If only one of ledger and dataset is given, or the data set is accounted under add_remove and n is public.
    """
    if ledger is None or dataset is None:
        raise InputError("ledger and dataset must be given together: whose budget is charged, and where")
    if not isinstance(ledger, Ledger):
        raise InputTypeError(f"ledger must be a confide.Ledger; found {type(ledger).__name__}")
    data = as_dataset(dataset)
    if request.mechanism == "none":
        raise InputError("ledger cannot charge mechanism='none': without privacy the loss is infinite")
    mechanism = mechanism_for(request)
    privacy = privacy_statement(mechanism, request.neighbors, request.records_per_person, request.selector)
    cost = Cost.of(privacy, request.mechanism, ledger.relation(data.name), data.group)
    content: dict[str, Any] = {
        "dataset": [data.name, data.group, data.fingerprint],
        "request": {key: _plain(value) for key, value in asdict(request).items()},
        "mechanism": None if mechanism is None else repr(mechanism),
        "candidates": candidates.digest,
        "score": score,
    }
    return Payment(ledger, data, cost, request_digest(content))


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float | str) else str(value)
