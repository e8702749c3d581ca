"""Files are written completely or not at all."""

import os
import stat
from pathlib import Path

import pytest

import confide
from confide.support.files import FileKind, OutputExistsError, new_file, write_text
from tests.refused import refused

RELEASE = '{"kind": "confide/release"}'


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_files_are_written_completely(tmp_path):
    with new_file(tmp_path / "a.txt", overwrite=False) as part:
        assert part.parent == tmp_path
        part.write_text("content")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "content"
    assert names(tmp_path) == ["a.txt"]


ERRORS = [RuntimeError(), KeyboardInterrupt(), SystemExit(), confide.errors.InputError("work", "fails")]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_remains_if_the_work_fails(tmp_path, error, overwrite):
    path = tmp_path / "a.txt"
    if overwrite:
        path.write_text(RELEASE)

    def work():
        with new_file(path, overwrite=overwrite, kind=FileKind.RELEASE) as part:
            part.write_text("half")
            raise error

    with pytest.raises(type(error)):
        work()
    assert names(tmp_path) == (["a.txt"] if overwrite else [])
    assert not overwrite or path.read_text() == RELEASE


def test_an_existing_file_raises_before_the_work(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")
    with refused(OutputExistsError, "output"), new_file(path, overwrite=False):
        pytest.fail("the work must not begin")
    assert path.read_text() == "before"
    assert names(tmp_path) == ["a.txt"]


@pytest.mark.parametrize(("before", "kind"), [(None, OutputExistsError), (RELEASE, confide.errors.InputError)])
def test_a_file_that_appears_during_the_work_stays(tmp_path, before, kind):
    """Where nothing was there, and where an earlier output may be replaced."""
    path = tmp_path / "a.txt"
    if before is not None:
        path.write_text(before)

    def work():
        with new_file(path, overwrite=before is not None, kind=FileKind.RELEASE) as part:
            part.write_text(RELEASE)
            path.write_text("theirs")

    with refused(kind, "output"):
        work()
    assert path.read_text() == "theirs"
    assert names(tmp_path) == ["a.txt"]


def test_overwriting_replaces_in_one_step(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text(RELEASE)
    reader = path.open()
    write_text(path, RELEASE + "\n", overwrite=True)
    with reader:
        assert reader.read() == RELEASE  # an open file is still readable
    assert path.read_text() == RELEASE + "\n"


def test_only_an_earlier_output_of_the_same_kind_is_replaced(tmp_path):
    path = tmp_path / "a.txt"
    for before in ("p_a,p_b\n", '{"kind": "confide/ledger"}', '{"other": "confide/levels"}'):
        path.write_text(before)
        with refused(confide.errors.InputError, "output"):
            write_text(path, RELEASE, overwrite=True)
        assert path.read_text() == before
    path.write_text("")
    write_text(path, RELEASE, overwrite=True)
    assert path.read_text() == RELEASE
    with refused(confide.errors.InputError, "output"):
        write_text(path, "text of no kind", overwrite=True)


def test_errors_of_the_disk_are_one_line(tmp_path):
    with refused(confide.errors.InputError, "output"), new_file(tmp_path / "a.txt", overwrite=False):
        raise OSError(28, os.strerror(28))
    assert names(tmp_path) == []


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_are_the_usual_ones(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_text(tmp_path / "a.txt", "x", overwrite=False)
        assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~umask
        assert os.umask(umask) == umask
    finally:
        os.umask(before)


def test_a_durable_file_is_on_disk_before_its_name_is(tmp_path, monkeypatch):
    """First the text, then the name in its folder; otherwise a power failure could leave an empty file."""
    steps, replace = [], Path.replace

    def synced(handle):
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "text")

    def moved(part, path):
        steps.append("name")
        return replace(part, path)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", moved)
    write_text(tmp_path / "a.json", "{}", overwrite=True, durable=True)
    assert steps == ["text", "name", "folder"]
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == "{}"
