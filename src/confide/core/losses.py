"""Losses whose expectation a threshold bounds: their names, bounds and words (docs/theory.md, Theorem R1)."""

import re
from dataclasses import dataclass
from fractions import Fraction

from confide.errors import InputError
from confide.scores import ScoreKind, score_kind
from confide.support import Level, exact_level, fraction_of, positive_number

# The name of the loss of label sets: the share of true labels that they miss.
FALSE_NEGATIVES = "false_negative_rate"

# The name of the loss of masks, with its parameters in parentheses: see `MissedAreaLoss`.
_MISSED_AREA = "missed_area"
_PARAMETERS = re.compile(rf"{_MISSED_AREA}(?:\((?:background=(\d+))?,?(?:average=(classes))?\))?")

# The losses that are shares, at most 1: that of label sets, and that of masks with any text in parentheses.
_SHARE = re.compile(rf"{FALSE_NEGATIVES}|{_MISSED_AREA}(\(.*\))?", re.DOTALL)


@dataclass(frozen=True)
class MissedAreaLoss:
    """The share of the true area of an image that a mask misses; 0 for an image without any.

    The pixels of the background do not count as area. If `by_class`, every class that occurs has equal weight, however
    large it is; else every pixel does.
    """

    background: int | None = None
    by_class: bool = False

    def __post_init__(self) -> None:
        number = self.background
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
            raise InputError("background", "must be the number of a class, or None", got=repr(number))

    @property
    def name(self) -> str:
        """The name of the loss in a release."""
        parameters = [] if self.background is None else [f"background={self.background}"]
        parameters += ["average=classes"] if self.by_class else []
        return f"{_MISSED_AREA}({','.join(parameters)})" if parameters else _MISSED_AREA

    @classmethod
    def of(cls, name: str) -> "MissedAreaLoss | None":
        """The loss with this name; None if it is another."""
        match = _PARAMETERS.fullmatch(name)
        if match is None:
            return None
        background, by_class = match.groups()
        loss = cls(None if background is None else int(background), by_class is not None)
        return loss if loss.name == name else None  # a name in another form, such as "background=01", is another loss

    def check(self, classes: int) -> None:
        """Raise an error if the background is not one of the classes, or is the only one."""
        if self.background is not None and not (classes > 1 and self.background < classes):
            must = "must be the number of one of several classes, or be left out"
            raise InputError("background", must, got=f"{self.background} for {classes}")


# The score of a calibration of critical thresholds begins with this, and ends with the name of the loss.
_CRITICAL = "critical threshold of "


def critical_score(loss: str) -> str:
    """The name of the score of a calibration of critical thresholds of this loss."""
    return f"{_CRITICAL}{loss}"


def kind_asked(score: str | None) -> ScoreKind:
    """The kind of score that a threshold is compared with: for shares of true labels 1 - p, as for lac."""
    if score is not None and score.startswith(_CRITICAL) and _SHARE.fullmatch(score.removeprefix(_CRITICAL)):
        return score_kind("lac")
    return score_kind(score)


def check_bound(loss: str, bound: float) -> float:
    """Validate the bound of a loss; for a share it must be at least 1, or the guaranteed risk would be too small."""
    number = positive_number("bound", bound)
    if number < 1 and isinstance(loss, str) and _SHARE.fullmatch(loss):
        must = f"must be at least 1 for the loss {loss!r}, a share"
        remedy = "Otherwise name a loss of your own"
        raise InputError("bound", must, remedy=remedy)
    return number


def share_of(risk: Level, loss: str, bound: float) -> Fraction:
    """The level of a threshold for risk control: the admissible expected loss, relative to the bound of the loss."""
    bound = check_bound(loss, bound)
    if bound == 1:
        return exact_level("risk", risk)
    try:
        share = fraction_of(risk) / Fraction(str(bound))
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        must = f"must be a number between 0 and {bound:g}, the largest loss"
        raise InputError("risk", must, got=repr(risk)) from None
    return exact_level("risk / bound", share)


def limit_text(loss: str, bound: float, risk: float) -> str:
    """A bound on the expected loss in words, without the statement that it is an average."""
    if bound == 1 and loss == FALSE_NEGATIVES:
        return f"at most {100 * risk:.6g} % of a record's true labels are missed"
    if bound == 1 and _SHARE.fullmatch(loss):
        return f"at most {100 * risk:.6g} % of an image's true area is missed"
    return f"a loss {loss!r} of at most {risk:.6g}"
