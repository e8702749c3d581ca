"""The table of deliberate faults fits the source, so that `make mutation` has nothing to refuse."""

from tests.mutation.faults import FAULTS
from tests.mutation.run import ROOT, faulty


def test_every_fault_changes_its_source_and_names_a_test():
    for fault in FAULTS:
        assert faulty(fault) != (ROOT / "src" / "confide" / fault.file).read_text(encoding="utf-8"), fault.name
        path, _, name = fault.test.partition("::")
        name, text = name.partition("[")[0], (ROOT / path).read_text(encoding="utf-8")
        assert not name or f"def {name}(" in text or f"    {name},\n" in text, fault.name  # its own, or an imported one
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
