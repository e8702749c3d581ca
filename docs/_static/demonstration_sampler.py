"""DEMONSTRATION ONLY, NOT FOR PRIVATE DATA: a sampler in plain Python that stands in for OpenDP on the page "Try it".

OpenDP has no build for browsers. `install` puts a stand-in for the few functions of OpenDP that a calibration calls
where `import opendp` finds it, and refuses to do so if OpenDP is installed. All files that are drawn with it state
`opendp: none (demonstration sampler, not private)` among their versions. confide warns of such a release whenever it is
applied, and `confide verify` rejects all such files. The privacy of a real release must come from OpenDP.

The laws are exact: decisions are made on integers and fractions, with bits from `secrets`, after Canonne, Kamath and
Steinke, "The Discrete Gaussian for Differential Privacy" (2020), algorithms 1 and 2. Its running time depends on the
data, and it has not been reviewed.
"""

import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

VERSION = "none (demonstration sampler, not private)"


class Sampler:
    """Exact draws from uniform integers."""

    def below(self, n: int) -> int:
        """A uniform integer from 0 to n - 1."""
        return secrets.randbelow(n)

    def bernoulli(self, p: Fraction) -> bool:
        """True with probability p."""
        return self.below(p.denominator) < p.numerator

    def bernoulli_exp(self, x: Fraction) -> bool:
        """True with probability exp(-x), for x >= 0 (algorithm 1)."""
        while x > 1:
            if not self.bernoulli_exp(Fraction(1)):
                return False
            x -= 1
        k = 1
        while self.bernoulli(x / k):
            k += 1
        return k % 2 == 1

    def permute_and_flip(self, utilities: Sequence[int], scale: Fraction) -> int:
        """An index: visit them in random order, and accept j with probability exp((u_j - max u)/scale)."""
        best, left = max(utilities), list(range(len(utilities)))
        while True:
            j = left.pop(self.below(len(left)))
            if self.bernoulli_exp((best - utilities[j]) / scale):
                return j

    def exponential(self, utilities: Sequence[int], scale: Fraction) -> int:
        """An index, j with probability proportional to exp(u_j/scale): propose one, and accept or start again."""
        best = max(utilities)
        while True:
            j = self.below(len(utilities))
            if self.bernoulli_exp((best - utilities[j]) / scale):
                return j

    def discrete_laplace(self, scale: Fraction) -> int:
        """An integer z with probability proportional to exp(-|z|/scale) (algorithm 2)."""
        t, s = scale.numerator, scale.denominator
        while True:
            u = self.below(t)
            if not self.bernoulli_exp(Fraction(u, t)):
                continue
            v = 0
            while self.bernoulli_exp(Fraction(1)):
                v += 1
            size, negative = (u + t * v) // s, self.bernoulli(Fraction(1, 2))
            if size or not negative:
                return -size if negative else size


def make_noisy_max(domain: object, metric: object, measure: str, *, scale: float) -> Callable[[Any], int]:
    """Stand-in for `opendp.measurements.make_noisy_max` on integers."""
    sampler, exact = Sampler(), Fraction(scale)
    draw = sampler.permute_and_flip if measure == "max_divergence" else sampler.exponential
    return lambda utilities: draw([int(one) for one in utilities], exact)


def make_laplace(domain: object, metric: object, *, scale: float) -> Callable[[Any], list[int]]:
    """Stand-in for `opendp.measurements.make_laplace` on vectors of integers."""
    sampler, exact = Sampler(), Fraction(scale)
    return lambda counts: [int(one) + sampler.discrete_laplace(exact) for one in counts]


def _nothing(*_: object, **__: object) -> None:
    """Stand-in for what only describes a measurement: domains, metrics and switches."""


_MODULES: dict[str, dict[str, object]] = {
    "domains": {"atom_domain": _nothing, "vector_domain": _nothing},
    "metrics": {"linf_distance": _nothing, "l1_distance": _nothing},
    "measures": {name: lambda name=name: name for name in ("max_divergence", "zero_concentrated_divergence")},
    "measurements": {"make_noisy_max": make_noisy_max, "make_laplace": make_laplace},
    "mod": {"GLOBAL_FEATURES": frozenset(), "enable_features": _nothing, "disable_features": _nothing},
}


class _Stated(Distribution):
    """The version that releases state."""

    def read_text(self, filename: str) -> str | None:
        """Metadata of the stand-in."""
        return f"Metadata-Version: 2.1\nName: opendp\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: object) -> Any:
        """No file of it is installed."""
        return path


class _Finder(DistributionFinder):
    """Finds this version; modules are found by others."""

    def find_spec(self, *_: object) -> None:
        """Find no module."""

    def find_distributions(self, context: Any = None) -> Iterator[Distribution]:
        """Find the stand-in by its name."""
        if getattr(context, "name", None) == "opendp":
            yield _Stated()


def install() -> None:
    """Let `import opendp` find the stand-in, in this process only.

    Raises
    ------
    RuntimeError
        If OpenDP is installed.
    """
    if "opendp" in sys.modules and hasattr(sys.modules["opendp"], "demonstration"):
        return
    if find_spec("opendp") is not None:
        raise RuntimeError("OpenDP is installed: draw with it. This sampler is for demonstration only.")
    for name, content in {"": {"demonstration": True, "__path__": []}, **_MODULES}.items():
        module: Any = ModuleType(f"opendp.{name}".rstrip("."), __doc__)
        module.__spec__ = SimpleNamespace(name=module.__name__, submodule_search_locations=[])
        vars(module).update(content)
        sys.modules[module.__name__] = module
    sys.meta_path.append(_Finder())
