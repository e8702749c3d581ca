"""The published vectors: independent arithmetic, their form, and the agreement of all readers."""

import json
import shutil
import subprocess

import pytest

from tests.builders import slow
from tests.vectors import make
from tests.vectors.form import agrees

FILES = {path.stem: path for path in make.VECTORS.glob("*.json") if path.stem != "schema"}
CONTENTS = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in FILES.items()}
READER = make.VECTORS / "javascript"
needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="needs Node.js 18 or newer, as `apt-get install nodejs` brings it"
)


@pytest.mark.parametrize(
    "subject", ["utilities", "laws", "losses", "noise", "watches", *slow(["plans", "certificates", "evaluations"])]
)
def test_file_equals_generator_output(subject):
    """A changed vector is a breaking change: raise VERSION in make.py, rewrite the files, and add a changelog line."""
    kept = FILES[subject].read_text(encoding="utf-8")
    assert make.text(subject) == kept, f"{subject}.json is not what `python -m tests.vectors.make` writes"


@pytest.mark.slow
def test_every_file_follows_the_schema():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((make.VECTORS / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    for name, content in CONTENTS.items():
        check.validate(content)
        assert content["subject"] == name
        one = content["cases"][0]
        without = {key: value for key, value in one.items() if key != "source"}
        for spoiled in ({**one, "more": 1}, {**one, "id": "two words"}, {**one, "refused": True}, without):
            assert not check.is_valid({**content, "cases": [spoiled]})


def test_names_are_unique():
    for content in CONTENTS.values():
        names = [one["id"] for one in content["cases"]]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("subject", [*sorted(FILES.keys() - {"plans"}), *slow(["plans"])])
def test_the_library_agrees_with_every_vector(subject):
    pytest.importorskip("scipy")
    pytest.importorskip("cryptography")
    from tests.vectors.library import REFUSALS, found

    wrong = []
    for one in CONTENTS[subject]["cases"]:
        try:
            answer = found(one["operation"], one["input"])
        except REFUSALS as error:
            answer = error
        refused = isinstance(answer, Exception)
        if refused != ("refused" in one) or not (refused or agrees(answer, one["expected"], one["tolerance"])):
            wrong.append((one["id"], answer, one.get("expected", "refused")))
    assert not wrong


@pytest.mark.slow
@needs_node
def test_the_reader_in_javascript_agrees_with_every_vector():
    done = subprocess.run(["node", READER / "reader.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counted = [line.split() for line in done.stdout.splitlines()]
    left = sum(int(words[3]) for words in counted)
    assert (len(counted), left) == (len(FILES), 14)
    assert sum(int(words[1]) for words in counted) + left == sum(len(one["cases"]) for one in CONTENTS.values())


@needs_node
@pytest.mark.long
def test_the_reader_in_javascript_notices_every_change():
    """Its own tests: they change each expected value in turn, and every change must be detected."""
    done = subprocess.run(["node", "--test", READER / "reader.test.mjs"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout
