"""The program as a process: start, streaming, interruption and end."""

import hashlib
import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide.cli.exit_codes import DONE
from confide.core import Document, Release, entry_checksums
from confide.ledger import Ledger
from confide.watching import Watch
from tests.builders import slow
from tests.calibrations import calibration_at
from tests.files import classified, write

CONFIDE = (sys.executable, "-m", "confide")


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("released") / "cal.json"
    confide.calibrate(np.asarray(confide.lac_score(*classified())), 0.1, 1.0, score="lac").save(path)
    return path


def long_file(path: Path, blocks: int) -> Path:
    """Blocks of 2**17 rows of 10 probabilities (10 MB each once decoded, a few bytes each in the file)."""
    row = np.array([[0.5, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.0]]).T
    values = np.random.default_rng(0).permuted(np.tile(row, 2**17), axis=0)
    table = pa.table({f"p_{k}": values[k] for k in range(10)})
    with pq.ParquetWriter(path, table.schema) as writer:
        for _ in range(blocks):
            writer.write_table(table)
    return path


def predict(records: Path, released: Path, out: Path) -> list[str]:
    return ["predict", str(records), "--calibration", str(released), "--probabilities", "p_*", "--out", str(out)]


@pytest.mark.long
def test_memory_does_not_grow_with_the_file(tmp_path, released):
    peaks = []
    for blocks in (2, 30):
        records = long_file(tmp_path / f"{blocks}.parquet", blocks)
        command = predict(records, released, tmp_path / f"sets-{blocks}.parquet")
        ran = subprocess.run([sys.executable, "-c", _PEAK, *command], capture_output=True, text=True, check=True)
        peaks.append(int(ran.stderr))
    assert peaks[1] - peaks[0] < 150 * 2**20  # the larger file decodes to 300 MB of probabilities


