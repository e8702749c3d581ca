"""The demo: its story is true, its files are sound, and the commands that it prints work."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.cli import main
from confide.demo import apply_threshold, digits, run
from tests.files import read

pytestmark = pytest.mark.xdist_group("demo")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "left behind"
    return folder, run(folder)


@pytest.mark.long
def test_the_files_are_the_calibration_the_sets_and_the_new_images(demo):
    folder, _ = demo
    names = ["calibration.json", "images.parquet", "report.html", "sets.parquet"]
    assert sorted(path.name for path in folder.iterdir()) == names
    released = confide.Release.load(folder / "calibration.json")
    data = digits()
    sets = read(folder / "sets.parquet")
    assert sets.column_names == ["image", "digit", "prediction_set", "set_size"]
    expected = confide.predict_set(data.new_probabilities, released, tuple(map(str, range(10)))).labels()
    assert sets["prediction_set"].to_pylist() == expected
    assert sets["digit"].to_pylist() == data.new_labels.tolist()
    assert released.n is None
    assert (released.coverage, released.epsilon) == (0.9, 1.0)


@pytest.mark.slow
def test_the_story_states_what_is_in_the_files(demo):
    folder, story = demo
    released = confide.Release.load(folder / "calibration.json")
    data = digits()
    private = apply_threshold(data, released.threshold)
    scores = np.sort(confide.lac_score(data.probabilities, data.labels))
    ordinary = apply_threshold(data, float(scores[631 - 1]))  # ceil(701 * 0.9) = 631
    for each in (private, ordinary):
        found = each.coverage
        for words in (f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})", f"{each.threshold:.4f}"):
            assert words in story
    assert f"Cost of privacy: {private.sets.sizes.mean() - ordinary.sets.sizes.mean():.2f} digits per set" in story
    assert "1-differential privacy" in story
    assert "not private" in story
    assert "without privacy" in story
    found = re.findall(r"image +(\d+)   true digit (\d)   set \{([\d, ]*)\}(   missed)?", story)
    assert len(found) >= 4
    for image, digit, members, missed in found:
        chosen = [int(member) for member in members.split(",")]
        assert chosen == np.flatnonzero(private.sets.mask[int(image)]).tolist()
        assert (int(digit) in chosen) == (not missed)


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    written = Path("demo-output/calibration.json").read_bytes()
    assert main(["demo"]) == 4
    assert Path("demo-output/calibration.json").read_bytes() == written
    assert main(["demo", "--force"]) == 0
    assert confide.Release.load("demo-output/calibration.json").score == "lac"


@pytest.mark.long
def test_the_printed_commands_work_on_the_files_left(demo, capsys):
    folder, story = demo
    commands = [
        shlex.split(text.replace("\\\n", ""))
        for text in re.findall(r"^ +(confide (?:.*\\\n)*.*)$", story, re.MULTILINE)
    ]
    assert [command[1] for command in commands] == ["show", "predict", "evaluate", "calibrate"]
    before = read(folder / "sets.parquet")
    for command in commands[:3]:
        assert main(command[1:]) == 0
    assert read(folder / "sets.parquet") == before
    capsys.readouterr()
    own = [str(folder / "images.parquet") if word == "records.parquet" else word for word in commands[3][1:]]
    assert main([*own[:-1], str(folder.parent / "cal.json")]) == 0
