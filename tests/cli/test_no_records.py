"""Tables without records, without complete records and with one record are all calibrated: existence is secret."""

import pytest

from confide import federated

CLASSES = ("--probabilities", "p_*", "--label", "y")
VALUES = ("--prediction", "good", "--target", "outcome")
LEVEL = ("--alpha", "0.1", "--epsilon", 1)
NEW = ("--out", "new.json", "--force")
LOOK = ("--state", "watch.json", "--look", "Monday")
SILO = ("--plan", "plan.json", "--keys", "north.key", "--coordinator", "coordinator.json", "--ledger", "north.db",
        "--budget", 9, "--out", "answer.json")  # fmt: skip
RESIDUAL = "absolute_residual"
OPTIONS = {
    "plain": ("calibrate", *CLASSES, *LEVEL, *NEW),
    "interval": ("calibrate", *VALUES, *LEVEL, *NEW),
    "choose": ("calibrate", *CLASSES, "--set", "choose=lac,aps_deterministic", *LEVEL, *NEW),
    "models": ("calibrate", *VALUES, "--set", f"choose=good:{RESIDUAL},poor:{RESIDUAL}", "--set", "largest_size=9",
               *LEVEL, *NEW),
    "levels": ("calibrate", *CLASSES, "--alpha", "0.1,0.2", "--epsilon", 1, *NEW),
    "classes": ("calibrate", *CLASSES, "--set", "by_class=true", *LEVEL, *NEW),
    "groups": ("calibrate", *CLASSES, "--by", "poor", "--groups", "1,2", *LEVEL, *NEW),
    "persons": ("calibrate", *CLASSES, "--set", "people={person = 'outcome', most = 1, order = 'poor'}", *LEVEL, *NEW),
    "weights": ("calibrate", *CLASSES, "--set", "weights=good", "--set", "weight_bound=2", *LEVEL, *NEW),
    "ledger": ("calibrate", *CLASSES, "--ledger", "l.db", "--dataset", "d", "--again", *LEVEL, *NEW),
    "recalibrate": ("recalibrate", *CLASSES, "--calibration", "cal.json", *NEW),
    "evaluate": ("evaluate", *CLASSES, "--calibration", "cal.json", "--epsilon", 1, *NEW),
    "watch": ("watch", *CLASSES, "--calibration", "cal.json", "--epsilon", 1, "--batch", 300, *LOOK),
    "sizes": ("watch", *CLASSES[:2], "--calibration", "cal.json", "--epsilon", 1, "--unlabelled", *LOOK),
    "answer": ("federated", "answer", *CLASSES, *SILO),
}  # fmt: skip
ROWS = {"none": [], "incomplete": ["0.3,,b,2,1,1"], "one": ["0.3,0.7,b,2,1,1"]}


@pytest.mark.slow(unless=("models-skip", "plain-skip", "sizes-skip"))
@pytest.mark.parametrize("skip", [pytest.param(False, marks=pytest.mark.slow), True], ids=["as it is", "skip"])
@pytest.mark.parametrize("case", OPTIONS)
def test_existence_of_records_is_secret(confide_run, folder, case, skip):
    (folder / "first.csv").write_text("p_a,p_b,y\n" + "0.3,0.7,b\n0.9,0.1,a\n" * 200)
    assert confide_run("calibrate", "first.csv", *CLASSES, *LEVEL, "--out", "cal.json").code == 0
    coordinator, silo = (federated.SiloKeys.generate(name) for name in ("coordinator", "north"))
    silo.save(folder / "north.key")
    (folder / "coordinator.json").write_text(coordinator.public().to_json())
    plan = federated.plan([silo.public()], 0.2, 2.0, score="lac", method="private-qq", n_typical=300)
    (folder / "plan.json").write_text(plan.sign(coordinator))
    for rows in ("none", "incomplete", "one") if skip else ("none", "one"):
        (folder / "t.csv").write_text("\n".join(["p_a,p_b,y,good,poor,outcome", *ROWS[rows]]) + "\n")
        for written in ("watch.json", "north.db", "north.key.checkpoint", "answer.json"):
            (folder / written).unlink(missing_ok=True)
        command, *words = OPTIONS[case]
        within = () if command != "federated" else (words.pop(0),)
        left_out = ("--set", "skip_incomplete=true")
        done = confide_run(command, *within, "t.csv", *words, *(left_out if skip else ()))
        # Warnings depend on the drawn threshold, which differs from run to run; errors do not.
        assert (done.code, "error" in done.err) == (0, False), (rows, done.err)
