"""The command line prints the same number of records needed as Python, in text and in JSON."""

import re

import numpy as np
import pytest


@pytest.mark.slow
def test_records_needed_is_the_same_in_every_command(confide_run, folder):
    (folder / "r.csv").write_text("s\n" + "\n".join(map(str, np.linspace(0.01, 1.0, 500))), encoding="utf-8")
    asked = ("--alpha", "0.1", "--epsilon", "1")
    source = ("r.csv", "--score-column", "s", "--score", "lac", "--out", "r.json", "--force")
    for needed, chance, more in ((134, r"1\.\d", ()), (225, r"53\.\d", ("--n-typical", "1000"))):
        read, planned = ("calibrate", *source, *asked, *more), ("plan", *asked, *more)
        assert f"records needed: about {needed}; with fewer" in confide_run(*read).out
        assert confide_run(*read, "--json").json["records_needed"] == needed
        assert f"records needed: about {needed}; with fewer" in confide_run("show", "r.json").out
        assert confide_run("show", "r.json", "--json").json["records_needed"] == needed
        assert f"records needed           about {needed}; with fewer" in confide_run(*planned).out
        few = confide_run(*planned, "--n", "100").out.splitlines()[0]
        useless = (
            f"NOT ENOUGH RECORDS: with 100 the threshold is useless .* in {chance}% of .*; about {needed} are needed"
        )
        assert re.fullmatch(useless, few)
        document = confide_run(*planned, "--n", "100", "--json").json
        assert (document["records_needed"], document["warnings"]) == (needed, [few])


@pytest.mark.slow
def test_predict_warns_of_uninformative_intervals(confide_run, folder):
    lines = [f"{i},{i + 1e4 * (-1) ** i}" for i in range(100, 1100)]
    (folder / "r.csv").write_text("f,y\n" + "\n".join(lines), encoding="utf-8")
    (folder / "new.csv").write_text("f\n" + "\n".join(str(i / 100) for i in range(100)), encoding="utf-8")
    read = ("--prediction", "f", "--target", "y", "--alpha", "0.1", "--epsilon", "9")
    assert confide_run("calibrate", "r.csv", *read, "--out", "r.json").code == 0
    made = confide_run("predict", "new.csv", "--calibration", "r.json", "--prediction", "f", "--out", "sets.csv")
    assert made.code == 0
    assert re.search(r"warning: the intervals are at least \d+ times as wide as the predictions are spread", made.err)


@pytest.mark.slow
def test_unusual_numbers_are_warned_of_once(confide_run, folder):
    (folder / "r.csv").write_text("s\n" + "\n".join(map(str, np.linspace(0.01, 1.0, 500))), encoding="utf-8")
    read = ("calibrate", "r.csv", "--score-column", "s", "--score", "lac", "--alpha", "0.9", "--epsilon", "1")
    made = confide_run(*read, "--out", "r.json")
    assert made.code == 0
    assert made.err.count("alpha=0.9 is the share of new records that may be missed") == 1
    made = confide_run(*read, "--out", "r.json", "--force", "--json")
    assert "write alpha=0.1" in " ".join(made.json["warnings"])
