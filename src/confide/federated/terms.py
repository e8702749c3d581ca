"""The silos of a federation with its assumptions, and the terms of one threshold, whatever the method."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from confide.candidates import Candidates
from confide.errors import InputError, InputTypeError
from confide.federated.keys import Silo
from confide.federated.refusals import Refusal, listed
from confide.mechanisms import Neighbors
from confide.support import MOST_RECORDS, one_of, positive_integer, require

Counts: TypeAlias = NDArray[np.int64]

# `independent`: a silo answers independently of its scores. `arbitrary`: no assumption.
Missing: TypeAlias = Literal["independent", "arbitrary"]

# `common`: the new record has the distribution of every silo's records (IID silos). `mixture`: it comes from silo j
# with probability n_j/n, and silos may differ (secure-sum only).
Population: TypeAlias = Literal["common", "mixture"]

MOST_SILOS = 10_000
_MOST_CANDIDATES = 2**16


@dataclass(frozen=True, kw_only=True, repr=False)
class Federation:
    """The silos of a plan and what is assumed about them: `confide.federated.plan` describes the parameters.

    Parameters
    ----------
    silos
        The invited silos, with public keys and public sizes (or None: secret).
    liars, dropouts, missing, population, colluding, n_min, n_typical
        The arguments of `confide.federated.plan`.
    """

    silos: tuple[Silo, ...]
    liars: int = 0
    dropouts: int = 0
    missing: Missing = "independent"
    population: Population
    colluding: int | None = None
    n_min: int
    n_typical: int

    def _check(self) -> None:
        check_silos(self.silos)
        check_count("liars", self.liars, len(self.silos) - 1)
        check_count("dropouts", self.dropouts, len(self.silos) - self.liars - 1)
        one_of("missing", self.missing, get_args(Missing))
        one_of("population", self.population, get_args(Population))
        check_count("n_min", self.n_min, MOST_RECORDS)
        positive_integer("n_typical", self.n_typical, most=MOST_RECORDS)

    @property
    def size(self) -> int | None:
        """The public number of records of all silos, or None."""
        return None if self.silos[0].size is None else sum(silo.size or 0 for silo in self.silos)

    @property
    def neighbors(self) -> Neighbors:
        """`replace_one` if sizes are public, else `add_remove`."""
        return "add_remove" if self.silos[0].size is None else "replace_one"

    def position(self, name: str) -> int:
        """The position of a silo in the plan; raises the refusal `foreign` for other names."""
        if (position := self._positions.get(name)) is not None:
            return position
        raise Refusal("foreign", f"the plan does not name a silo {name[:64]!r}; check the roster")

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {silo.name: i for i, silo in enumerate(self.silos)}


@dataclass(frozen=True, kw_only=True)
class Terms(Federation):
    """The terms of one threshold of a federation.

    Parameters
    ----------
    alpha, delta
        Miscoverage level. With a delta the guarantee is training-conditional.
    epsilon
        Privacy loss per record of a silo. For `secure-sum` it is the loss of the opened sum, against a coordinator that
        colludes with at most the stated number of silos. For `fedcp2-qq-sum` it is the loss of one reply.
    """

    alpha: Fraction
    delta: float | None
    epsilon: float
    score: str | None
    candidates: Candidates

    def __post_init__(self) -> None:
        size = self.candidates.size
        require("candidates", size <= _MOST_CANDIDATES, f"must number at most {_MOST_CANDIDATES}", got=str(size))

    @property
    def level(self) -> Fraction:
        """1 - alpha."""
        return 1 - self.alpha


def check_silos(silos: Sequence[Silo]) -> None:
    """Check that silos differ, and that either all sizes are public or all are secret."""
    if not all(isinstance(silo, Silo) for silo in silos):
        raise InputTypeError("silos", "must be confide.federated.Silo objects")
    require("silos", 1 <= len(silos) <= MOST_SILOS, f"must number from 1 to {MOST_SILOS}", got=str(len(silos)))
    # Different silos
    for field in ("name", "signing", "agreement"):
        counts = Counter(getattr(silo, field) for silo in silos)
        if len(counts) < len(silos):
            twice = next(silo.name for silo in silos if counts[getattr(silo, field)] > 1)
            raise InputError("silos", f"must differ in their {field}", remedy=f"That of {twice!r} occurs twice")

    # Sizes of all, or of none; the error names the fewer ones
    secret = [repr(silo.name) for silo in silos if silo.size is None]
    public = [repr(silo.name) for silo in silos if silo.size is not None]
    if secret and public:
        lacking = len(secret) <= len(public)
        names = secret if lacking else public
        got = f"{'no size' if lacking else 'a size'} of {listed(names, 3)}"
        remedy = "Is one of them a coordinator, whose public file lies in the folder? Move it away"
        raise InputError("silos", "must all state their sizes, or none of them", got=got, remedy=remedy)


def check_count(name: str, value: int, most: int) -> int:
    """An integer from 0 to `most`, such as a number of silos."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise InputError(name, f"must be an integer from 0 to {most}")
    return value