_PEAK = """
import re, resource, sys
from pathlib import Path
from confide.cli import main
assert main(sys.argv[1:]) == 0
status = Path("/proc/self/status")
if status.exists():
    peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read_text())[1]) * 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(peak, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def many_records(tmp_path_factory) -> Path:
    return long_file(tmp_path_factory.mktemp("many") / "records.parquet", 120)


LATER = {
    "predicting": "predict --probabilities p_* --out out.csv",
    "evaluating": "evaluate --score-column p_0 --out out.json",
    "evaluating privately": "evaluate --score-column p_0 --epsilon 1 --out out.json",
    "looking": "watch --score-column p_0 --state out.json --look 1 --epsilon 1 --batch 9999999",
    "counting": "recalibrate --score-column p_0 --out out.json",
}


@pytest.mark.long
@pytest.mark.xdist_group("interrupted")
@pytest.mark.parametrize("doing", LATER)
def test_interrupted_at_a_terminal_while_many_records_are_read(tmp_path, many_records, released, doing):
    """The bar is shown; the signal ends it, and only the lock of a state is left."""
    name, *options = LATER[doing].split()
    master, terminal = pty.openpty()
    command = [*CONFIDE, name, str(many_records), "--calibration", str(released), *options]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        while doing.split()[0].encode() not in shown:
            shown += os.read(master, 65536)
        process.send_signal(signal.SIGINT)
        shown += _read_all(master)
    assert process.returncode == 130
    assert b"interrupted: unfinished output was removed" in shown
    assert {path.suffix for path in tmp_path.iterdir()} <= {".lock"}


@pytest.mark.long
@pytest.mark.parametrize("name", ["sets.parquet", "sets.csv"])
def test_a_table_is_read_and_written_without_pandas(tmp_path, name):
    """pyarrow imports pandas when it converts arrays, which takes as long as reading a million numbers."""
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 500)
    columns = {"a": p[:, 0], "b": p[:, 1], "c": p[:, 2], "label": rng.choice(list("abc"), 500)}
    pq.write_table(pa.table(columns), tmp_path / "records.parquet")
    calls = [
        ["calibrate", "records.parquet", "--probabilities", "a,b,c", "--label", "label", "--alpha", "0.1",
         "--classes", "a,b,c", "--epsilon", "1", "--out", "released.json"],
        ["predict", "records.parquet", "--probabilities", "a,b,c", "--calibration", "released.json", "--out", name],
    ]  # fmt: skip
    code = f"import sys; from confide.cli import main; print(*map(main, {calls}), 'pandas' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "0 0 False", ran.stderr


def _read_all(master: int) -> bytes:
    shown = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # Linux: the other end is closed
            piece = b""
        if not piece:
            os.close(master)
            return shown
        shown += piece


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(tmp_path, released):
    command = [*CONFIDE, "show", str(released)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


_DURING_AN_IMPORT = """
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
signal.signal(signal.SIGINT, signal.default_int_handler)
from confide.cli import main
sys.exit(main(["ledger", "list", "none.db"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("module", ["confide.errors", "numpy", "confide.cli.app"])
def test_ctrl_c_while_the_program_starts(module):
    ran = subprocess.run([sys.executable, "-c", _DURING_AN_IMPORT, module], capture_output=True, text=True, check=False)
    assert ran.returncode == 130
    assert ran.stderr == "error: interrupted: unfinished output was removed\n"
    assert ran.stdout == ""


# --- evaluations, looks and renewals can be interrupted, and can be repeated

PAID = ("--ledger", "budget.db", "--dataset", "patients")
SIGNALS = [
    pytest.param(signal.SIGINT, 130, id="ctrl-c"),
    pytest.param(signal.SIGTERM, 143, id="terminated", marks=pytest.mark.slow),
]
COLUMNS = ("--score-column", "s")
COMMANDS = {
    "evaluate": ("evaluate", "batch.csv", "--calibration", "cal.json", *COLUMNS, "--out", "out.json"),
    "privately": (
        "evaluate", "batch.csv", "--calibration", "cal.json", *COLUMNS, "--epsilon", 1, *PAID, "--out", "out.json"
    ),
    "watch": (
        "watch", "batch.csv", "--calibration", "cal.json", "--state", "out.json", "--look", "Monday", *COLUMNS,
        "--epsilon", 1, "--batch", 500, *PAID,
    ),
    "recalibrate": ("recalibrate", "batch.csv", "--calibration", "cal.json", *COLUMNS, "--out", "out.json", *PAID),
}  # fmt: skip
KEPT = {
    "privately": "confide.support.write_text",
    "watch": "confide.watching.take_look.write_text",
    "recalibrate": "pathlib.Path.write_text",
}


@pytest.fixture
def files(folder):
    calibration_at(float(confide.Candidates.unit(10).values[4]), score=None).save("cal.json")
    write(folder / "batch.csv", {"s": np.repeat([0.1, 0.9], [460, 40])})
    return lambda: {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".json", ".csv")}


@contextmanager
def stopping(monkeypatch, place, number):
    """Replace a function by one that sends a signal to this process."""

    def stop(*arguments, **options):
        os.kill(os.getpid(), number)
        pytest.fail("the signal was not heard")

    with monkeypatch.context() as patch:
        patch.setattr(place, stop)
        yield


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("name", ["evaluate", "privately", "watch", *slow(["recalibrate"])])
def test_interrupted_while_it_reads(confide_run, files, monkeypatch, name, number, code):
    """Nothing is written or charged, and the same command then succeeds."""
    before = files()
    with stopping(monkeypatch, "confide.cli.output.check_interruption", number):
        stopped = confide_run(*COMMANDS[name])
    assert stopped.code == code
    assert stopped.err.endswith("unfinished output was removed\n")
    assert stopped.err.count("\n") == 1
    assert files() == before
    assert not Path("budget.db").exists() or "patients" not in Ledger("budget.db").accounts()
    assert confide_run(*COMMANDS[name]).code == DONE
    assert files().keys() == {*before, "out.json"}
    if name != "evaluate":
        assert [entry.release is not None for entry in Ledger("budget.db").account("patients").entries] == [True]


@pytest.mark.slow(unless="privately-ctrl-c")
@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("name", KEPT)
def test_interrupted_after_the_charge(confide_run, files, monkeypatch, name, number, code):
    """The charge stands, and nothing was shown; the next run charges again and stores its release."""
    before = files()
    with stopping(monkeypatch, "confide.ledger.Ledger.attach_all", number):
        assert confide_run(*COMMANDS[name]).code == code
    assert files() == before
    (entry,) = Ledger("budget.db").account("patients").entries
    assert entry.release is None
    assert confide_run(*COMMANDS[name]).code == DONE
    assert [one.release is not None for one in Ledger("budget.db").account("patients").entries] == [False, True]
    assert "the run ended before" in confide_run("ledger", "show", "budget.db", "patients").out


@pytest.mark.parametrize(("number", "code"), SIGNALS)
@pytest.mark.parametrize("name", KEPT)
def test_interrupted_before_it_is_written(confide_run, files, monkeypatch, name, number, code):
    """The ledger stored the draw: the next run returns it without a charge."""
    before = files()
    with stopping(monkeypatch, KEPT[name], number):
        assert confide_run(*COMMANDS[name]).code == code
    assert files() == before
    (entry,) = Ledger("budget.db").account("patients").entries
    assert "nothing was charged" in confide_run(*COMMANDS[name]).out
    assert Ledger("budget.db").account("patients").entries == (entry,)
    if name == "watch":
        (look,) = Watch.load("out.json").looks
        assert list(look.counts) == json.loads(entry.release)["counts"]
    elif name == "recalibrate":
        assert {hashlib.sha256(entry.release.encode()).hexdigest()} == entry_checksums(Release.load("out.json"))
    else:
        assert Document.load("out.json") == Document.from_json(entry.release)
