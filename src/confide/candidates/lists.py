"""Public candidate thresholds t_1 < ... < t_(m-1) and t_m = +inf. They never depend on the private scores.

With rising prior weights many candidates are cheap (docs/theory.md, sections 2 and 5): they give a high relative
resolution without clipping bounds. With few records fewer are better, so the number is chosen for each request. Values
are rounded to twelve significant digits, so that they are identical on every machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from confide.arrays import as_vector
from confide.candidates.spread import Spread, SpreadKind, distinct
from confide.errors import InputError, InputTypeError
from confide.support import MOST_CANDIDATES, one_of, positive_integer, raise_for_rows, require

# The constructors whose candidates follow from their recipe alone, so that a reader can reproduce them.
BUILDERS = ("spread", "unit", "published")

Spacing = Literal["uniform", "logit"]


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """Candidate thresholds, always ending in +inf.

    The default is `spread`, for the score and the number of records. Other constructors are `unit`, `published`,
    `from_reference` and `of`.

    Parameters
    ----------
    edges
        The finite candidates: float64, shape (m-1,), strictly increasing, read-only.
    recipe
        Constructor and arguments, as plain JSON values.

    Examples
    --------
    >>> Candidates.unit(5).values
    array([0.25, 0.5 , 0.75, 1.  ,  inf])
    >>> Candidates.of([0.5, 2.0]).size
    3
    """

    edges: NDArray[np.float64]
    recipe: Mapping[str, Any]

    def __post_init__(self) -> None:
        # A copy, in which -0 is 0.
        edges = np.array(self.edges, dtype=np.float64) + 0.0
        require("candidates", edges.ndim == 1, "must be one-dimensional", got=f"shape {edges.shape}")
        _refuse_too_many(edges)
        raise_for_rows("candidates", ~np.isfinite(edges), "must be finite", "that are not", "Drop them")
        fallen = np.append(False, ~(edges[1:] > edges[:-1]))
        remedy = "Sort them and remove duplicates"
        raise_for_rows("candidates", fallen, "must be strictly increasing", "not above their predecessor", remedy)
        edges.flags.writeable = False
        object.__setattr__(self, "edges", edges)

    def __reduce__(self) -> tuple[Any, ...]:
        return Candidates, (self.edges, self.recipe)

    @property
    def size(self) -> int:
        """m, the number of candidates, +inf included."""
        return len(self.edges) + 1

    @property
    def is_built(self) -> bool:
        """Whether the candidates follow from their recipe alone."""
        return self.recipe["kind"] in BUILDERS

    @property
    def values(self) -> NDArray[np.float64]:
        """All candidates, shape (m,), the last one +inf."""
        return np.append(self.edges, np.inf)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the edges. Histograms can be added only if their digests agree."""
        import hashlib

        return hashlib.sha256(self.edges.astype("<f8").tobytes()).hexdigest()

    @property
    def description(self) -> str:
        """The number of candidates and how they are spread, in words, for pages and plans."""
        return f"{self.size:,}, {spread_words(self.recipe)}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidates) and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.recipe.items() if key != "kind")
        return f"Candidates.{self.recipe['kind']}({arguments})"

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, Any]) -> "Candidates":
        """Build the candidates of a recipe, for example that of a release.

        Raises
        ------
        InputError, InputTypeError
            If the recipe does not determine the candidates, as for values of your own, or has wrong numbers.

        Examples
        --------
        >>> Candidates.from_recipe({"kind": "unit", "size": 3, "spacing": "uniform"}) == Candidates.unit(3)
        True
        """
        options = dict(recipe)
        kind = options.pop("kind", None)
        require("recipe", kind in BUILDERS, f"must have one of the kinds {', '.join(BUILDERS)}", got=repr(kind))
        if kind == "spread":
            options["kind"] = options.pop("of", None)
        try:
            candidates: Candidates = getattr(cls, kind)(**options)
        except TypeError as error:
            if isinstance(error, InputTypeError):
                raise
            raise InputError("recipe", f"must have the numbers that candidates of the kind {kind!r} need") from None
        return candidates

    @classmethod
    def around(cls, guess: float) -> Spread:
        """Candidates around a public guess of the threshold: dense near the guess, and coarse elsewhere.

        Both guarantees hold for every guess. With a good guess the candidates near the threshold are dense, with a bad
        one they are coarse. The request determines how many there are, and the score on which scale they are spread.

        Parameters
        ----------
        guess
            A number that does not depend on the records.

        Raises
        ------
        InputError, InputTypeError
            If the guess is not a finite number.

        Examples
        --------
        >>> Candidates.around(0.93)
        Spread(kind=None, unit=None, around=0.93, most=None)
        """
        return Spread(around=guess)

    @classmethod
    def spread(
        cls, kind: SpreadKind, size: int, unit: float | None = None, around: float | None = None
    ) -> "Candidates":
        """About `size` finite candidates, spread by a public heavy-tailed law; see `confide.candidates.Spread`.

        Values that coincide are merged. A list of residuals ends where the next candidate would be more than ten times
        as large; after that only +inf follows.

        Examples
        --------
        >>> Candidates.spread("residual", 5, unit=10.0).values.round(1)
        array([  0. ,   0.4,   4.7,  21.1, 234.8,   inf])
        """
        return cls.quantiles(Spread(kind, unit, around), size)

    @classmethod
    @lru_cache(maxsize=64)
    def quantiles(cls, law: Spread, size: int) -> "Candidates":
        """About `size` quantiles of a law, as `spread`, but from a `Spread` value."""
        stated = {key: value for key, value in (("unit", law.unit), ("around", law.around)) if value is not None}
        return cls._build(law.edges(size), {"kind": "spread", "of": law.kind, "size": size, **stated})

    @classmethod
    def unit(cls, size: int = 1000, spacing: Spacing = "uniform") -> "Candidates":
        """`size` candidates for scores in [0, 1]: equally spaced, or equally spaced in the logit from 1e-6 to 1-1e-6.

        The largest finite candidate is 1. With `spacing="logit"` candidates are dense near 0 and 1; use it for 1 - p
        and for APS scores. A twentieth of the candidates then lies between 1-1e-6 and 1-1e-12, where many scores of
        over-confident models are.
        """
        size = positive_integer("size", size, most=MOST_CANDIDATES)
        one_of("spacing", spacing, ("uniform", "logit"))
        if spacing == "uniform":
            edges = np.arange(1, size) / max(size - 1, 1)
        else:
            edges = np.append(1 / (1 + np.exp(-_logits(size - 2))), 1.0)[: size - 1]
        return cls._build(edges, {"kind": "unit", "size": size, "spacing": spacing})

    @classmethod
    def published(cls, size: int) -> "Candidates":
        """The bins of *Private Prediction Sets*: e_j = j/size for scores in [0, 1], with +inf instead of e_m = 1.

        With a threshold of 1 or +inf a set contains every label. `unit(size)` has the finite candidates j/(size-1),
        including 1, and +inf. Evenly spaced bins are poor for over-confident models, whose scores are mostly near 0 and
        1: use a temperature, or `unit(size, "logit")`.

        Examples
        --------
        >>> Candidates.published(4).values
        array([0.25, 0.5 , 0.75,  inf])
        """
        size = positive_integer("size", size, most=MOST_CANDIDATES)
        return cls._build(np.arange(1, size) / size, {"kind": "published", "size": size})

    @classmethod
    def from_reference(cls, scores: ArrayLike, size: int = 1000) -> "Candidates":
        """Quantiles of a *public* reference sample of scores. Never pass the private scores.

        Quantiles that coincide are merged, so there may be fewer than `size` candidates.
        """
        sample = as_vector("scores", scores).astype(np.float64)
        raise_for_rows("scores", ~np.isfinite(sample), "must be finite", "that are not", "Remove them")
        size = positive_integer("size", size, most=MOST_CANDIDATES)
        with np.errstate(over="ignore", invalid="ignore"):
            edges = np.quantile(sample, np.linspace(0, 1, max(size - 1, 1)))[: size - 1]
        edges = distinct(_rounded(edges))
        return cls(edges, {"kind": "from_reference", "size": len(edges) + 1})

    @classmethod
    def of(cls, values: ArrayLike) -> "Candidates":
        """Your own public candidates: finite, strictly increasing values; +inf is added (a trailing +inf is accepted).

        They are not rounded.
        """
        edges = as_vector("candidates", values).astype(np.float64)
        edges = edges[:-1] if edges[-1] == np.inf else edges
        return cls(edges, {"kind": "of", "size": len(edges) + 1})

    @classmethod
    def _build(cls, edges: NDArray[np.float64], recipe: Mapping[str, Any]) -> "Candidates":
        _refuse_too_many(edges)
        require("candidates", np.isfinite(edges).all(), "must not overflow", remedy="Choose a unit nearer to 1")
        return cls(distinct(_rounded(edges)), recipe)


