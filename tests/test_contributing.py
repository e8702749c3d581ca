"""Tools for contributors: `make help`, hooks for pre-commit, and the forms for issues."""

import re
import shutil
import subprocess

import pytest

from tests.docs.blocks import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"


def load(path):
    return pytest.importorskip("yaml").safe_load(path.read_text(encoding="utf-8"))


def test_every_target_has_a_line():
    (targets,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE)
    rules = re.findall(r"^([a-z][a-z-]*):(?:.*  ## (\S.*))?$", MAKEFILE, flags=re.MULTILINE)
    assert sorted(name for name, _ in rules) == sorted(targets.split())
    assert [name for name, line in rules if not line] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_alone_prints_the_lines_of_all_targets():
    lines = re.findall(r"^([a-z][a-z-]*):.*  ## (.*)$", MAKEFILE, flags=re.MULTILINE)
    for command in (["make"], ["make", "help"]):
        done = subprocess.run([*command, "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [f"make {name:17} {line}" for name, line in lines]


def test_hooks_are_the_commands_of_make_check():
    """In the same order, on all files, and nothing is downloaded for them."""
    (recipe,) = re.findall(r"^check:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)
    (repository,) = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = repository["hooks"]
    assert [hook["entry"] for hook in hooks] == [
        line.strip().replace("$(BIN)", ".venv/bin") for line in recipe.splitlines()
    ]
    settings = {"language": "system", "pass_filenames": False, "always_run": True}
    for hook in hooks:
        assert hook == settings | {name: hook[name] for name in ("id", "name", "entry")}


@pytest.mark.parametrize("name", ["bug", "guarantee", "wish"])
def test_forms_have_what_the_host_requires(name):
    """A form without one of these is not shown: names, texts, an input, ids that differ, labels."""
    form = load(FORMS / f"{name}.yml")
    assert set(form) == {"name", "description", "body"}
    inputs = [part for part in form["body"] if part["type"] != "markdown"]
    assert inputs
    assert len({part["id"] for part in inputs}) == len(inputs)
    assert all(part["attributes"]["label"] for part in inputs)
    assert {part["type"] for part in inputs} <= {"checkboxes", "input", "textarea"}


def test_there_is_no_public_form_for_what_should_be_private():
    """The forms for public bug reports refer to SECURITY.md, and no blank one is offered."""
    assert {path.stem for path in FORMS.iterdir()} == {"bug", "config", "guarantee", "wish"}
    assert load(FORMS / "config.yml") == {"blank_issues_enabled": False}
    for name in ("bug", "guarantee"):
        first = load(FORMS / f"{name}.yml")["body"][0]
        assert first["type"] == "markdown"
        assert "SECURITY.md" in first["attributes"]["value"]
    assert "SECURITY.md" in load(FORMS / "guarantee.yml")["description"]  # what the list of forms shows
