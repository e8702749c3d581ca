"""Every code block and every command of the README and the documentation runs as it is written."""

import re
from importlib.util import find_spec

import pytest

from tests.docs.blocks import READ, ROOT, RUN, Block, blocks, pages
from tests.docs.runner import run_page

PAGES = {page.relative_to(ROOT).as_posix(): blocks(page) for page in pages()}

EVERYDAY = {"README.md", "docs/tutorial.md"}
"""Pages whose blocks run with the everyday tests, as far as they need no other package."""


def runs() -> list[object]:
    """One run per page and set of needed modules: the blocks that need nothing more, together with those that do."""
    found = []
    for name, all_blocks in PAGES.items():
        running = [block for block in all_blocks if block.runs]
        for needs in sorted({block.needs for block in running}, key=sorted):
            marks = [pytest.mark.slow] if needs or name not in EVERYDAY else []
            # Other packages may use deprecated functions, which we cannot fix.
            marks += [pytest.mark.filterwarnings("ignore::DeprecationWarning")] if needs else []
            found.append(pytest.param(name, needs, id="+".join([name, *sorted(needs)]), marks=marks))
    return found


@pytest.mark.long(unless="README.md")
@pytest.mark.parametrize(("name", "needs"), runs())
def test_page_runs(name, needs, tmp_path, monkeypatch, capsys):
    missing = [module for module in sorted(needs) if not is_installed(module)]
    if missing:
        pytest.skip(f"{name} has blocks that need {', '.join(missing)}")
    run_page([b for b in PAGES[name] if b.needs <= needs], tmp_path, monkeypatch, capsys)


def is_installed(module: str) -> bool:
    """Return whether a module is installed, without importing it; its package may be missing."""
    package = module.partition(".")[0]
    return find_spec(package) is not None and find_spec(module) is not None


def test_no_block_is_left_out_silently():
    """Each block has a language; a block that is not run states the reason."""
    wrong = [f"{b.place}: {b.language or 'no language'}" for bs in PAGES.values() for b in bs if not is_marked(b)]
    assert wrong == []


def is_marked(block: Block) -> bool:
    """Return whether a block is run, is text to read, or states why it is not run."""
    if block.language in READ:
        return "output" in block.markers or not block.markers
    return block.language in RUN and block.markers.get("not run", "reason") != "" and "output" not in block.markers


@pytest.mark.slow
def test_commands_named_in_sentences_exist():
    """Commands in sentences exist: targets of make, commands of confide, modules that Python can run."""
    from confide.cli.app import app

    known = app.commands
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    noxfile = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    sessions = set(re.findall(r"^@nox.session.*\ndef (\w+)", noxfile, flags=re.MULTILINE))
    for name, found in PAGES.items():
        sentences = re.findall(r"`([^`\n]+)`", (ROOT / name).read_text(encoding="utf-8"))
        for line in [*sentences, *(line for block in found for line in block.text.splitlines())]:
            words = line.split("#")[0].split()
            if words[:1] == ["make"] and len(words) > 1 and name != "CHANGELOG.md":  # it also names what was removed
                assert {word for word in words[1:] if "=" not in word} <= targets, f"{name}: {line}"
            elif words[:2] == ["nox", "-s"]:
                named = " ".join(words[2:]).partition(" -- ")[0].replace("-", "_").split()
                assert set(named) <= sessions, f"{name}: {line}"
            elif words[:1] == ["confide"] and words[1:2] > ["a"] and words[1].islower() and name != "CHANGELOG.md":
                assert words[1] in known, f"{name}: {line}"
                below = getattr(known[words[1]], "commands", None)
                assert below is None or len(words) < 3 or words[2] in below, f"{name}: {line}"
            elif words[:2] == ["python", "-m"]:
                assert words[2] == "pip" or find_spec(words[2]) is not None, f"{name}: {line}"
