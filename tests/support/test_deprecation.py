"""Old names work, say what takes their place, point at the caller, and do not stay beyond their time."""

import ast
import re
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.support import DEPRECATIONS, Deprecation, deprecated, old_names, renamed_argument

ROOT = Path(__file__).parents[2]


def minor(version):
    return tuple(int(part) for part in version.split(".")[:2])


@cache
def declared():
    """All deprecations in the source, also of rooms that cannot be imported here: place, since, removed in."""
    return tuple(_declared())


def _declared():
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if "removed_in=" in text else ():
            given = {one.arg: one.value for one in getattr(node, "keywords", ()) if isinstance(node, ast.Call)}
            if "removed_in" in given and isinstance(given["removed_in"], ast.Constant):
                since, removed_in = (ast.literal_eval(given[name]) for name in ("since", "removed_in"))
                yield f"{path.relative_to(ROOT)}:{node.lineno}", since, removed_in


def overdue(version, found):
    return [f"{place} was to go in {removed_in}" for place, _, removed_in in found if minor(removed_in) <= version]


def test_nothing_stays_beyond_its_time():
    found = declared()
    assert found
    version = re.search(r'(?m)^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    assert overdue(minor(version), found) == []
    assert len(overdue((0, 4), found)) == len([one for one in found if one[2] == "0.4"])  # the test can fail


def test_everything_stays_for_two_minor_releases():
    """Deprecated in 0.2, it works in 0.2 and 0.3, and may be gone in 0.4."""
    for place, since, removed_in in declared():
        (major, first), (last_major, last) = minor(since), minor(removed_in)
        assert last_major > major or last - first >= 2, place


@pytest.fixture
def forgotten():
    """What a test deprecates is not kept in the list."""
    before = dict(DEPRECATIONS)
    yield
    DEPRECATIONS.clear()
    DEPRECATIONS.update(before)


def said(call):
    """The one deprecation that a call says, which has to point at this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    (one,) = {(str(w.message), w.category, w.filename) for w in caught}  # `from room import name` looks twice
    assert one[1:] == (confide.ConfideDeprecationWarning, __file__)
    return result, one[0]


def test_the_message_says_since_when_until_when_and_what_instead(forgotten):
    @deprecated("area(r)", "confide.disc(r)", since="0.2", removed_in="0.4")
    def area(r):
        return 3 * r * r

    result, message = said(lambda: area(2))
    assert result == 12
    assert message == "area(r) is deprecated since 0.2 and may be gone in 0.4; use confide.disc(r)"
    assert DEPRECATIONS["area(r)"] == Deprecation("area(r)", "confide.disc(r)", "0.2", "0.4")
    assert area.__name__ == "area"


def test_it_is_seen_without_a_filter():
    """Python shows no DeprecationWarning outside of __main__, and jobs run modules."""
    assert issubclass(confide.ConfideDeprecationWarning, FutureWarning)


def test_an_argument_by_its_old_name(forgotten):
    @renamed_argument("area", "radius", "r", since="0.2", removed_in="0.4")
    def area(*, r):
        return 3 * r * r

    result, message = said(lambda: area(radius=2))
    assert result == 12
    assert message == "radius= of area is deprecated since 0.2 and may be gone in 0.4; use r="
    with pytest.raises(confide.InputTypeError, match="r must be given once; radius is its old name"):
        area(radius=2, r=2)


def test_an_option_of_the_command_line(forgotten):
    click = pytest.importorskip("click")
    from click.testing import CliRunner

    goes = deprecated("--radius", "--r", since="0.2", removed_in="0.4")

    @click.command()
    @click.option("--radius", type=int, hidden=True, callback=goes.when_given)
    def area(radius):
        click.echo(radius)

    with pytest.warns(confide.ConfideDeprecationWarning, match=r"--radius is deprecated since 0\.2 .* use --r$"):
        assert CliRunner().invoke(area, ["--radius", "2"]).output == "2\n"
    assert CliRunner().invoke(area, []).exit_code == 0  # warnings are errors here


def test_names_of_a_module(forgotten):
    find = old_names("shapes", {"sine": "math.sin"}, since="0.2", removed_in="0.4")
    assert said(lambda: find("sine"))[0](0) == 0
    with pytest.raises(AttributeError, match="module 'shapes' has no attribute 'cosine'"):
        find("cosine")


OF_0_1 = {
    "confide.evaluation": {
        "of_sets": "confide.evaluate_sets",
        "of_intervals": "confide.evaluate_intervals",
        "of_scores": "confide.evaluate_scores",
        "of_counts": "confide.evaluation.evaluation_from_counts",
        "Part": "confide.evaluation.Subgroup",
        "Shown": "confide.evaluation.Example",
    },
    "confide.plots": {"set_sizes": "confide.plot_sizes", "coverage_by_class": "confide.plot_coverage"},
    "confide.federated": {
        "SiloState": "confide.federated.SiloLedger",
        "ehm_bound": "confide.papers.one_shot_federated.ehm_bound",
        "published_deviation": "confide.papers.one_shot_federated.published_deviation",
        "unequal_loss": "confide.papers.one_shot_federated.loss_of_equal_treatment",
    },
}


@pytest.mark.parametrize(("room", "name"), [(room, name) for room, names in OF_0_1.items() for name in names])
def test_a_name_of_0_1_is_todays(room, name):
    needed = {"confide.plots": "matplotlib", "confide.federated": "cryptography"}
    pytest.importorskip(needed.get(room, "numpy"))
    today = OF_0_1[room][name]
    found, message = said(lambda: getattr(__import__(room, fromlist=["__name__"]), name))
    home, _, own = today.rpartition(".")
    assert found is getattr(__import__(home, fromlist=["__name__"]), own)
    assert message.endswith(f"{name} is deprecated since 0.2 and may be gone in 0.4; use {today}")
    assert name not in dir(__import__(room, fromlist=["__name__"]))


def test_names_of_0_1_are_imported_as_they_were():
    def take():
        from confide.evaluation import of_sets

        return of_sets

    assert said(take)[0] is confide.evaluate_sets
    with pytest.raises(ImportError):
        from confide.evaluation import of_nothing  # noqa: F401


def test_evaluations_are_read_as_in_0_1(tmp_path):
    sets = np.eye(3)[[0, 1, 2] * 100] * 0.7 + 0.1
    release = confide.calibrate(confide.lac_score(sets, [0, 1, 2] * 100), mechanism="none", alpha=0.1)
    made = confide.evaluate_sets(release, sets, [0, 1, 2] * 100)
    (tmp_path / "made.json").write_text(made.to_json(), encoding="utf-8")
    assert said(lambda: confide.Evaluation.from_json(made.to_json()))[0] == made
    assert said(lambda: confide.Evaluation.load(tmp_path / "made.json"))[0] == made
    with pytest.raises(confide.FormatError, match="not of a LevelEvaluation"), pytest.warns(FutureWarning):
        confide.LevelEvaluation.load(tmp_path / "made.json")


def test_reports_of_releases(tmp_path):
    pytest.importorskip("jinja2")
    release = confide.calibrate(np.arange(50) / 50, 0.1, mechanism="none", score="lac")
    page, message = said(lambda: release.report(tmp_path / "page.html", title="Triage"))
    assert page == confide.report(release, title="Triage").html
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert message.endswith("use confide.report(release)")


def test_plots_of_sets():
    pytest.importorskip("matplotlib").use("agg")
    sets = confide.PredictionSets(np.array([[True, False], [True, True]] * 20))
    assert said(sets.plot_sizes)[1].endswith("use confide.plot_sizes(sets)")
    assert said(lambda: sets.plot_coverage([0, 1] * 20))[1].endswith("use confide.plot_coverage(sets, labels)")


def test_the_state_of_a_silo(tmp_path):
    pytest.importorskip("cryptography")
    from confide import federated

    state = said(lambda: federated.SiloState)[0](tmp_path / "budget.db")
    scores = np.arange(500) / 500
    release, message = said(lambda: federated.own_calibration(scores, 0.1, 1.0, score="lac", state=state))
    assert state.spent == release.epsilon == 1
    assert message.startswith("state= of confide.federated.own_calibration is deprecated")
