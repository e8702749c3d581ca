"""Counts that another engine made: the law of their noise, and their privacy loss, as their maker states them."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError, InputTypeError
from confide.guarantee import log_concave_residual_life, residual_life
from confide.mechanisms.privacy import PrivacyStatement
from confide.support import decimal_text, float_above, one_of, positive_integer, positive_number, require

NoiseKind: TypeAlias = Literal["discrete_laplace", "discrete_gaussian", "table"]


class _Family(NamedTuple):
    """A named law: P(z) is proportional to exp(-exponent(abs(z)/parameter)), and below 1e-30 beyond `reach`."""

    words: str
    parameter: str
    exponent: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    reach: int  # in units of the parameter


# The named kinds of noise; e^-70 and e^(-12^2/2) are below 1e-30.
_FAMILIES: Mapping[str, _Family] = {
    "discrete_laplace": _Family("discrete Laplace", "scale", lambda z: z, 70),
    "discrete_gaussian": _Family("discrete Gaussian", "sigma", lambda z: z**2 / 2, 12),
}

_LEAST_SCALE = 1e-3
_LARGEST_SCALE = 1e4
_MOST_COPIES = 100

# The largest number of probabilities in a table, and the largest error of their total mass.
_MOST_VALUES = 2**20
_MASS_ERROR = 1e-12

# The relative rounding error of p(z)^2 >= p(z-1) p(z+1) in a table that counts as log-concave.
_CONCAVITY_ERROR = 1e-12

# The largest exponent in a Chernoff bound: the sum of its exponentials must not overflow.
_LARGEST_EXPONENT = 600

# The text of a named law: its kind, and its options in parentheses.
_LAW_TEXT = re.compile(r"([a-z_]+)\(([^()]*)\)")
_LAW_REQUIREMENT = "must be discrete_laplace(scale=...,copies=...) or discrete_gaussian(sigma=...,copies=...)"
_SCALE_REMEDY = "Give a scale, for discrete Laplace noise 1/epsilon under add_remove and 2/epsilon under replace_one"


@dataclass(frozen=True)
class Noise:
    """The law of the independent integer noise in each count, as the maker of the counts states it.

    Use `discrete_laplace`, `discrete_gaussian` or `table`. The noise of several makers, such as the aggregators of a
    secret sum, adds up: `copies` is their number.

    Parameters
    ----------
    kind
        `"discrete_laplace"`, P(z) proportional to exp(-abs(z)/scale); `"discrete_gaussian"`, P(z) proportional to
        exp(-z^2/(2 sigma^2)); or `"table"`.
    parameter
        The scale or sigma, between 0.001 and 10,000; or for a table P(0), P(1), ..., of a symmetric law that does not
        increase away from 0.
    copies
        Number of independent noises in each count, up to 100.

    Raises
    ------
    InputError, InputTypeError
        If an argument cannot be used.

    Examples
    --------
    >>> noise = Noise.discrete_laplace(2.0, copies=2)
    >>> print(noise)
    independent discrete Laplace noise of scale 2, twice
    >>> Noise.parse("discrete_laplace(scale=2,copies=2)") == noise
    True
    """

    kind: NoiseKind
    parameter: float | tuple[float, ...]
    copies: int = 1

    def __post_init__(self) -> None:
        is_table = one_of("kind", self.kind, get_args(NoiseKind)) == "table"
        positive_integer("copies", self.copies, most=_MOST_COPIES)
        name = "probabilities" if is_table else _FAMILIES[self.kind].parameter
        if is_table != isinstance(self.parameter, tuple):
            must = "must be a tuple of probabilities" if is_table else "must be a number"
            raise InputTypeError(name, must, got=type(self.parameter).__name__)
        if is_table:
            _check_table(self._table)
            return
        scale = positive_number(name, self.parameter)
        if not _LEAST_SCALE <= scale <= _LARGEST_SCALE:
            raise InputError(name, f"must lie between {_LEAST_SCALE:g} and {_LARGEST_SCALE:g}", got=f"{scale:g}")
        object.__setattr__(self, "parameter", scale)

    @classmethod
    def discrete_laplace(cls, scale: float, copies: int = 1) -> "Noise":
        """Discrete Laplace noise, such as of OpenDP's `make_laplace` on integers, of Tumult, or of DAP.

        For a privacy loss of epsilon the scale is 1/epsilon if a record is added or removed, and 2/epsilon if it is
        replaced.

        Examples
        --------
        >>> Noise.discrete_laplace(2.0).law.round(3)[139:144]
        array([0.09 , 0.149, 0.245, 0.149, 0.09 ])
        """
        return cls("discrete_laplace", scale, copies)

    @classmethod
    def discrete_gaussian(cls, sigma: float, copies: int = 1) -> "Noise":
        """Discrete Gaussian noise, such as of OpenDP's `make_gaussian` on integers, or of Tumult under zCDP."""
        return cls("discrete_gaussian", sigma, copies)

    @classmethod
    def table(cls, probabilities: "tuple[float, ...] | list[float]", copies: int = 1) -> "Noise":
        """A symmetric law by its probabilities of 0, 1, 2, ...; missing mass counts as unlimited noise."""
        return cls("table", tuple(map(float, probabilities)), copies)

    @classmethod
    def parse(cls, text: str) -> "Noise":
        """Read the text of a named law, such as `discrete_gaussian(sigma=4)`."""
        if not isinstance(text, str):
            raise InputTypeError("noise", _LAW_REQUIREMENT, got=type(text).__name__)
        unreadable = InputError("noise", _LAW_REQUIREMENT, got=repr(text), remedy=_SCALE_REMEDY)

        # The kind, and its options as numbers.
        match = _LAW_TEXT.fullmatch(text.replace(" ", ""))
        if match is None or match[1] not in _FAMILIES:
            raise unreadable
        kind = match[1]
        parameter = _FAMILIES[kind].parameter
        try:
            options = {key: float(value) for key, _, value in (option.partition("=") for option in match[2].split(","))}
        except ValueError:
            raise unreadable from None

        # The parameter, and no other option than a whole number of copies.
        copies = options.pop("copies", 1.0)
        if {*options} != {parameter} or copies % 1:
            raise unreadable
        return cls(kind, options[parameter], int(copies))  # type: ignore[arg-type]

    @property
    def law(self) -> NDArray[np.float64]:
        """P(X = -half), ..., P(X = half) of one copy; beyond it a named law has less than 1e-30."""
        if self.kind == "table":
            return np.append(self._table[:0:-1], self._table)
        family = _FAMILIES[self.kind]
        half = math.ceil(self.scale * family.reach) + 1
        z = np.abs(np.arange(-half, half + 1)) / self.scale
        weights = np.exp(-family.exponent(z))
        return np.asarray(weights / weights.sum())

    @property
    def scale(self) -> float:
        """The scale, or sigma; NaN of a table."""
        return math.nan if isinstance(self.parameter, tuple) else self.parameter

    @property
    def _table(self) -> NDArray[np.float64]:
        """P(0), P(1), ... of one copy, if they are stated."""
        return np.array(self.parameter, dtype=np.float64)

    @property
    def missing(self) -> float:
        """The probability that one copy is unlimited: the mass that a table lacks."""
        return max(0.0, 1 - float(self.law.sum())) if self.kind == "table" else 0.0

    def in_one_count(self) -> NDArray[np.float64]:
        """P(S = 0), P(S = 1), ... for the noise S of all makers in one count."""
        # A sum of copies is a power of their Fourier transform, on a circle that is longer than the sum reaches.
        law = self.law
        reach = self.reach(1)
        half = len(law) // 2
        circle = np.zeros(2 * reach + 2)
        np.add.at(circle, np.arange(-half, half + 1) % len(circle), law)
        total = np.fft.irfft(np.fft.rfft(circle) ** self.copies, len(circle))
        return np.maximum(total[: reach + 1], 0.0)

    def reach(self, counts: int, probability: float = 1e-16) -> int:
        """A number that the noise in the sum of several counts leaves with this probability at most, by Chernoff."""
        law = self.law
        steps = self.copies * counts
        half = len(law) // 2
        z = np.arange(-half, half + 1)
        deviation = math.sqrt(float(law @ z**2))
        if deviation == 0:
            return 0

        # P(sum > t) <= E[exp(r Z)]^steps / exp(r t): the smallest bound over a grid of rates r.
        bounds: list[int] = [
            math.ceil((steps * math.log(float(law @ np.exp(r * z))) - math.log(probability / 2)) / r)
            for r in (np.geomspace(0.01, 10, 61) / deviation).tolist()
            if r * half < _LARGEST_EXPONENT
        ]
        return min([steps * half, *bounds])

    @cached_property
    def cost(self) -> float:
        """What the noise in the counts costs, in ranks (docs/theory-one-number.md, Theorem W3).

        Raises
        ------
        InputError
            If the cost is unknown, as for several copies of a table that is not log-concave.
        """
        if self.kind == "table":
            p = self._table
            if self.copies == 1:
                return residual_life(p)
            is_log_concave = bool((p[1:-1] ** 2 >= p[:-2] * p[2:] * (1 - _CONCAVITY_ERROR)).all())
            remedy = "State one table of their sum, with copies=1"
            require("copies", is_log_concave, "must be 1 for a table that is not log-concave", remedy=remedy)
        return log_concave_residual_life(self.in_one_count())

    def __str__(self) -> str:
        repeated = {1: "", 2: ", twice"}.get(self.copies, f", {self.copies} times")
        if self.kind == "table":
            return f"independent tabled noise{repeated}"
        family = _FAMILIES[self.kind]
        return f"independent {family.words} noise of {family.parameter} {decimal_text(self.scale)}{repeated}"


def _check_table(p: NDArray[np.float64]) -> None:
    falls = 0 < len(p) <= _MOST_VALUES and bool((p >= 0).all() and (np.diff(p) <= 0).all())
    is_law = falls and abs(p[0] + 2 * p[1:].sum() - 1) <= _MASS_ERROR
    must = "must be those of 0, 1, 2, ... of a symmetric law that does not increase, with a mass of 1 within 1e-12"
    remedy = "Other noise, such as floating-point Laplace noise, has no certificate"
    require("probabilities", is_law, must, remedy=remedy)


_AS_STATED = "as the maker of the counts states"


class StatedPrivacy(PrivacyStatement):
    """The privacy loss of counts that another engine made, as its maker states it; calibrating adds nothing.

    Examples
    --------
    >>> print(StatedPrivacy.of(Noise.discrete_laplace(2.0, 2), 10_000))
    1-differential privacy for replacing one record, as the maker of the counts states; calibrating adds nothing
    """

    @classmethod
    def of(
        cls, noise: Noise, n: int | None, epsilon: float | None = None, size_scale: float | None = None
    ) -> "StatedPrivacy":
        """The epsilon that the maker states, or by default the loss of one copy of the stated noise.

        `size_scale` is the scale of the noise in a noisy number of records, whose loss adds to that of the counts. A
        table of noise has no statement of its own.
        """
        rho = None
        if epsilon is None:
            if noise.kind == "table":
                raise InputError("epsilon", "must be given, as the maker of the counts states it: noise is a table")

            # A record that is added changes one count by one and the noisy number, a replaced one two counts.
            noise_scale = Fraction(noise.scale)
            changed_counts = 1 if n is None else 2
            number_loss = Fraction(0) if size_scale is None else 1 / Fraction(size_scale)
            epsilon = float_above(changed_counts / noise_scale + number_loss)
            if noise.kind == "discrete_gaussian":
                epsilon = math.inf
                rho = float_above(changed_counts / (2 * noise_scale**2) + number_loss**2 / 2)

        # With a public number of records they are replaced. With a secret one they are added and removed, and
        # replacing one is both.
        if n is not None:
            return cls("replace_one", epsilon, 1, add_remove=None, replace_one=epsilon, rho=rho)
        return cls("add_remove", epsilon, 1, add_remove=None if rho else epsilon, replace_one=2 * epsilon, rho=rho)

    @property
    def brief(self) -> str:
        """The loss in a few words."""
        return f"{super().brief}, {_AS_STATED}"

    def __str__(self) -> str:
        return f"{super().__str__()}, {_AS_STATED}; calibrating adds nothing"
