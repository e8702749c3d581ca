"""Progress of a long run on a terminal."""

import io
import re
import sys

import pytest

from confide.cli.output import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def opened(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    return shown


def test_rows_of_a_known_number_are_a_share(monkeypatch):
    terminal = opened(monkeypatch)
    with progress_bar("counting", lambda: 400) as progress:
        progress(100)
    assert re.search(r"counting .* 25%", terminal.getvalue())


def test_elapsed_time_is_shown_until_the_number_of_tasks_is_set(monkeypatch):
    terminal = opened(monkeypatch)
    with progress_bar("counting", lambda: None) as progress:
        progress(100)
        progress._bar.refresh()
        assert "0:00:00" in terminal.getvalue()
        assert "%" not in terminal.getvalue()
        progress.share(3, 4)
    assert re.search(r"counting .* 75%", terminal.getvalue())


def test_no_progress_without_a_terminal(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar("counting", lambda: pytest.fail("the number of rows was asked for")) as progress:
        progress(100)
    assert not hasattr(progress, "share")
    assert sys.stderr.getvalue() == ""
