"""The table of deliberate faults fits the source and the tests, so that `make mutation` has nothing to refuse."""

import subprocess
import sys

import pytest

from tests.mutation.faults import FAULTS
from tests.mutation.run import ROOT, faulty


def test_every_fault_changes_its_source_and_names_a_test():
    for fault in FAULTS:
        assert faulty(fault) != (ROOT / "src" / "confide" / fault.file).read_text(encoding="utf-8"), fault.name
        path, _, name = fault.test.partition("::")
        name, text = name.partition("[")[0], (ROOT / path).read_text(encoding="utf-8")
        assert not name or f"def {name}(" in text or f"    {name},\n" in text, fault.name  # its own, or an imported one
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


@pytest.mark.slow
def test_every_test_of_a_fault_is_there():
    """With its parameters: pytest stops at the first name that it does not find."""
    tests = sorted({fault.test for fault in FAULTS})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, "\n".join(line for line in done.stderr.splitlines() if line.startswith("ERROR"))
