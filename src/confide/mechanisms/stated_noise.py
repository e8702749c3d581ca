"""The law of the noise in counts that another engine made, as its maker states it."""

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.errors import InputError, InputTypeError
from confide.guarantee import log_concave_residual_life, residual_life
from confide.support import decimal_text, one_of, positive_integer, positive_number

NoiseKind: TypeAlias = Literal["discrete_laplace", "discrete_gaussian", "table"]

# The kinds of noise, and the name of their parameter.
_PARAMETERS: dict[str, str] = {"discrete_laplace": "scale", "discrete_gaussian": "sigma", "table": "probabilities"}

_SCALES, _MOST_COPIES, _MOST_VALUES, _MISSING = (1e-3, 1e4), 100, 2**20, 1e-12

# The largest exponent in a bound, and the rounding error of probabilities that count as log-concave.
_LARGEST_EXPONENT, _UNEVEN = 600, 1e-12
_WRITTEN = re.compile(r"([a-z_]+)\(([^()]*)\)")
_WRITE = "must be discrete_laplace(scale=...,copies=...) or discrete_gaussian(sigma=...,copies=...)"
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
        name = _PARAMETERS[one_of("kind", self.kind, tuple(_PARAMETERS))]
        positive_integer("copies", self.copies, most=_MOST_COPIES)
        if isinstance(self.parameter, tuple):
            _check_table(np.array(self.parameter, dtype=np.float64))
            return
        scale = positive_number(name, self.parameter)
        if not _SCALES[0] <= scale <= _SCALES[1]:
            raise InputError(name, f"must lie between {_SCALES[0]:g} and {_SCALES[1]:g}", got=f"{scale:g}")
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
            raise InputTypeError("noise", _WRITE, got=type(text).__name__)
        match = _WRITTEN.fullmatch(text.replace(" ", ""))
        kind, name = (match[1], _PARAMETERS.get(match[1])) if match else ("", None)
        given = dict(option.partition("=")[::2] for option in match[2].split(",")) if match else {}
        try:
            values = {key: float(value) for key, value in given.items()}
        except ValueError:
            values = {}
        if kind == "table" or name not in values or not {*values} <= {name, "copies"} or values.get("copies", 1) % 1:
            raise InputError("noise", _WRITE, got=repr(text), remedy=_SCALE_REMEDY)
        return cls(kind, values[name], int(values.get("copies", 1)))  # type: ignore[arg-type]

    @property
    def law(self) -> NDArray[np.float64]:
        """P(X = -half), ..., P(X = half) of one copy; beyond it a named law has less than 1e-30."""
        if isinstance(self.parameter, tuple):
            return np.array([*self.parameter[:0:-1], *self.parameter])
        laplace, scale = self.kind == "discrete_laplace", self.parameter
        half = math.ceil(scale * (70 if laplace else 12)) + 1
        z = np.abs(np.arange(-half, half + 1)) / scale
        p = np.exp(-z if laplace else -(z**2) / 2)
        return np.asarray(p / p.sum())

    @property
    def scale(self) -> float:
        """The scale, or sigma; NaN of a table."""
        return math.nan if isinstance(self.parameter, tuple) else self.parameter

    @property
    def missing(self) -> float:
        """The probability that one copy is unlimited: the mass that a table lacks."""
        return max(0.0, 1 - float(self.law.sum())) if isinstance(self.parameter, tuple) else 0.0

    def in_one_count(self) -> NDArray[np.float64]:
        """P(S = 0), P(S = 1), ... for the noise S of all makers in one count."""
        law, reach = self.law, self.reach(1)
        ring, half = np.zeros(2 * reach + 2), len(law) // 2
        np.add.at(ring, np.arange(-half, half + 1) % len(ring), law)
        together = np.fft.irfft(np.fft.rfft(ring) ** self.copies, len(ring))
        return np.maximum(together[: reach + 1], 0.0)

    def reach(self, counts: int, probability: float = 1e-16) -> int:
        """A number that the noise in the sum of several counts leaves with this probability at most, by Chernoff."""
        law, steps = self.law, self.copies * counts
        x = np.arange(len(law)) - len(law) // 2
        sd, most = math.sqrt(float(law @ x**2)), steps * (len(law) // 2)
        if sd == 0:
            return 0
        bounds: list[int] = [
            math.ceil((steps * math.log(float(law @ np.exp(r * x))) - math.log(probability / 2)) / r)
            for r in (np.geomspace(0.01, 10, 61) / sd).tolist()
            if r * (len(law) // 2) < _LARGEST_EXPONENT
        ]
        return min([most, *bounds])

    @cached_property
    def cost(self) -> float:
        """What the noise in the counts costs, in ranks (docs/theory-one-number.md, Theorem W3).

        Raises
        ------
        InputError
            If it is unknown: for several copies of a table that is not log-concave.
        """
        if not isinstance(self.parameter, tuple):
            return log_concave_residual_life(self.in_one_count())
        if self.copies == 1:
            return residual_life(np.array(self.parameter))
        p = np.array(self.parameter)
        if not (p[1:-1] ** 2 >= p[:-2] * p[2:] * (1 - _UNEVEN)).all():
            remedy = "State one table of their sum, with copies=1"
            raise InputError("copies", "must be 1 for a table that is not log-concave", remedy=remedy)
        return log_concave_residual_life(self.in_one_count())

    def __str__(self) -> str:
        name = {"discrete_laplace": "discrete Laplace", "discrete_gaussian": "discrete Gaussian", "table": "tabled"}
        often = "" if self.copies == 1 else ", twice" if self.copies == 2 else f", {self.copies} times"
        of = "" if isinstance(self.parameter, tuple) else f" of {_PARAMETERS[self.kind]} {decimal_text(self.parameter)}"
        return f"independent {name[self.kind]} noise{of}{often}"


def _check_table(p: NDArray[np.float64]) -> None:
    falls = 0 < len(p) <= _MOST_VALUES and bool((p >= 0).all() and (np.diff(p) <= 0).all())
    if not falls or abs(p[0] + 2 * p[1:].sum() - 1) > _MISSING:
        raise InputError(
            "probabilities",
            "must be those of 0, 1, 2, ... of a symmetric law that does not increase, with a mass of 1 within 1e-12",
            remedy="Other noise, such as floating-point Laplace noise, has no certificate",
        )
