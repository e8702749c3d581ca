"""Other people's mechanisms: `module:callable` from the command line.

The callable takes scores, a float64 array of shape (n,) with values in [0, 1] where larger means stranger, runs the
mechanism once, and returns a threshold (a float, possibly +inf). Its claims are arguments of the audit, or attributes
of the callable with the same names. It may have an attribute `law`: a function of the same scores that returns the
exact law of the threshold as a dictionary from thresholds to probabilities; with it the loss is found by enumeration.
"""

import importlib
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confide.audit.subject import COVERAGE_SIZES, Claims, Scores, Subject
from confide.errors import InputError, InputTypeError
from confide.mechanisms import NEIGHBORS, Neighbors
from confide.support import Level, exact_level, one_of, privacy_loss

ATOMS = (0.05, 0.35, 0.65, 0.95)


def load(spec: str) -> Any:
    """The callable that `module:callable` names; modules of the working folder are found.

    Raises
    ------
    InputError
        If the form is wrong, or the module or its member cannot be imported.
    """
    module, colon, name = spec.partition(":")
    if not (colon and module and name):
        raise InputError("mechanism must have the form module:callable")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"mechanism {spec!r} cannot be imported: {type(error).__name__}; it must be in "
            "the current folder or installed, and import without an error"
        ) from None
    if not callable(found):
        raise InputTypeError(f"mechanism {spec!r} must be callable; found {type(found).__name__}")
    return found


def foreign_subject(
    mechanism: Any,
    name: str,
    *,
    epsilon: float | None = None,
    alpha: Level | None = None,
    neighbors: Neighbors | None = None,
    records: int = 8,
    least_records: int | None = None,
) -> Subject:
    """A subject from a callable; claims that are not given are taken from its attributes.

    Parameters
    ----------
    mechanism
        Scores to a threshold, as described in this module.
    epsilon, alpha
        Claimed loss and claimed miscoverage; at least one of them.
    neighbors
        The relation of the loss; `"replace_one"` unless given.
    records
        Size of the small data sets for enumeration and attack.
    least_records
        The least number of records for which the coverage is claimed; 50 unless given.

    Raises
    ------
    InputError
        If nothing is claimed.

    Examples
    --------
    >>> foreign_subject(lambda scores: 1.0, "constant", epsilon=0.1, alpha=0.1).claims
    Claims(epsilon=0.1, neighbors='replace_one', coverage=0.9)
    """
    epsilon = getattr(mechanism, "epsilon", None) if epsilon is None else epsilon
    alpha = getattr(mechanism, "alpha", None) if alpha is None else alpha
    if epsilon is None and alpha is None:
        raise InputError("epsilon or alpha must be claimed: as an argument, or as an attribute of the mechanism")
    relation = neighbors or getattr(mechanism, "neighbors", "replace_one")
    claims = Claims(
        None if epsilon is None else privacy_loss("epsilon", epsilon),
        one_of("neighbors", relation, NEIGHBORS),
        None if alpha is None else float(1 - exact_level("alpha", alpha)),
    )

    def draw(scores: Scores) -> float:
        threshold = float(mechanism(scores))
        if math.isnan(threshold):
            raise InputError(f"mechanism {name!r} must return a threshold; found NaN")
        return threshold

    def checked_law(scores: Scores) -> Mapping[float, float]:
        found = {float(t): float(p) for t, p in mechanism.law(scores).items()}
        if any(p < 0 for p in found.values()) or abs(sum(found.values()) - 1) > 1e-6:
            raise InputError(f"the law of mechanism {name!r} must consist of probabilities that add up to 1")
        return found

    least = getattr(mechanism, "least_records", 0) if least_records is None else least_records
    sizes = tuple(n for n in COVERAGE_SIZES if n >= least) or (least,)
    law = checked_law if hasattr(mechanism, "law") else None
    return Subject(name, claims, draw, law, ATOMS, records, coverage_sizes=sizes)
