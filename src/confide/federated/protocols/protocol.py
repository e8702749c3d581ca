"""The fields of plans that belong to protocols: each protocol has some, and every plan states all of schema 1.

What a protocol leaves out is written as `VOID` has it and means nothing, but it is signed with the rest. Of schema 2
are `flat` and `rise`, which only a plan with a rise has, `weights`, which only one for unlike silos has, `openers`
and `needed`, which only a sum with silos that may be missing has, and `opened_epsilon` and `dp_delta`, which only a sum
of replies has whose own loss was asked for.

What a protocol of one-shot federated calibration says: its message, its certificate, its loss and its JSON fields.

One message from each silo, then a threshold. A protocol is a frozen dataclass of public numbers in a file of its own,
beside its theorem, and is entered into `PROTOCOLS` by one line; nothing else in the package asks which one it is, but
for `OpenedSum`, whose answers take a second message before they open.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError
from confide.federated.many_silos import check_dp_delta
from confide.federated.refusals import Refusal
from confide.federated.sharing import word_of
from confide.federated.terms import Population, Terms, check_count
from confide.guarantee import AboutSilos, Guarantee, GuaranteeKind
from confide.mechanisms import PrivacyStatement
from confide.selection import SELECTORS, Selector
from confide.support import MOST_RECORDS, Fields, one_of, positive_integer, positive_number, privacy_loss, read_fraction

VOID: dict[str, Any] = {
    "targets": [],
    "rate": "0",
    "left": 1,
    "right": 1,
    "scale": 1.0,
    "selector": "permute_and_flip",
    "colluding": 0,
    "bits": 32,
    "n_min": 1,
    "n_typical": 1000,
    "published_k": 0,
}
"""How a field is written that the protocol does not have."""

MOST_SLOPE = 1000
MOST_RISE = 2**53

_READERS: dict[str, tuple[type | tuple[type, ...], Callable[[Any, Terms], Any]]] = {
    "targets": (list, lambda texts, terms: tuple(read_fraction(text, "the plan's target") for text in texts)),
    "rate": (str, lambda text, terms: read_fraction(text, "the plan's rate")),
    "left": (int, lambda value, terms: positive_integer("left", value, most=MOST_SLOPE)),
    "right": (int, lambda value, terms: positive_integer("right", value, most=MOST_SLOPE)),
    "scale": ((float, int), lambda value, terms: positive_number("scale", value)),
    "selector": (str, lambda text, terms: one_of("selector", text, SELECTORS)),
    "colluding": (int, lambda value, terms: check_count("colluding", value, len(terms.silos) - 1)),
    "bits": (int, lambda value, terms: 8 * word_of(value).itemsize),
    "n_min": (int, lambda value, terms: check_count("n_min", value, MOST_RECORDS)),
    "n_typical": (int, lambda value, terms: positive_integer("n_typical", value, most=MOST_RECORDS)),
    "published_k": (int, lambda value, terms: check_count("published_k", value, len(terms.silos))),
    "flat": (str, lambda text, terms: read_fraction(text, "the plan's flat")),
    "rise": (int, lambda value, terms: positive_integer("rise", value, most=MOST_RISE)),
    "openers": (list, lambda places, terms: tuple(check_count("openers", i, len(terms.silos) - 1) for i in places)),
    "needed": (int, lambda value, terms: positive_integer("needed", value, most=len(terms.silos))),
    "opened_epsilon": ((float, int), lambda value, terms: privacy_loss("opened_epsilon", value)),
    "dp_delta": (float, lambda value, terms: check_dp_delta(value)),
    "weights": (str, lambda text, terms: one_of("weights", text, ("sizes",))),
}


def read_field(fields: Fields, name: str, terms: Terms) -> Any:
    """Take and check one of the fields."""
    kinds, read = _READERS[name]
    return read(fields.take(name, kinds), terms)


def read_unused(fields: Fields, terms: Terms) -> tuple[tuple[str, Any], ...]:
    """Take the fields that the protocol left, checked like the others; those that differ from `VOID`, as JSON values.

    Raises
    ------
    Refusal, FormatError, InputError
        If one is out of range, or would change what is promised if it meant anything.
    """
    values = {name: read_field(fields, name, terms) for name in VOID if name in fields}
    refuse_contradiction(any(values.pop(name, None) for name in ("targets", "rate", "published_k")))
    return tuple((name, value) for name, value in values.items() if value != VOID[name])


def refuse_contradiction(wrong: bool) -> None:
    """Refuse a plan whose fields do not fit together: a silo relies on these relations."""
    if wrong:
        raise Refusal("malformed", "the plan contradicts itself; ask the coordinator for a new one")


Counts: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Options:
    """What may be asked of a protocol beyond the terms; see `confide.federated.plan`."""

    selector: Selector
    colluding: int | None
    n_min: int
    n_typical: int
    opened_epsilon: float | None = None
    dp_delta: float | None = None


@dataclass(frozen=True)
class Promise:
    """What is promised beforehand for one number of answers, whichever silos they come from.

    Parameters
    ----------
    coverage
        Guaranteed coverage (with probability 1 - delta, if the plan has a delta); 0 if nothing is promised.
    k
        The largest k that may be needed: the k-th smallest of the answers is the threshold. 0 if answers are not
        sorted.
    infinite
        Whether the threshold will be +inf: `never` for want of answers, `perhaps` (it depends on which silos answer),
        or `always`.
    """

    coverage: float
    k: int
    infinite: Literal["never", "perhaps", "always"]


class FederatedProtocol(ABC):
    """The base of all protocols. Silos are named by their place in the terms."""

    method: ClassVar[str]
    """Its name in plans."""
    theorem: ClassVar[str]
    """Where its promise is proved, in docs/theory-federated.md."""
    private: ClassVar[bool] = True
    """Whether its messages are differentially private."""
    secret_sizes: ClassVar[bool] = False
    """Whether silos may keep their sizes secret."""
    withstands_liars: ClassVar[bool] = True
    """Whether it can promise coverage although some silos lie."""
    relies_on_silos: ClassVar[bool] = False
    """Whether what it protects relies on the honesty of other silos; see `colluders`."""
    relies_for: ClassVar[str] = "privacy relies on"
    """What relies on them, in words."""
    populations: ClassVar[tuple[Population, ...]] = ("common",)
    """Whom it can promise coverage to; the first one by default."""

    @classmethod
    def check(cls, terms: Terms) -> None:
        """Refuse terms that the protocol cannot keep, by the name of the argument of `confide.federated.plan`."""
        if (terms.epsilon is None) == cls.private:
            raise InputError(f"epsilon must be {'given' if cls.private else 'left out'} for the method {cls.method!r}")
        if terms.size is None and not cls.secret_sizes:
            raise InputError(
                f"silos must state their sizes for the method {cls.method!r}; only private-qq keeps them secret"
            )
        if terms.liars and not cls.withstands_liars:
            raise InputError(f"liars must be 0 for the method {cls.method!r}: one liar can move its threshold anywhere")
        if terms.population not in cls.populations:
            raise InputError(f"population must be 'common' for the method {cls.method!r}; secure-sum serves a mixture")

    @classmethod
    def local_terms(cls, terms: Terms, options: Options) -> Terms:
        """Terms with the loss that a silo is charged, where it is another than the one asked for."""
        return terms

    @classmethod
    @abstractmethod
    def planned(cls, terms: Terms, options: Options) -> Self:
        """The protocol for these terms, from public numbers alone; refused if no finite threshold is possible."""

    @classmethod
    @abstractmethod
    def read(cls, fields: Fields, terms: Terms) -> Self:
        """The protocol from its fields in a plan; what cannot come from `planned` is refused."""

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Its fields in a plan, as JSON values; those of `plan_fields.VOID` that it leaves out are written as there."""

    @abstractmethod
    def target_rank(self, i: int) -> Fraction | None:
        """The rank at which silo i aims; None if silos have no targets of their own."""

    @abstractmethod
    def loss(self, terms: Terms, i: int) -> float:
        """The privacy loss that silo i is charged: under `replace_one` for public sizes, else under `add_remove`."""

    def privacy(self, terms: Terms, who: Sequence[int]) -> PrivacyStatement:
        """The loss of one record anywhere: silos hold different records, so the largest loss of a silo counts."""
        loss = max((self.loss(terms, i) for i in who), default=0.0)
        return PrivacyStatement("replace_one", loss, 1, None, loss, None)

    def words(self, terms: Terms) -> list[tuple[str, str]]:
        """What else is to be said of it in a plan, (name, value) each."""
        return []

    @property
    def colluders(self) -> int | None:
        """With how many silos the coordinator may pool what they know; None if no message relies on other silos."""
        return None

    @abstractmethod
    def message(self, terms: Terms, own: int, counts: Counts, agreement: bytes, context: bytes) -> dict[str, Any]:
        """What silo `own` sends, drawn once, as JSON values.

        `counts` are its own over the candidates, int64 of shape (m,); `agreement` is its X25519 private key; `context`,
        session and plan digest, is never used twice.
        """

    @abstractmethod
    def read_message(self, terms: Terms, i: int, fields: Fields) -> Any:
        """What silo i sent; refused as `malformed` or `out-of-range` if it cannot be that."""

    @abstractmethod
    def threshold(self, terms: Terms, replies: Mapping[int, Any], k: int) -> float:
        """The threshold from what the silos sent, by place, and the k of `certify`; `missing` if there are too few."""

    def can_release(self, terms: Terms, threshold: float) -> bool:
        """Whether this may be a threshold at all."""
        return threshold in terms.candidates.values

    @abstractmethod
    def certify(self, terms: Terms, who: Sequence[int]) -> tuple[int, Guarantee]:
        """Which of the sorted answers becomes the threshold (see `FederatedPlan.certify`), and what is promised."""

    def certify_stated(self, terms: Terms, who: Sequence[int], stated: int) -> tuple[int, Guarantee]:
        """The same for a calibration that states its k, which an earlier version may have chosen larger."""
        return self.certify(terms, who)

    def promises(self, terms: Terms) -> dict[int, Promise]:
        """What is promised for every number of answers for which something is."""
        m = len(terms.silos)
        return {m: Promise(self.certify(terms, range(m))[1].coverage, 0, "never")}

    @abstractmethod
    def coverage_failure(self, terms: Terms, who: Sequence[int], k: int) -> Callable[[float], float]:
        """The function c -> a bound on the probability that coverage given the calibration data is below c."""

    def answer_law(self, terms: Terms, below: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
        """The law of the threshold if all silos answer, over the m candidates, for a comparison before anybody pays.

        `below` has P(score <= e_j) for a known law of scores, shape (m,). Only `private-qq` and `secure-sum` say.
        """
        raise InputError(f"method must be 'private-qq' or 'secure-sum' for a comparison; found {self.method!r}")

    def guarantee(self, terms: Terms, coverage: float, who: Sequence[int]) -> Guarantee:
        """A coverage as a statement, at most the level that was asked for, unless everything is covered."""
        n = None if terms.size is None else sum(terms.silos[i].size or 0 for i in who)
        kind: GuaranteeKind = "marginal" if terms.delta is None else "training_conditional"
        covers = min(coverage, float(terms.level)) if coverage < 1 else 1.0
        return Guarantee(kind, covers, terms.delta, n, None, silos=self.about_silos(terms))

    def about_silos(self, terms: Terms) -> AboutSilos | None:
        """What its promise assumes of the silos, or of the new record; None if it promises nothing."""
        return "alike" if terms.population == "common" else "by size"


def too_few_records() -> InputError:
    """No finite threshold can be promised."""
    return InputError(
        "silos have too few records for a finite threshold with this promise; raise alpha or epsilon, use fewer "
        "candidates, or invite more silos"
    )
