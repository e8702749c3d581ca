"""Conditions that a release must meet before it is published: on its privacy loss, its guarantee and its signature.

They apply to releases of every kind, to private evaluations and to monitors, federated or not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from confide.core import FALSE_NEGATIVES, Document, MissedAreaLoss, Release
from confide.errors import InputError
from confide.federated.signatures import Verification
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import exact_level, fraction_of, one_of, privacy_loss

# Two sides that promise 0.95 each promise 0.8999999999999999 together
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Conditions:
    """Conditions on a release. A release without privacy fails every set of conditions, also an empty one.

    Parameters
    ----------
    epsilon_at_most
        The largest allowed privacy loss of one person, under each adjacency that the release states. A release that
        states zCDP only, or that protects labels only, fails. The losses of all batches (looks) of a monitor add up.
    coverage_at_least
        The smallest allowed coverage guarantee of each threshold, and of two sides together. A bound on the missed
        share of labels or area counts as coverage of 1 minus the bound; a bound on another loss guarantees no coverage.
    private
        Whether records must be protected, not their labels only.
    signed
        Whether there must be a signature, by any key; `confide verify --signer` requires a certain key.
    neighbors
        The only adjacency under which `epsilon_at_most` is compared; by default all that are stated.

    Examples
    --------
    >>> import confide, numpy as np
    >>> released = confide.calibrate(np.random.default_rng(0).random(2000), 0.1, 1.0, neighbors="replace_one")
    >>> checked = Conditions(epsilon_at_most=1, coverage_at_least=0.95).check(released)
    >>> checked.statements
    ('epsilon at most 1 is required; stated: 1 under replace_one',)
    >>> checked.failures
    ('coverage of at least 0.95 is required; promised: 0.9',)
    """

    epsilon_at_most: float | None = None
    coverage_at_least: float | None = None
    private: bool = False
    signed: bool = False
    neighbors: Neighbors | None = None

    def __post_init__(self) -> None:
        if self.epsilon_at_most is not None:
            object.__setattr__(self, "epsilon_at_most", privacy_loss("epsilon_at_most", self.epsilon_at_most))
        if self.coverage_at_least is not None:
            level = float(exact_level("coverage_at_least", self.coverage_at_least))
            object.__setattr__(self, "coverage_at_least", level)
        if self.neighbors is not None:
            one_of("neighbors", self.neighbors, NEIGHBORS)
            if self.epsilon_at_most is None:
                raise InputError("neighbors", "must be left out without epsilon_at_most, to which it belongs")

    def check(self, document: Document, signer: str | None = None) -> Verification:
        """Compare a release with the conditions.

        Parameters
        ----------
        document
            A release, a private evaluation or a monitor (watch).
        signer
            The key that signed it, as `read_signed` returns it; None without a signature.

        Returns
        -------
        Verification
            One line for each condition: in `statements` if it holds, else in `failures`.
        """
        privacy = document.privacy
        statements: list[str] = []
        failures: list[str] = []

        # Privacy
        if not privacy.is_private:
            failures.append(str(privacy))
        elif self.private:
            statements.append(f"privacy of records is required; stated: {privacy.brief}")

        # The loss of one person
        if self.epsilon_at_most is not None:
            losses = self._losses(document)
            holds = max(losses.values()) <= self.epsilon_at_most
            stated = ", ".join(f"{_number(loss)} under {name}" for name, loss in losses.items())
            line = f"epsilon at most {_number(self.epsilon_at_most)} is required; stated: {stated}{_looks(document)}"
            (statements if holds else failures).append(line)

        # Coverage
        if self.coverage_at_least is not None:
            promised, description = promised_by(document)
            holds = promised is not None and promised >= self.coverage_at_least - _ROUNDING
            line = f"coverage of at least {self.coverage_at_least:.12g} is required; {description}"
            (statements if holds else failures).append(line)

        # Signature
        if self.signed:
            signature = "none" if signer is None else f"by the key {signer}"
            (failures if signer is None else statements).append(f"a signature is required; given: {signature}")
        return Verification(tuple(statements), tuple(failures))

    def _losses(self, document: Document) -> dict[Neighbors, float]:
        """The loss of one person by adjacency: under `neighbors`, or under all that are stated."""
        from confide.watching import CorrectedRelease

        # Of a person in the calibration and in every look
        if isinstance(document, CorrectedRelease):
            documents = [document.release, document.watch] if document.watch.looks else [document.release]
            each = [self._losses(part) for part in documents]
            return {name: math.fsum(losses.get(name, math.inf) for losses in each) for name in each[0]}

        # Under an adjacency that is not named only if the number of records is secret
        privacy, looks = document.privacy, _looks_of(document)
        names: Sequence[Neighbors] = NEIGHBORS if self.neighbors is None else (self.neighbors,)
        if self.neighbors is None and privacy.add_remove is None:
            names = [name for name in NEIGHBORS if name != "add_remove"]
        losses = {
            name: privacy.epsilon if name == privacy.neighbors else privacy.loss(name, privacy.records_per_person)
            for name in names
        }
        return losses if looks == 1 else {name: float(looks * fraction_of(loss)) for name, loss in losses.items()}


def promised_by(document: Document) -> tuple[float | None, str]:
    """The guaranteed coverage, or None, and a description of it.

    For an evaluation or a monitor it is the guarantee of the evaluated or monitored release.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> promised_by(confide.calibrate(rng.random(4000), [0.2, 0.1], epsilon=1.0))
    (0.8, 'promised: 0.8')
    >>> p = rng.random((4000, 3))
    >>> promised_by(confide.calibrate_false_negatives(p, rng.random(p.shape) < p, 0.2, 1.0))
    (0.8, "promised: at most 20 % of a record's true labels are missed on average over the noisy number of ...")
    """
    from confide.evaluation import Evaluation
    from confide.watching import CorrectedRelease, Watch

    if isinstance(document, CorrectedRelease):
        return None, "promised: none for one record, because the threshold is corrected look by look"
    # The levels that the document, or the release that it is about, states: of coverage, or of a bound on a loss
    loss: tuple[str, float] | None = None
    promise = ""
    if isinstance(document, Release):
        promised, loss = [document.promised], document.bounded
        promise = "" if loss is None else f"promised: {document.promise}"
    elif isinstance(document, Evaluation):
        promised, loss = list(document.query.statements.values()), document.query.loss
    else:
        assert isinstance(document, Watch)
        promised = list(document.settings.promised.values())
    if not promised:
        return None, "promised: none, because set sizes are monitored"

    # A bound on the missed share of labels or area is one on coverage
    least = min(promised)
    if loss is None:
        return least, f"promised: {least:.12g}"
    name, bound = loss
    risk = bound * (1 - least)
    promise = promise or f"promised: a loss {name!r} of at most {risk:.6g}"
    is_missed_share = name == FALSE_NEGATIVES or MissedAreaLoss.of(name) is not None
    return (1 - risk, promise) if is_missed_share else (None, f"{promise}, which is not a coverage guarantee")


def _looks_of(document: Document) -> int:
    """How often the stated loss counts for a person who is in every batch of the document."""
    from confide.watching import Watch

    return max(1, len(document.looks)) if isinstance(document, Watch) else 1


def _looks(document: Document) -> str:
    looks = _looks_of(document)
    return f", for a person in all {looks} looks" if looks > 1 else ""


def _number(loss: float) -> str:
    """A loss with all digits, because it is compared without rounding."""
    return "none" if math.isinf(loss) else repr(float(loss)).removesuffix(".0")
