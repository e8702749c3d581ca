"""The chain of a release: its description, the condition of its promise, and a comparison with the earlier files."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from confide.core.calibration import Calibration, Release, parts_of
from confide.core.documents import Document
from confide.core.words import Predecessor, check_about
from confide.support import Section, Table, decimal_text, short_number

MOST_SHOWN = 10
"""Thresholds of each release in a description of a chain."""


def chain_section(release: Release) -> Section | None:
    """The description of the chain that a release ends; None for a release that renews none.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> first = confide.calibrate(rng.random(2000), 0.1, 0.5, score="lac")
    >>> chain = chain_section(confide.recalibrate(first, rng.random(2000), cold=True))
    >>> chain.facts, [row[0] for row in chain.tables[0].rows]
    ((('all together', 'epsilon 1 for a person who is in each release'),), ['1', '2, this release'])
    """
    line = predecessors_of(release)
    if not line:
        return None
    parts = parts_of(release)
    names, single = list(parts)[:MOST_SHOWN], len(parts) == 1
    history = [*((one.date, one.epsilon) for one in line), (release.first.about.get("date"), release.privacy.epsilon)]
    rows = []
    for place, (date, epsilon) in enumerate(history):
        number = f"{place + 1}, this release" if place == len(line) else str(place + 1)
        values = (_five_digits(thresholds_of(parts[name])[place]) for name in names)
        level = (str(release.first.alpha),) if single else ()
        rows.append((number, date or "not stated", *values, decimal_text(epsilon, 6), *level))
    heads = ("Number", "Date", *(name or "Threshold" for name in names), "epsilon", *(("alpha",) if single else ()))
    total = decimal_text(sum(epsilon for _, epsilon in history), 6)
    more = len(parts) - len(names)
    return Section(
        "Chain of releases",
        renewal_text(release),
        (("all together", f"epsilon {total} for a person who is in each release"),),
        (Table(heads, tuple(rows), "The releases of the chain, the oldest first"),),
        parts=(
            Section(
                "SHA-256 of the earlier files",
                facts=tuple((f"release {place + 1}", one.checksum) for place, one in enumerate(line)),
            ),
        ),
        notes=(f"{more} more thresholds of each release are in the file",) if more else (),
    )


def _five_digits(threshold: float) -> str:
    return short_number(threshold) if math.isinf(threshold) else decimal_text(threshold, 5)


def thresholds_of(part: Calibration) -> list[float]:
    """The thresholds along the chain of one part, the oldest first."""
    return [*(one.threshold for one in part.predecessors), part.threshold]


def renewal_text(release: Release) -> str:
    """The release that a release renews, the origin of its candidates, and the records of its promise.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> first = confide.calibrate(rng.random(2000), 0.1, 1.0, score="lac")
    >>> print(renewal_text(confide.recalibrate(first, rng.random(2000), cold=True)))
    release 2 of a chain; it renews release 1, with the same settings for new records, and names all releases before it
    start: cold; the promise does not depend on what was released before
    """
    line, parts = predecessors_of(release), list(parts_of(release).values())
    if not line:
        return ""
    warm = [part for part in parts if is_warm(part)]
    said = (
        f"release {len(line) + 1} of a chain; it renews release {len(line)}, with the same settings for new records, "
        "and names all releases before it"
    )
    if not warm:
        return f"{said}\nstart: cold; the promise does not depend on what was released before"
    near = f"near the earlier threshold {short_number(line[-1].threshold)}"
    if len(parts) > 1:
        near = f"near the earlier thresholds, {len(warm)} of {len(parts)}"
    missed = [miss_bound_for_reused_records(part) for part in warm]
    least = None if None in missed else 1 - max(one for one in missed if one is not None)
    left = "no coverage" if least is None else f"only {math.floor(1000 * least) / 10:g} % coverage"
    return (
        f"{said}\nstart: {near}. If no record was in an earlier calibration of the chain, the promise is whole, for "
        "new records: of other people, or of people who return in the same way as those whose predictions are wanted. "
        f"If some were, {left} is certain for them; a cold start (--cold) keeps the promise whole"
    )


@dataclass(frozen=True)
class LineageCheck:
    """Statements about a chain: those that hold, and those that do not.

    Examples
    --------
    >>> LineageCheck(("release 1 of the chain is the file you named, and its figures match",), ()).holds
    True
    """

    found: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return not self.wrong


def predecessors_of(release: Document) -> tuple[Predecessor, ...]:
    """The earlier releases of a chain; for a release with several parts with the thresholds of the first.

    Empty for a release without thresholds, such as a monitor, which renews nothing.

    Examples
    --------
    >>> import confide, numpy as np
    >>> first = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac")
    >>> predecessors_of(first)
    ()
    """
    return release.first.predecessors if isinstance(release, Release) else ()


def verify_lineage(release: Document, earlier: Sequence[Document]) -> LineageCheck:
    """Compare a release with earlier ones, which must be among its predecessors and match its statements about them.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> first, other = (confide.calibrate(rng.random(2000), 0.1, 1.0, score="lac") for _ in range(2))
    >>> second = confide.recalibrate(first, rng.random(2000))
    >>> verify_lineage(second, [first]).holds, verify_lineage(second, [other]).holds
    (True, False)
    """
    line = predecessors_of(release)
    places = {document.checksum: place for place, document in enumerate(line)}
    confirmed, refuted, seen = [], [], set()
    for document in earlier:
        place = places.get(document.checksum)
        if place is None:
            refuted.append(f"the release with SHA-256 {document.checksum[:16]}... is no predecessor of this one")
            continue
        seen.add(place)
        if differing := _differing(release, document, place):
            refuted.append(f"release {place + 1} of the chain has another {differing} than this release says")
        else:
            confirmed.append(f"release {place + 1} of the chain is the file you named, and its figures match")
    if missing := [str(place + 1) for place in range(len(line)) if place not in seen]:
        confirmed.append(f"not compared: release {', '.join(missing)} of the chain")
    return LineageCheck(tuple(confirmed), tuple(refuted))


def _differing(release: Document, one: Document, place: int) -> str | None:
    """The first difference of an earlier release from entry place + 1 of a release's chain; None if there is none."""
    if not (isinstance(release, Release) and isinstance(one, Release) and type(release) is type(one)):
        return "kind or other parts"
    if list(release.parts) != list(one.parts):
        return "kind or other parts"
    for part, other in zip(release.parts.values(), one.parts.values(), strict=True):
        entry = part.predecessors[place]
        compared = {
            "score": part.score == other.score,
            "level": part.alpha == other.alpha,
            "relation between neighbors": part.privacy.neighbors == other.privacy.neighbors,
            "threshold": entry.threshold == other.threshold,
            "privacy loss": entry.epsilon == one.privacy.epsilon,
            "date": entry.date == check_about(other.about).get("date"),
            "line of predecessors": part.predecessors[:place] == other.predecessors,
        }
        if differences := [name for name, same in compared.items() if not same]:
            return differences[0]
    return None


def miss_bound_for_reused_records(calibration: Calibration) -> float | None:
    """A bound on the probability of a miss if its records may have been in every earlier release of its chain.

    1 minus the coverage if its candidates do not depend on the earlier thresholds, and always for new records. Else, by
    docs/theory-after-release.md, min(e^E a, 1 - e^-E (1 - a)). E is the privacy loss of all earlier releases together
    under replacement of one record (twice that under addition or removal), and a the guaranteed miscoverage. None for
    a training-conditional guarantee, for which no bound is known.

    Examples
    --------
    >>> import confide, numpy as np
    >>> first = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 0.5, score="lac")
    >>> miss_bound_for_reused_records(first) == 1 - first.coverage
    True
    """
    missed = 1 - calibration.coverage
    if not is_warm(calibration):
        return missed
    if calibration.guarantee.kind != "marginal":
        return None
    changes = 2 if calibration.privacy.neighbors == "add_remove" else 1
    grown = math.exp(min(changes * sum(predecessor.epsilon for predecessor in calibration.predecessors), 700.0))
    return min(grown * missed, 1 - (1 - missed) / grown)


def is_warm(calibration: Calibration) -> bool:
    """Whether its candidates are spread around the threshold of its last predecessor."""
    return bool(calibration.predecessors) and "around" in calibration.recipe
