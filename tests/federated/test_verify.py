"""A signed calibration: its signer, the messages that its threshold follows from, and whether it counts an answer."""

import dataclasses
import json

import pytest

import confide
from confide import federated
from confide.cli.run import main
from confide.errors import FormatError, InputError
from confide.federated.envelope import digest, sign_message
from tests.builders import slow
from tests.federated.helpers import Federation
from tests.refused import refused

SENT = {
    "private-qq": dict,
    "fedcp2-qq-sum": str,
    "fedcp2-qq": dict,
    "secure-sum": str,
}


@pytest.fixture
def four(tmp_path):
    return Federation.uniform(tmp_path, *[200] * 4)


@pytest.mark.parametrize("method", [*list(SENT)[:2], *slow(list(SENT)[2:])])
def test_a_signed_calibration_tells_what_it_may(four, method):
    plan = four.plan(epsilon=5.0, method=method)
    answers = four.answers(plan)
    plain, released = federated.aggregate(plan, answers), federated.aggregate(plan, answers, keys=four.coordinator)
    assert released.threshold == plain.threshold
    text = released.to_json()
    again = confide.Calibration.from_json(text)
    assert again == released
    assert again.to_json() == text
    assert {type(output) for output in released.sent.values()} == {SENT[method]}
    coordinator = four.coordinator.public()
    output = federated.verify(again, coordinator, answers)
    assert output.holds
    assert "signed by 'coordinator'" in output.statements
    assert sum("counts" in line for line in output.statements) == 4
    if SENT[method] is dict:
        assert "the threshold was recomputed from 4 signed answers" in output.statements
    other = federated.SiloKeys.generate("coordinator").public()
    assert "signed with another key than that of 'coordinator'" in federated.verify(again, other).failures
    unsigned = federated.verify(federated.FederatedCalibration.from_json(plain.to_json()), None, answers[:1])
    assert unsigned.statements[0] == "not signed: no signature vouches for the threshold"
    assert "but it cannot be identified: the calibration is not signed" in unsigned.failures[0]
    assert not federated.verify(plain, coordinator).holds


def test_opened_sums_list_the_answers(tmp_path):
    five = Federation.uniform(tmp_path, *[200] * 5)
    plan = five.plan(epsilon=5.0, method="secure-sum", dropouts=1)
    answers = five.answers(plan)
    parts = five.parts(plan, answers[:4])
    released = federated.aggregate(plan, answers, parts=parts, keys=five.coordinator, drop_refused=True)
    released = federated.FederatedCalibration.from_json(released.to_json())
    output = federated.verify(released, five.coordinator.public(), answers)
    assert output.statements[-4:] == tuple(f"the answer of 'silo {i}' counts" for i in range(4))
    assert output.failures == ("the answer of 'silo 4' was left out (late)",)
    assert "signed parts of share holders" in output.statements[1]


@pytest.mark.slow
def test_what_was_changed_is_refused(four):
    plan = four.plan(epsilon=5.0, dropouts=1)
    answers = four.answers(plan, [0, 1, 2])
    released = federated.aggregate(plan, answers, keys=four.coordinator)
    content = json.loads(released.to_json())["content"]
    other = next(v for v in released.plan.candidates.edges.tolist() if v != released.threshold)
    silo_0, silo_1 = content["sent"]["silo 0"], content["sent"]["silo 1"]
    changes = [
        {"threshold": other},
        {"sent": {}},
        {"sent": {name: output for name, output in content["sent"].items() if name != "silo 0"}},
        {"sent": content["sent"] | {"silo 0": silo_1}},
        {"sent": content["sent"] | {"silo 0": silo_1, "silo 1": silo_0}},
        {"sent": content["sent"] | {"silo 3": silo_0}},
        {"sent": {name: digest(output["content"]) for name, output in content["sent"].items()}},
        {"sent": content["sent"] | {"silo 0": silo_0 | {"signature": silo_1["signature"]}}},
    ]
    for change in changes:  # even the coordinator cannot sign a threshold that differs from that of the answers
        with pytest.raises(FormatError):
            confide.Calibration.from_json(sign_message("calibration", content | change, four.coordinator.signing))
    with pytest.raises(FormatError):
        confide.Calibration.from_json(sign_message("calibration", content, four.keys[0].signing))
    with pytest.raises(FormatError):
        confide.Calibration.from_json(dataclasses.replace(released, refused=(("silo 3", "late"),)).to_json())
    with refused(InputError, "keys"):
        federated.aggregate(plan, answers, keys=four.keys[0])


def test_another_answer_of_the_silo_does_not_count(four):
    plan = four.plan(epsilon=5.0, dropouts=1)
    answers = four.answers(plan)
    released = federated.aggregate(plan, answers[1:], keys=four.coordinator)
    changed = json.loads(answers[1])["content"] | {"answered": "2020-01-01T00:00:00Z"}
    two = sign_message("answer", changed, four.keys[1].signing)
    output = federated.verify(released, None, [answers[0], two, "garbage", answers[2]])
    assert output.failures[:2] == (
        "the answer of 'silo 0' does not count",
        "another answer of 'silo 1' counts than this one",
    )
    assert output.failures[2].startswith("an answer cannot be used: malformed")
    assert output.statements[-1] == "the answer of 'silo 2' counts"


@pytest.mark.slow
def test_on_the_command_line(four, tmp_path, capsys):
    plan = four.plan(epsilon=5.0, dropouts=1)
    (tmp_path / "plan.json").write_text(plan)
    for i in range(4):
        (tmp_path / f"{i}.json").write_text(four.answer(i, plan))
    four.coordinator.save(tmp_path / "c.key")
    (tmp_path / "c.json").write_text(four.coordinator.public().to_json())
    (tmp_path / "stranger.json").write_text(four.silos[0].to_json())
    answers, out = [str(tmp_path / f"{i}.json") for i in range(3)], str(tmp_path / "released.json")
    common = ["--plan", str(tmp_path / "plan.json"), "--keys", str(tmp_path / "c.key"), "--out", out]
    assert main(["federated", "aggregate", *answers, *common]) == 0
    good = ["verify", out, "--coordinator", str(tmp_path / "c.json"), "--answer", answers[0]]
    capsys.readouterr()
    assert main(good) == 0
    output = capsys.readouterr().out
    assert "claims: recomputed" in output
    assert "signed by 'coordinator'" in output
    assert "the answer of 'silo 0' counts" in output
    assert main([*good, "--answer", str(tmp_path / "3.json")]) == 5
    assert "'silo 3' does not count" in capsys.readouterr().err
    assert main(["verify", out, "--coordinator", str(tmp_path / "stranger.json")]) == 5
    assert main(["show", out]) == 0
    own = confide.calibrate(four.scores[0], 0.2, 5.0, score="lac")
    own.save(tmp_path / "own.json")
    assert main(["verify", str(tmp_path / "own.json")]) == 0
    assert main(["verify", str(tmp_path / "own.json"), "--answer", answers[0]]) == 3
