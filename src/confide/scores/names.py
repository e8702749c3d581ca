"""How the names of scores are read and written.

A name is a word, perhaps with the ending of deterministic scores, and parameters in parentheses, such as `lac` or
`raps_deterministic(penalty=0.01,k_reg=5)`. A release states only the name of its score, and prediction computes the
same score from the name.
"""

import math
import re
from functools import lru_cache
from types import MappingProxyType

from confide.errors import InputError, InputTypeError
from confide.scores.kinds import ScoreKind, Task, unregistered
from confide.scores.library import LibraryScore
from confide.scores.score import DETERMINISTIC, SCORES, Score, registered_score
from confide.support import require

# The bounds of temperatures.
COLDEST = 0.01
HOTTEST = 100.0

_NAME = re.compile(rf"([a-z][a-z0-9_]*?)({DETERMINISTIC})?(?:\((.*)\))?")

# The value of a parameter: a non-negative decimal number.
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,3})?")


def _registered_kind(name: str) -> ScoreKind | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    family, ending, parameters = match.groups()
    score = registered_score(family)
    return None if score is None else _kind_of_score(name, score, ending is not None, parameters)


@lru_cache(maxsize=256)
def _kind_of_score(name: str, score: Score, deterministic: bool, parameters: str | None) -> ScoreKind | None:
    if deterministic and not score.randomised:
        return None
    stated = MappingProxyType(_parameters(name, parameters, score))
    return ScoreKind(name, score, score.randomised and not deterministic, stated)


def _parameters(name: str, text: str | None, score: Score) -> dict[str, float]:
    # Scores of probabilities may have a temperature, unless it changes no set.
    expected = score.parameters
    is_tempered = score.tempered if isinstance(score, LibraryScore) else True
    optional = ("temperature",) if score.task == "classification" and is_tempered else ()

    # Each parameter once, as a number.
    entries = [] if text is None else text.split(",")
    parameters = {}
    for entry in entries:
        key, _, value = map(str.strip, entry.partition("="))
        if _NUMBER.fullmatch(value):
            parameters[key] = float(value)
    if len(parameters) != len(entries) or not {*expected} <= {*parameters} <= {*expected, *optional}:
        word = name.split("(")[0]
        bare, full = (_signature_text(word, keys) for keys in (expected, (*expected, *optional)))
        ways = bare if bare == full else f"{bare} or {full}"
        raise InputError("score", f"must name its parameters as {ways}", got=repr(name))

    # Their ranges.
    if not COLDEST <= parameters.get("temperature", 1.0) <= HOTTEST:
        raise InputError("score", f"must have a temperature between {COLDEST:g} and {HOTTEST:g}", got=repr(name))
    k_reg = parameters.get("k_reg", 0)
    if not all(map(math.isfinite, parameters.values())) or k_reg != int(k_reg):
        raise InputError("score", "must have finite parameters and a whole k_reg", got=repr(name))
    return parameters


def _signature_text(word: str, keys: tuple[str, ...]) -> str:
    return f"{word}({','.join(f'{key}=...' for key in keys)})" if keys else word


def score_kind(name: str | None) -> ScoreKind:
    """The kind with this name; any other name, and None, stand for a user's own score with values in (-inf, +inf].

    Examples
    --------
    >>> score_kind("lac").high, score_kind("my score").task
    (1.0, 'any')
    >>> dict(score_kind("raps_deterministic(penalty=0.01,k_reg=5)").parameters)
    {'penalty': 0.01, 'k_reg': 5.0}
    """
    if name is not None and not isinstance(name, str):
        raise InputTypeError("score", "must be a name or None", got=type(name).__name__)
    if name is not None and not (0 < len(name) <= 200 and name.isprintable()):
        raise InputError("score", "must be a name of 1 to 200 printable characters")
    kind = None if name is None else _registered_kind(name)
    lower_case = (name or "").lower()
    if kind is None and name is not None and lower_case != name and _registered_kind(lower_case):
        raise InputError(
            "score", f"must be written {lower_case!r}", got=repr(name), remedy="Give a score of your own another name"
        )
    return kind or ScoreKind(name)


def kind_of_task(score: str, task: Task, words: str) -> ScoreKind:
    """The kind with this name, which must be a score of the task; `words` name the task in the error."""
    kind = score_kind(score)
    if kind.task != task:
        remedy = "" if kind.score is not None else unregistered(score).remedy
        raise InputError("score", f"must be {words}", got=repr(score), remedy=remedy)
    return kind


def score_name(family: str, *, deterministic: bool = False, **given: float | None) -> str:
    """The name of a score with its parameters (except None), as `calibrate(..., score=...)` records it.

    Examples
    --------
    >>> score_name("raps", penalty=0.01, k_reg=5, deterministic=True)
    'raps_deterministic(penalty=0.01,k_reg=5)'
    """
    # The parameters in the order of the registered score, then unknown ones.
    ending = DETERMINISTIC if deterministic else ""
    parameters = {key: _shortest(value) for key, value in given.items() if value is not None}
    score = registered_score(family)
    order = dict.fromkeys((*score.parameters, *parameters) if score else parameters)
    values = ",".join(f"{key}={parameters[key]}" for key in order if key in parameters)

    name = f"{family}{ending}" + (f"({values})" if values else "")
    require("score", score_kind(name).family == family, f"must be one of {', '.join(SCORES)}", got=repr(name))
    return name


def _shortest(value: float) -> str:
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
