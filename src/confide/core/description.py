"""The description of a release: its promise and cost, thresholds, mechanism and conditions; and in one line."""

from confide.core.expected import records_needed
from confide.core.thresholds import KEYS, Thresholds
from confide.mechanisms import PublishedHistogram
from confide.support import Facts, Section

_ANY_LEVEL = (
    "one noisy histogram answers every level; the promise of a level holds if it was chosen without looking at it"
)

# The meaning of groups of several columns, in words.
OVERLAP = (
    "a record is in one group of each, and its set takes the largest threshold of its groups; the promise is for each "
    "group, on average over its people, and not for intersections of groups"
)


def section_of(release: Thresholds) -> Section:
    """The whole description."""
    # Its guarantee and its cost.
    promise = (("promise", release.promise),) if release.by is None else _promises(release)
    together: dict[str | None, str] = {"level": "privacy of all together", "side": "privacy of both together"}
    facts = [*promise, (together.get(release.by, "privacy"), str(release.privacy))]
    if release.by is None and release.size is not None:
        facts.append(("records", f"{release.size}, a noisy number, which is part of the release"))
    if release.chosen is not None:
        facts.append(("choice of the score", str(release.chosen)))

    # The mechanism, and what else it has released or depends on.
    mechanism = release.first.mechanism
    if mechanism is not None and mechanism.name != "slopes":
        facts.append(("method", mechanism.name))
    if isinstance(mechanism, PublishedHistogram):
        facts.append(("condition", f"every count has {mechanism.noise}"))
    if release.first.noisy_counts is not None:
        facts.append(("levels", _ANY_LEVEL))
    if release.fingerprint is not None:
        facts.append(("fingerprint of the model", str(release.fingerprint)))

    # The number of records that it requires, and the threshold of each group or class.
    facts += _needed_facts(release, KEYS[release.by].each)
    parts = (_table(release),) if release.disjoint else ()
    return Section(type(release).__name__, _lead(release), tuple(facts), parts=parts)


def brief_of(release: Thresholds) -> str:
    """The description in one line."""
    # One threshold.
    privacy = release.privacy.brief
    if release.by is None and release.loss is None:
        return release.first._brief()
    if release.by is None:
        delta = release.guarantee.delta
        sure = "" if delta is None else f" with probability {1 - delta:.6g}"
        loss = f"loss {release.loss!r}, expected loss at most {release.risk:.6g}{sure}"
        return f"threshold {release.threshold:.6g}, {loss}, {privacy}"

    # Several.
    thresholds = _thresholds(release)
    if release.by == "level":
        levels = ", ".join(f"{float(alpha):g}" for alpha in release.parts)
        return f"alpha {levels}: {thresholds} for the first, {privacy}"
    alpha = f"alpha {float(release.alpha):g}"
    if release.by == "side":
        return f"{thresholds} at each end, {alpha}, {privacy}"
    return f"{len(release.parts)} {_plural(release)}, {thresholds} in each, {alpha}, {privacy}"


def any_shares(release: Thresholds) -> str:
    """A clause about the shares of groups or classes, under all of which their promise holds; empty for others."""
    # If groups overlap, other shares of one column change the records within the groups of another.
    if not release.disjoint or release.overlap is not None:
        return ""
    if not all(threshold.coverage for threshold in release.parts.values()):
        return ""
    return f"the promise holds for any shares of the {_plural(release)} among new records"


def _plural(release: Thresholds) -> str:
    return "classes" if release.by == "class" else "groups"


def _lead(release: Thresholds) -> str:
    if release.by is not None:
        return ""
    name = "unnamed score" if release.score is None else f"score {release.score!r}"
    return f"threshold {release.first.text} for the {name if release.loss is None else f'loss {release.loss!r}'}"


def _promises(release: Thresholds) -> Facts:
    if not release.disjoint:
        named = release.by_name.items()
        return tuple((name, f"threshold {threshold.text}; {threshold.guarantee}") for name, threshold in named)
    facts = [
        ("thresholds that exclude nothing", f"{len(release.infinite)} of {len(release.parts)}"),
        # The guarantee of all groups is the same, and is stated once.
        (f"promise for each {release.by}", str(release.first.guarantee)),
    ]
    if release.overlap is not None:
        facts.insert(0, ("groups of", f"{release.overlap}: {OVERLAP}"))
    if shares := any_shares(release):
        facts.append(("shares", shares))
    return tuple(facts)


def _table(release: Thresholds) -> Section:
    """The threshold of each group or class, with the noisy number of its records if that was released."""
    facts = []
    for key, threshold in release.parts.items():
        records = "" if threshold.size is None else f", records: {threshold.size}"
        facts.append((f"{release.by} {key!r}", f"threshold {threshold.text}{records}"))
    return Section("", facts=tuple(facts))


def _thresholds(release: Thresholds) -> str:
    """The range of several thresholds, and the weakest guarantee."""
    thresholds = list(release.parts.values())
    values = [threshold.threshold for threshold in thresholds]
    low, high = min(values), max(values)
    numbers = f"threshold {low:.6g}" if low == high else f"thresholds {low:.6g} to {high:.6g}"
    useless = f" ({len(release.infinite)} of them exclude nothing)" if release.infinite and low != high else ""
    weakest = min(thresholds, key=lambda threshold: threshold.coverage)
    score = "no score named" if weakest.score is None else f"score {weakest.score!r}"
    return f"{numbers}{useless}, {score}, {weakest.guarantee.brief}"


def _needed_facts(release: Thresholds, each: str) -> Facts:
    """A printable fact: the records that the most demanding threshold needs; `each` is a phrase as " in each group".

    Empty for published methods, and if a public number of records suffices.
    """
    needed = records_needed(release)
    if needed is None or any((threshold.n or 0) >= needed for threshold in release.parts.values()):
        return ()
    return (("records needed", needed_text(needed, each)),)


def needed_text(needed: int, each: str = "") -> str:
    """The required number of records, in words; `each` is a noun for what the number belongs to."""
    return (
        f"about {needed:,}{each}; with fewer, more than 1 calibration in 100 gives a useless threshold (+inf, or above "
        "every score)"
    )
