"""What a chain of releases says: whether files are the predecessors that are named, and what its promise rests on."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from confide.releases.calibration import Calibration, Release
from confide.releases.documents import Document
from confide.releases.words import Predecessor, check_about


@dataclass(frozen=True)
class Links:
    """What was found of a chain: sentences that hold, and those that do not.

    Examples
    --------
    >>> Links(("release 1 of the chain is the file you named, and its figures match",), ()).holds
    True
    """

    found: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return not self.wrong


def predecessors_of(release: Document) -> tuple[Predecessor, ...]:
    """The earlier releases of a chain; of a release with several parts with the thresholds of the first.

    None of a release without thresholds, such as a watch, which renews nothing.

    Examples
    --------
    >>> import confide, numpy as np
    >>> first = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac")
    >>> predecessors_of(first)
    ()
    """
    return release.first.predecessors if isinstance(release, Release) else ()


def links(release: Document, earlier: Sequence[Document]) -> Links:
    """Compare a release with earlier ones, which must be among its predecessors, each what the chain says of it.

    Examples
    --------
    >>> import confide, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> first, other = (confide.calibrate(rng.random(2000), 0.1, 1.0, score="lac") for _ in range(2))
    >>> second = confide.recalibrate(first, rng.random(2000))
    >>> links(second, [first]).holds, links(second, [other]).holds
    (True, False)
    """
    line = predecessors_of(release)
    places = {one.checksum: place for place, one in enumerate(line)}
    found, wrong, seen = [], [], set()
    for one in earlier:
        place = places.get(one.checksum)
        if place is None:
            wrong.append(f"the release with SHA-256 {one.checksum[:16]}... is no predecessor of this one")
            continue
        seen.add(place)
        if differing := _differing(release, one, place):
            wrong.append(f"release {place + 1} of the chain has another {differing} than this release says")
        else:
            found.append(f"release {place + 1} of the chain is the file you named, and its figures match")
    if missing := [str(place + 1) for place in range(len(line)) if place not in seen]:
        found.append(f"not compared: release {', '.join(missing)} of the chain")
    return Links(tuple(found), tuple(wrong))


def _differing(release: Document, one: Document, place: int) -> str | None:
    """In what an earlier release is not what a release says of number place + 1 of its chain; None if in nothing."""
    if not (isinstance(release, Release) and isinstance(one, Release) and type(release) is type(one)):
        return "kind or other parts"
    if list(release.parts) != list(one.parts):
        return "kind or other parts"
    for part, other in zip(release.parts.values(), one.parts.values(), strict=True):
        said = part.predecessors[place]
        compared = {
            "score": part.score == other.score,
            "level": part.alpha == other.alpha,
            "relation between neighbors": part.privacy.neighbors == other.privacy.neighbors,
            "threshold": said.threshold == other.threshold,
            "privacy loss": said.epsilon == one.privacy.epsilon,
            "date": said.date == check_about(other.about).get("date"),
            "line of predecessors": part.predecessors[:place] == other.predecessors,
        }
        if wrong := [name for name, same in compared.items() if not same]:
            return wrong[0]
    return None


def miss_if_reused(calibration: Calibration) -> float | None:
    """A bound on the probability of a miss if its records may have been in every earlier release of its chain.

    1 minus the coverage if its candidates do not depend on the earlier thresholds, and always for new records. Else, by
    docs/theory-after-release.md, min(e^E a, 1 - e^-E (1 - a)), where E is what all earlier releases lose together if
    one record is replaced (twice what they lose if one is added or removed), and a the miscoverage that is certified.
    None for a promise about this calibration alone, of which then nothing is known.

    Examples
    --------
    >>> import confide, numpy as np
    >>> first = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 0.5, score="lac")
    >>> miss_if_reused(first) == 1 - first.coverage
    True
    """
    missed = 1 - calibration.coverage
    if not is_warm(calibration):
        return missed
    if calibration.guarantee.kind != "marginal":
        return None
    changes = 2 if calibration.privacy.neighbors == "add_remove" else 1
    grown = math.exp(min(changes * sum(one.epsilon for one in calibration.predecessors), 700.0))
    return min(grown * missed, 1 - (1 - missed) / grown)


def is_warm(calibration: Calibration) -> bool:
    """Whether its candidates are spread around the threshold of its last predecessor."""
    return bool(calibration.predecessors) and "around" in calibration.recipe
