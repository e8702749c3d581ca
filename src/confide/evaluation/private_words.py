"""A private evaluation in words, as it is printed."""

import math
from collections.abc import Mapping
from fractions import Fraction

from confide.evaluation.private_findings import PrivateCoverage, PrivateFinding
from confide.guarantee import coverage_text
from confide.support import aligned

MOST_SHOWN = 30
_CALLED = {"class": "class", "group": "group", "size": "sets of size", "width": "width"}


def in_words(findings: Mapping[str, PrivateFinding], loss: tuple[str, float] | None, confidence: float) -> str:
    """Coverage beside the promise, part by part, level by level, and what the intervals mean.

    Of more than 30 parts those are shown whose intervals end lowest; files have all of them.
    """
    blocks = [_block(name, finding, loss) for name, finding in findings.items()]
    number = sum(map(_intervals, findings.values())) + _shared(next(iter(findings.values())))
    together = f"the {number} intervals hold together" if number > 1 else "the interval holds"
    return "\n".join([*blocks, f"{together} with probability {100 * confidence:g} %, noise included"])


def _block(name: str, finding: PrivateFinding, loss: tuple[str, float] | None) -> str:
    if loss is not None:
        rows = [(f"loss {loss[0]!r}", _loss(finding.coverage, loss[1]))]
    else:
        rows = [(f"coverage, {name}" if name else "coverage", covered_text(finding.coverage))]
    for kind, parts in finding.parts.items():
        shown = sorted(parts, key=_seeming)[:MOST_SHOWN] if len(parts) > MOST_SHOWN else parts
        tell = covered_text if loss is None else lambda part: _loss(part, loss[1])
        rows += [(f"{_CALLED[kind]} {part.name}", tell(part)) for part in shown]
        if len(parts) > len(shown):
            rows.append((f"{len(parts) - len(shown)} more", "in the file"))
    for kind, shares in ({} if name else finding.shares).items():
        rows += [(f"share, {_CALLED[kind]} {one.name}", interval_text(one.value, one.low, one.high)) for one in shares]
    if finding.mean_size is not None and not name:
        mean = finding.mean_size
        rows.append(("classes per set, on average", interval_text(mean.value, mean.low, mean.high)))
    return aligned(rows)


def covered_text(part: PrivateCoverage) -> str:
    """Share, interval and promise."""
    below = ", below that beyond chance" if part.below else ""
    return f"{interval_text(part.value, part.low, part.high)}; {coverage_text(part.promised)} is promised{below}"


def interval_text(value: float | None, low: float, high: float) -> str:
    """An estimate with its interval, rounded outwards.

    Examples
    --------
    >>> interval_text(0.9051, 0.88345, 0.92311), interval_text(None, 0.0, 1.0)
    ('0.905 (interval 0.883 to 0.924)', 'not known (interval 0 to 1)')
    """
    least, most = outwards(low, high)
    ends = f"interval {least} to {most}"
    return f"{'not known' if value is None else f'{value:.3f}'} ({ends})"


def outwards(low: float, high: float) -> tuple[str, str]:
    """The ends of an interval with three decimals, rounded outwards; whole numbers without.

    Examples
    --------
    >>> outwards(0.88345, 0.92311), outwards(0.5, 1.0)
    (('0.883', '0.924'), ('0.500', '1'))
    """
    least, most = Fraction(low) * 1000, Fraction(high) * 1000
    return _thousandths(math.floor(least)), _thousandths(math.ceil(most))


def _thousandths(count: int) -> str:
    return f"{count / 1000:.3f}" if count % 1000 else f"{count // 1000}"


def _loss(part: PrivateCoverage, bound: float) -> str:
    value = None if part.value is None else bound * (1 - part.value)
    below = ", above that beyond chance" if part.below else ""
    ends = interval_text(value, bound * (1 - part.high), bound * (1 - part.low))
    return f"{ends}; at most {bound * (1 - part.promised):.6g} is promised{below}"


def _seeming(part: PrivateCoverage) -> tuple[float, float]:
    """Those that are surely covered little come first, and then those that seem to be."""
    return part.high, 1.0 if part.value is None else part.value


def _intervals(finding: PrivateFinding) -> int:
    return 1 + sum(map(len, finding.parts.values()))


def _shared(finding: PrivateFinding) -> int:
    """Intervals that are the same for all promises: shares, and the mean."""
    return sum(map(len, finding.shares.values())) + (finding.mean_size is not None)
