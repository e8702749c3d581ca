"""Facts about a release, as names and values, for `confide show`, pages, cards and other programs."""

from collections.abc import Iterable, Mapping

from confide.candidates import spread_words
from confide.core.description import needed_text
from confide.core.expected import records_needed
from confide.core.population import rounding_text
from confide.core.release import Release, as_release
from confide.core.request import ABOUT
from confide.core.thresholds import Key
from confide.support import Classes, Facts, Section, versions_text

# Parts that the title of their common facts names.
_MOST_NAMED = 6


def making_facts(release: Release, key: Key = None) -> Facts:
    """How one threshold was made, that of a key."""
    # The threshold, and what belongs to all thresholds.
    threshold = release.parts[key]
    guarantee = threshold.guarantee
    shifted = release.population
    chosen = release.chosen
    needed = records_needed(release, key)
    secret = f"secret; the promise holds from {guarantee.n_min or 1:,} on"
    facts = {
        "nonconformity score": "not named" if threshold.score is None else threshold.score,
        "choice of the score": None if chosen is None else str(chosen),
        "promised": None if shifted is None else str(shifted),
        "weights": None if shifted is None else rounding_text(shifted),
        "miscoverage level alpha": str(threshold.alpha),
        "candidate thresholds": f"{threshold.candidates:,} ({spread_words(threshold.recipe)})",
        "calibration records": secret if threshold.n is None else f"{threshold.n:,}, public",
        "records needed": None if needed is None else needed_text(needed),
        "certified coverage": f"{guarantee.coverage!r} ({guarantee.kind.replace('_', '-')})",
        "failure probability delta": None if guarantee.delta is None else f"{guarantee.delta:.6g}",
        "certified by": threshold.proof,
        "made with": versions_text(release.versions),
    }
    return (*threshold.mechanism_facts, *_known(facts))


def _known(facts: Mapping[str, str | None]) -> Facts:
    """The facts that there are."""
    return tuple((name, text) for name, text in facts.items() if text is not None)


def making_section(release: Release) -> Section:
    """How a release was made: the facts of all its thresholds, and those of each kind of threshold."""
    names_by_facts: dict[Facts, list[str]] = {}
    for name, key in zip(as_release(release).by_name, release.parts, strict=True):
        names_by_facts.setdefault(making_facts(release, key), []).append(name)
    first, *others = names_by_facts
    common = tuple(fact for fact in first if all(fact in facts for facts in others))
    parts = tuple(
        Section(_joined(names), facts=tuple(fact for fact in facts if fact not in common))
        for facts, names in names_by_facts.items()
    )
    return Section("How it was made", facts=common, parts=parts if others else ())


def _joined(names: list[str]) -> str:
    some = ", ".join(names[:_MOST_NAMED])
    return some if len(names) <= _MOST_NAMED else f"{some} and {len(names) - _MOST_NAMED} more"


def about_facts(release: Release, expected: Iterable[str] = ()) -> tuple[tuple[str, str | None], ...]:
    """Public words of a release as names and values; None for `expected` ones that are missing."""
    about = release.about
    classes = release.classes
    model = release.fingerprint
    renewed = release.renews
    stated = {*about, *expected}
    public_words = tuple((name, about.get(key)) for key, name in ABOUT.items() if key in stated)
    facts = {
        "classes": None if classes is None else class_list(classes, 30),
        "fingerprint of the model": None if model is None else str(model),
        "renews": None if renewed is None else f"the release with SHA-256 {renewed}",
    }
    return public_words + _known(facts)


def class_list(classes: Classes, most: int = 10) -> str:
    """Classes in one line; of many names only the first."""
    if isinstance(classes, int):
        return f"{classes}, without names"
    return f"{len(classes)}: {', '.join(map(str, classes[:most]))}" + (", ..." if len(classes) > most else "")


def facts_of(release: Release) -> dict[str, str]:
    """Level, privacy loss, guarantee, score and checksum of a release, and the version of confide, as strings.

    Several levels have commas between them. There is a `rho` if there is no finite epsilon, and a `score` if the
    release states one.
    """
    thresholds = as_release(release).parts.values()
    scores = dict.fromkeys(threshold.score for threshold in thresholds if threshold.score is not None)
    facts = {
        "alpha": ", ".join(f"{float(level):.12g}" for level in release.levels),
        "epsilon": f"{release.privacy.epsilon:.12g}",
        "promise": _promise(release),
        "privacy": str(release.privacy),
        "checksum": release.checksum,
        "version": release.versions.get("confide", "unknown"),
    }
    if release.privacy.concentrated_only:
        facts["rho"] = f"{release.privacy.rho:.12g}"
    return facts | ({"score": ", ".join(scores)} if scores else {})


def _promise(release: Release) -> str:
    before = "for " if release.disjoint else ""
    return "; ".join(f"{before}{name}: {text}" if name else text for name, text in release.promises.items())
