"""What is printed of a chain of releases."""

import math

from confide.cli.output import number
from confide.releases import Release, is_warm, miss_if_reused, parts_of, predecessors_of
from confide.support import decimal_text


def renewed(release: Release) -> str:
    """What a release renews, where its candidates come from, and for which records its promise is.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> first = confide.calibrate(rng.random(2000), 0.1, 1.0, score="lac")
    >>> print(renewed(confide.recalibrate(first, rng.random(2000), cold=True)))
    release 2 of a chain; it renews release 1
    start: cold; the promise does not depend on what was released before
    """
    line, parts = predecessors_of(release), list(parts_of(release).values())
    if not line:
        return ""
    warm = [part for part in parts if is_warm(part)]
    said = f"release {len(line) + 1} of a chain; it renews release {len(line)}"
    if not warm:
        return f"{said}\nstart: cold; the promise does not depend on what was released before"
    near = f"near the earlier threshold {number(line[-1].threshold)}"
    if len(parts) > 1:
        near = f"near the earlier thresholds, {len(warm)} of {len(parts)}"
    return f"{said}\nstart: {near}. {condition(release)}"


def condition(release: Release) -> str:
    """For which records the promise of a warm start is, and what is left of it for others."""
    missed = [miss_if_reused(part) for part in parts_of(release).values() if is_warm(part)]
    least = None if None in missed else 1 - max(one for one in missed if one is not None)
    left = "no coverage" if least is None else f"only {math.floor(1000 * least) / 10:g} % coverage"
    return (
        "If no record was in an earlier calibration of the chain, the promise is whole. "
        f"If some were, {left} is certain for them: use --cold"
    )


def course(release: Release) -> list[tuple[str, str]]:
    """A row for each release of the chain: its number and its date, and what it released."""
    line = predecessors_of(release)
    if not line:
        return []
    parts = list(parts_of(release).values())
    rows = []
    for place, one in enumerate(line):
        thresholds = ", ".join(number(part.predecessors[place].threshold) for part in parts[:10])
        more = ", ..." if len(parts) > 10 else ""
        date = "" if one.date is None else f" ({one.date})"
        rows.append(
            (
                f"chain, release {place + 1}{date}",
                f"threshold {thresholds}{more}; epsilon {decimal_text(one.epsilon, 6)}; SHA-256 {one.checksum[:16]}...",
            )
        )
    total = sum(one.epsilon for one in line) + release.privacy.epsilon
    rows.append(("chain, all together", f"epsilon {decimal_text(total, 6)} for a person who is in each"))
    return rows
