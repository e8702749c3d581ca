"""Texts from files are printed without control characters."""

import json

import numpy as np
import pytest

import confide
from confide.cli.app import main
from confide.cli.output import print_json, print_text, print_warning
from confide.support import aligned, checksum, escape_line, escape_text
from tests.federated.helpers import Federation
from tests.refused import refused

HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202egnp.exe\r\x7f\u2028"
STEERS = set("\x1b\x07\x9b\u202e\r\x7f\u2028")


def test_control_characters_are_escaped_and_nothing_else_changes():
    for code in range(0x3000):
        letter = chr(code)
        shown = escape_text(letter)
        if letter.isprintable() or letter in "\t\n":
            assert shown == letter
        assert shown == letter or shown.isprintable()
        assert len(escape_line(letter).splitlines()) == 1 or letter == ""
    assert escape_text("naïve 猫 🐈\u200d⬛ نص") == "naïve 猫 🐈\u200d⬛ نص"


def test_every_way_to_the_screen(capsys):
    print_text(HOSTILE)
    print_warning(HOSTILE + "\nwarning: forged")
    print_json({"name": HOSTILE})
    assert main(["show", f"no such file {HOSTILE}"]) == 3
    result = capsys.readouterr()
    assert not STEERS & set(result.out + result.err)
    assert len(result.err.splitlines()) == 2
    assert json.loads(result.out[result.out.index("{") :])["name"] == HOSTILE


@pytest.mark.parametrize("as_json", [False, True])
def test_a_hostile_release_is_shown_harmless(tmp_path, capsys, as_json):
    rng = np.random.default_rng(0)
    three = Federation(tmp_path, [rng.random(200) for _ in range(3)])
    plan = three.plan(epsilon=4.0, dropouts=1)
    text = confide.federated.aggregate(plan, three.answers(plan)).to_json()
    content = {key: value for key, value in json.loads(text).items() if key != "sha256"}
    content["refused"] = [[f"north{HOSTILE}\nsigned by 'coordinator'", "late"]]
    path = tmp_path / "released.json"
    path.write_text(json.dumps({**content, "sha256": checksum(content)}))
    for command in ("show", "verify"):
        capsys.readouterr()
        assert main([command, str(path), *(["--json"] if as_json and command == "show" else [])]) == 0
        result = capsys.readouterr()
        assert not STEERS & set(result.out + result.err)
        assert not any(line.strip().startswith("signed by") for line in result.out.splitlines())
    forged = content | {"versions": {f"confide{HOSTILE}": f"1{HOSTILE}\nsigned by 'coordinator'"}}
    with refused(confide.errors.FormatError, "release") as refusal:
        confide.Release.from_json(json.dumps({**forged, "sha256": checksum(forged)}))
    assert not STEERS & set(str(refusal.value))
    printed = str(confide.Release.load(path))
    assert not STEERS & set(printed)
    assert "\nsigned by" not in printed


def test_a_name_stays_on_its_line():
    result = aligned([("plan", "a\nsigned by 'coordinator'"), ("north\rsouth", "b")])
    assert len(result.splitlines()) == 2
    assert not STEERS & set(result)
