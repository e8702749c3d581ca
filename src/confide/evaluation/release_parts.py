"""What an evaluation states of its release: which file it is, what it promises, and what has thresholds of its own."""

import hashlib
from collections.abc import Sequence

from confide.errors import InputError
from confide.evaluation.parts import CONFIDENCE, Division
from confide.evaluation.result import Evaluation
from confide.releases import Release
from confide.sets import count_shortfall, coverage_from_counts


def fingerprint(release: Release) -> str:
    """SHA-256 of a release's JSON, hexadecimal."""
    return hashlib.sha256(release.to_json().encode()).hexdigest()


def division_of(release: Release) -> Division | None:
    """What has a threshold of its own in a release."""
    by = release.by
    return None if by is None or by == "loss" or by == "level" else by


def class_keys(release: Release, names: Sequence[object]) -> list[str | int]:
    """The classes of a release, in the order of the columns, whose names may be texts that read like them.

    Raises
    ------
    InputError
        If the columns have other classes, unless the release has 0 to K-1 and the columns K names.
    """
    by_text = {str(key): key for key in release.parts}
    texts = [str(name) for name in names]
    if len(by_text) == len(release.parts) and sorted(texts) == sorted(by_text):
        return [by_text[text] for text in texts]
    if set(release.parts) == set(range(len(texts))):
        return list(range(len(texts)))
    some = ", ".join(list(by_text)[:10]) + (", ..." if len(by_text) > 10 else "")
    raise InputError(
        f"classes must be the {len(release.parts)} that were calibrated ({some}); found {len(texts)} columns or other "
        "names; give the names in the order of the columns"
    )


def evaluation_of(release: Release, hits: int, n: int) -> Evaluation:
    """The evaluation of a release on n records of which `hits` are covered, before whatever else was counted."""
    covered, short = coverage_from_counts(hits, n, CONFIDENCE), count_shortfall(release, hits, n)
    division = division_of(release)
    return Evaluation(fingerprint(release), release.promised, covered, by=division, shortfall=short)
