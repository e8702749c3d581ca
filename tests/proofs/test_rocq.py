"""The theorems of proofs/, checked by Rocq: nothing is admitted, and only the axioms of real numbers are used."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROOFS = Path(__file__).parents[2] / "proofs"

AXIOMS = {  # of Coq's library of real numbers
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}

needs_coqc = pytest.mark.skipif(
    shutil.which("coqc") is None, reason="needs coqc: apt-get install --no-install-recommends coq"
)


def theorems():
    """The theorems that Statements.v prints, with their axioms."""
    return re.findall(r"^Check (\w+)\.\s+Print Assumptions \1\.$", (PROOFS / "Statements.v").read_text(), re.M)


@pytest.mark.long
@needs_coqc
def test_all_theorems_are_proved_from_the_axioms_of_real_numbers():
    done = subprocess.run([PROOFS / "check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert len(re.findall(r"^Axioms:$", done.stdout, re.M)) == len(theorems())
    assert "Closed under" not in done.stdout  # a theorem without axioms would not be counted
    assert set(re.findall(r"^([A-Z]\w*\.\w+)", done.stdout, re.M)) == AXIOMS


def test_nothing_is_admitted_and_every_file_is_checked():
    files = sorted(PROOFS.glob("*.v"))
    named = re.search(r"^for name in ([\w ]+);", (PROOFS / "check").read_text(), re.M)
    assert named is not None
    assert sorted(named[1].split()) == [file.stem for file in files]
    for file in files:
        assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture|Abort)\b", file.read_text()), file.name
    stated = {name for file in files for name in re.findall(r"^Theorem (\w+)", file.read_text(), re.M)}
    assert stated - set(theorems()) == {  # parts of the printed theorems
        "exponential_range",
        "theorem_1a_range",
        "theorem_1b_range",
        "exponential_rivals",
    }
