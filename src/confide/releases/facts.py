"""What a release is, in a few short texts: for tags of a registry and for the metadata of a model."""

from fractions import Fraction

from confide.releases.calibration import Calibration
from confide.releases.release import Release
from confide.releases.risk import RiskCalibration
from confide.releases.several import GroupCalibration, LevelCalibration, SidesCalibration, parts_of


def facts_of(release: Release) -> dict[str, str]:
    """Level, loss, promise, score and checksum of a release, and the version of confide that made it, as texts.

    Parameters
    ----------
    release
        A release of any kind.

    Returns
    -------
    dict
        `alpha` and `epsilon` as numbers, several levels with commas between them, and `rho` where there is no finite
        epsilon; `promise` and `privacy` in words;
        `score`, if it has one; `checksum` and `version`.

    Raises
    ------
    InputTypeError
        If it is no release.

    Examples
    --------
    >>> import confide, numpy as np
    >>> released = confide.calibrate(np.linspace(0, 1, 2000), 0.1, 1.0, score="lac")
    >>> facts = facts_of(released)
    >>> facts["alpha"], facts["epsilon"], facts["score"], facts["checksum"] == released.checksum
    ('0.1', '1', 'lac', True)
    """
    parts = list(parts_of(release).values())
    levels = [part.alpha for part in parts] if isinstance(release, LevelCalibration) else [_alpha(release, parts[0])]
    scores = dict.fromkeys(part.score for part in parts if part.score is not None)
    facts = {
        "alpha": ", ".join(f"{float(level):.12g}" for level in levels),
        "epsilon": f"{release.privacy.epsilon:.12g}",
        "promise": _promise(release),
        "privacy": str(release.privacy),
        "checksum": release.checksum,
        "version": parts[0].versions.get("confide", "unknown"),
    }
    if release.privacy.concentrated_only:
        facts["rho"] = f"{release.privacy.rho:.12g}"
    return facts | ({"score": ", ".join(scores)} if scores else {})


def _alpha(release: Release, part: Calibration) -> Fraction:
    """The level of one promise: that of both sides together where there are two."""
    return release.alpha if isinstance(release, SidesCalibration) else part.alpha


def promises(release: Release) -> dict[str, str]:
    """What is promised, in words, by what it is promised for: "" for a release as a whole.

    Examples
    --------
    >>> import confide, numpy as np
    >>> scores = np.random.default_rng(0).random(4000)
    >>> promises(confide.calibrate_groups(scores, ["a", "b"] * 2000, ["a", "b"], 0.1, 1.0))
    {'each group': 'coverage at least 0.9 on average over calibration data and new records, for every number of ...'}
    """
    parts = parts_of(release)
    if isinstance(release, RiskCalibration):
        return {"": release.promise}
    if isinstance(release, GroupCalibration):
        return {f"each {release.by}": str(next(iter(parts.values())).guarantee)}
    return {name: str(part.guarantee) for name, part in parts.items()}


def _promise(release: Release) -> str:
    """The same in one text."""
    if isinstance(release, GroupCalibration):
        return "; ".join(f"for {name}: {text}" for name, text in promises(release).items())
    return "; ".join(f"{name}: {text}" if name else text for name, text in promises(release).items())
