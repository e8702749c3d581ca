"""The table of deliberate faults fits the source and the tests, so that `make mutation` has nothing to refuse."""

from tests.conftest import COLLECTED
from tests.mutation.faults import FAULTS
from tests.mutation.run import ROOT, faulty


def test_every_fault_changes_its_source_and_names_a_test():
    for fault in FAULTS:
        assert faulty(fault) != (ROOT / "src" / "confide" / fault.file).read_text(encoding="utf-8"), fault.name
        path, _, name = fault.test.partition("::")
        name, text = name.partition("[")[0], (ROOT / path).read_text(encoding="utf-8")
        assert not name or f"def {name}(" in text or f"    {name},\n" in text, fault.name  # its own, or an imported one
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)


def test_every_test_of_a_fault_is_there(request):
    """With its parameters, as far as its file was collected."""
    names = request.config.stash[COLLECTED]
    known = names | {name.partition("[")[0] for name in names} | {name.partition("::")[0] for name in names}
    gone = {fault.test for fault in FAULTS if fault.test.partition("::")[0] in known} - known
    assert gone == set()
