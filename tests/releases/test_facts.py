"""Facts of a release as short texts, for every kind of file."""

import pytest

from confide.releases import facts_of, load_release, parts_of
from tests.kept import path_of


@pytest.mark.parametrize(
    ("name", "alpha", "promise"),
    [
        ("calibration", "0.1", "coverage at least 0.9 on average"),
        ("levels", None, "alpha "),
        ("groups", None, "for each group: coverage at least"),
        ("sides", None, "lower side: coverage at least"),
        ("risk", None, "at most 20 % of a record's true labels are missed on average"),
        ("federated", None, "coverage at least"),
        ("none", None, "coverage at least"),
    ],
)
def test_facts_are_those_of_the_release(name, alpha, promise):
    release = load_release(path_of(name))
    facts = facts_of(release)
    assert all(isinstance(value, str) and "\n" not in value for value in facts.values())
    assert facts["promise"].startswith(promise)
    assert float(facts["epsilon"]) == pytest.approx(release.privacy.epsilon)
    assert facts["checksum"] == release.checksum
    assert facts["version"] == next(iter(parts_of(release).values())).versions["confide"]
    levels = {float(part.alpha) for part in parts_of(release).values()}
    said = [float(one) for one in facts["alpha"].split(", ")]
    if name == "sides":
        assert said == [float(release.alpha)]
        assert said[0] > max(levels)
    else:
        assert set(said) == levels
        assert alpha is None or facts["alpha"] == alpha