def _refuse_too_many(edges: NDArray[np.float64]) -> None:
    if len(edges) >= MOST_CANDIDATES:
        raise InputError("candidates", f"must number at most {MOST_CANDIDATES}, +inf included", got=str(len(edges) + 1))


def listed(candidates: Candidates | Spread, size: int) -> Candidates:
    """Candidates as they are; of a spread about `size` quantiles."""
    return candidates if isinstance(candidates, Candidates) else Candidates.quantiles(candidates, size)


# Four for each power of ten from 1 - 1e-6 to 1 - 1e-12 differ in twelve digits.
_MOST_BEYOND = 24


def _logits(size: int) -> NDArray[np.float64]:
    """Logits, equally spaced from 1e-6 to 1 - 1e-6; a twentieth of them lies beyond, but so few that all differ."""
    size = max(size, 0)
    end = np.log(1e6 - 1)
    beyond = min(size // 20, _MOST_BEYOND)
    last = np.linspace(end, np.log(1e12 - 1), beyond + 1)[1:]
    return np.append(np.linspace(-end, end, size - beyond), last)


def _rounded(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The edges with 12 significant digits."""
    return np.array([float(f"{edge:.12g}") for edge in edges.tolist()])


def spread_of(recipe: Mapping[str, Any]) -> Spread:
    """The law of a recipe of the kind `spread`."""
    return Spread(recipe["of"], recipe.get("unit"), recipe.get("around"))


def spread_words(recipe: Mapping[str, Any]) -> str:
    """How the candidates of a recipe are spread, such as "spread around the guess 0.97"."""
    if recipe.get("kind") != "spread":
        numbers = [f"{key} {value}" for key, value in recipe.items() if key not in ("kind", "size")]
        return ", ".join([str(recipe.get("kind", "unknown")), *numbers])
    law = spread_of(recipe)
    if law.around is not None:
        return f"spread around the guess {law.around:g}"
    if not law.shape.has_unit:
        return law.shape.words
    unit = "1, because no unit was given" if law.unit is None else f"the unit {law.unit:g}"
    return f"{law.shape.words} {unit}"


@dataclass(frozen=True)
class OwnCandidates:
    """Candidates of which a release contains only the number: your own, or quantiles of a public sample."""

    kind: Literal["of", "from_reference"]
    size: int

    @classmethod
    def of(cls, candidates: Candidates) -> "OwnCandidates":
        """The number of such candidates."""
        return cls(candidates.recipe["kind"], candidates.size)

    @property
    def recipe(self) -> Mapping[str, Any]:
        """Constructor and number, as plain JSON values."""
        return {"kind": self.kind, "size": self.size}


# The type of every `candidates=` argument, which `confide.scores.ScoreKind.choose_candidates` alone interprets: a list;
# a `Spread`; the number of candidates, +inf included; or None for the default of the score.
AnyCandidates: TypeAlias = Candidates | Spread | int | None
