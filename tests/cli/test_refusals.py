"""Refusals of every command: one line on stderr, an exit code, nothing written, nothing changed, nothing quoted.

CASES has a line for each: the exit code, the subject of the error (the option that was typed, else the argument), and
the command. `{cal}` and the other words in braces stand for what SHORT states.
"""

import json
import os
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

import confide
from confide.cli.app import main
from confide.cli.exit_codes import REFUSED
from confide.cli.output import print_result, print_text, print_warning
from confide.support import aligned, checksum, escape_line, escape_text
from tests.cli.test_evaluate import DATA as RECORDS
from tests.cli.test_evaluate import LABEL, NUMBER, TRUTH, N, release
from tests.federated.helpers import Federation
from tests.files import NAMES, write
from tests.refused import refused

DATA = RECORDS | {
    **{f"t_{name}": TRUTH[:, k].astype(np.int64) for k, name in enumerate(NAMES)},
    **{f"l_{k}": np.linspace(0, 1, N) for k in range(4)},
    "site": 6 * NUMBER + 1,
    "text": LABEL,
}
KINDS = ("levels", "groups", "numbers", "letters", "classes", "sides", "labels", "weights")
RELEASES = {"one": "named", "own": "one", **dict(zip(KINDS, KINDS, strict=True))}
"""The kind of each release, by the name of its file."""
PLANTED = "planted-4711"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    write(folder / "r.parquet", DATA)
    write(folder / "gap.csv", {"s": [0.5, None]})
    for name, kind in RELEASES.items():
        release(kind).save(folder / f"{name}.json")
    coordinator = confide.federated.SiloKeys.generate("coordinator")
    coordinator.save(folder / "keys")
    texts = {"empty.json": "{}", "short": "x", "r.toml": "unit = 1.0\n", "bad.toml": "unit = \n"}
    for name, text in {**texts, "public.json": coordinator.public().to_json()}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def there(inputs, folder):
    """A working directory with the inputs; afterwards it has these alone, unchanged."""
    shutil.copytree(inputs, folder, copy_function=os.link, dirs_exist_ok=True)
    state = {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.iterdir()}
    yield folder
    assert {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.iterdir()} == state


SHORT = {
    "C": "--probabilities p_* --label label",
    "L": "--alpha 0.1 --epsilon 1",
    "cal": "calibrate r.parquet --probabilities p_* --label label --out new.json",
    "asked": "calibrate r.parquet --probabilities p_* --label label --alpha 0.1 --epsilon 1 --out new.json",
    "two": "--set choose=lac,aps_deterministic",
    "eval": "evaluate r.parquet --out new.json --calibration",
    "private": "evaluate r.parquet --probabilities p_* --label label --epsilon 1 --out new.json --calibration one.json",
    "watch": "watch r.parquet --calibration own.json --state w.json --look 1 --score-column s --batch 500 --epsilon",
    "sql": "sql --dialect duckdb --table t --probabilities p_a,p_b --classes a,b --label y --alpha 0.1 --epsilon 1",
    "counts": "calibrate --counts c.csv --out x.json",
    "budget": "budget plan --epsilon 3 --looks 2",
    "silo": "federated answer r.parquet --plan p --keys k --coordinator c --ledger l --budget 1 --out x.json",
}

PUBLIC = """
3 --alpha       {cal} --alpha 1.5 --epsilon 1
2 --alpha       {cal} --epsilon 1
3 --epsilon     {cal} --alpha 0.1
3 --epsilon     {cal} --alpha 0.1 --epsilon 1 --set rho=1
3 --epsilon     {cal} --alpha 0.1 --epsilon -1
2 --epsilon     {cal} --alpha 0.1 --epsilon one
2 --neighbors   {asked} --neighbors both
3 candidates    {asked} --set candidates=many
3 candidates    {asked} --set candidates=unit:x
3 --score       {asked} --score raps
3 --score       {asked} --score mine
3 --n           {asked} --n 100
3 --n           {asked} --neighbors replace_one --n 0
3 n_min         {asked} --set n_min=0
3 class_weights {cal} --alpha 0.1,0.2 --epsilon 1 --set 'class_weights={{cat = 2}}'
3 --ledger      {asked} --set by_class=true --set partition=ward
3 partition     {asked} --set by_class=true --ledger b.db --dataset d
3 --by          {cal} --alpha 0.2,0.1 --epsilon 1 --set by_class=true
3 by            {asked} --set by_class=true --set by=ward
3 unit          {asked} --set unit=1
3 --again       {asked} --again
3 --ledger      {asked} --ledger l.db
3 --ledger      {asked} --ledger postgresql://me:hunter2@host/db
3 one_cell      {asked} --set one_cell=true
3 --group       {asked} --ledger b.db --dataset d --group north
3 --dataset     {asked} --ledger b.db --dataset ''
3 --ledger      {asked} --ledger no/such/folder.db --dataset d
3 path          {asked} --ledger r.parquet --dataset d
3 ledger_key    {asked} --ledger b.db --dataset d --set ledger_key=none
3 ledger_key    {asked} --ledger b.db --dataset d --set ledger_key=3
3 charged_by    {asked} --ledger b.db --dataset d --set charged_by=3
3 --out         {asked} --out missing/new.json
3 --out         {asked} --out .
2 --bogus       {asked} --bogus
2 --delta       {asked} --delta 0.1
2 --person      {asked} --person 0.1
3 --by          {asked} --by ward
3 --groups      {asked} --by ward,site --groups north,south
3 --groups      {asked} --by ward,site --groups 'north,south;1,7;a'
3 mechanism     {asked} --set by_class=true --set mechanism=none
3 delts         {asked} --set delts=0.05
3 --epsilon     {asked} --set epsilon=2
3 delta         {asked} --set delta=0.1 --set delta=0.2
3 unit          {asked} --request r.toml --set unit=2
3 path          {asked} --request none.toml
3 request       {asked} --request bad.toml
3 set           {asked} --set delta
3 ledger        {asked} --set ledger=b.db
3 person        {asked} --set person=id
3 who           {asked} --set people.who=id
3 people.most   {asked} --set people.person=id
3 by_class      {asked} --set by_class=yes
3 classes       {asked} --set classes=3
3 target        {asked} --set target=y
3 fingerprint   {asked} --set fingerprint=3
3 choose        {asked} --set choose=lac
3 --score       {asked} {two} --score lac
3 --by          {asked} {two} --by label --groups a,b
3 largest_size  {asked} --set largest_size=3
3 --neighbors   {asked} {two} --neighbors replace_one
3 loss          calibrate r.parquet --set losses=l_* {L} --out new.json
3 --label       {asked} --set truth=t_*
"""
"""Public choices, which are refused before the records are touched."""

CASES = """
3 --epsilon       {asked} {two} --set rho=0.1
3 --by            {asked} --by ward,ward --groups 'north,south;north,south'
3 --score         {asked} --set choose=lac,absent
3 --label         calibrate r.parquet --probabilities p_* {L} --out new.json
3 label           calibrate r.parquet --probabilities p_* --set label=3 {L} --out new.json
3 --target        calibrate r.parquet --prediction s {L} --out new.json
3 --prediction    calibrate r.parquet --prediction s,s,s --target y {L} --out new.json
3 --score         calibrate r.parquet --prediction low,high --score aps --target text {L} --out new.json
3 --probabilities calibrate r.parquet {L} --out new.json
3 --prediction    calibrate r.parquet --prediction low,none --target y {L} --out new.json
3 --probabilities predict r.parquet --calibration one.json --out s.parquet
3 --probabilities evaluate r.parquet --calibration one.json
3 ledger_key      {asked} --ledger b.db --dataset d --set ledger_key=short
3 largest_size    {asked} {two} --set largest_size=99
3 choice_share    {asked} {two} --set choice_share=0.7
3 --groups        {asked} --by site --groups north,south
3 column          {asked} --by p_cat --groups north,south
3 --by            {asked} --by ward,other --groups 'north,south;1,7'
3 table           {asked} --by ward,site --groups 'north;1,7'
3 table           calibrate gap.csv --score-column s {L} --out new.json
3 --score-column  calibrate gap.csv --score-column x {L} --out new.json
3 --table         calibrate gap.csv --score-column s {L} --out new.json --table t
3 table           calibrate gap.csv --score-column s {L} --out own.json --force
4 --out           {asked} --out own.json
4 --out           predict r.parquet --calibration one.json --probabilities p_* --out r.parquet
3 --out           predict r.parquet --calibration one.json --probabilities p_* --out r.parquet --force
3 --by            predict r.parquet --probabilities p_* --out s.parquet --calibration groups.json
3 --by            predict r.parquet --probabilities p_* --out s.parquet --calibration one.json --by ward
3 groups          predict r.parquet --probabilities p_* --out s.parquet --calibration groups.json --by place
2 --calibration   predict r.parquet --probabilities p_* --out s.parquet
2 --calibration   recalibrate r.parquet {C} --out new.json
2 --calibration   watch r.parquet {C} --state w.json --look 1 --epsilon 1
2 --calibration   evaluate r.parquet {C}
3 --by            {eval} groups.json {C}
3 table           {eval} numbers.json {C} --by ward
3 --by            {eval} numbers.json {C} --by warden
3 --groups        {eval} letters.json {C} --by number
3 column          {eval} one.json {C} --by s
3 --by            {eval} own.json --score-column s --by place
3 --by            {eval} classes.json --score-column s
3 --classes       {eval} classes.json {C} --classes a,b,c
3 --calibration   {eval} sides.json --score-column y
3 --prediction    {eval} sides.json --prediction low --target y
3 --label         {eval} labels.json {C}
3 --alpha         {eval} own.json {C} --alpha 0.2
3 --fail-below-promise {eval} weights.json {C} --fail-below-promise
3 --by            {private} --by ward
3 parts           {private} --set parts=klass
3 width_bins      {private} --set width_bins=wide
3 n               {private} --set n=5
3 n               {private} --set neighbors=replace_one --set n=5
3 people.person   {private} --set "people={{person = 'unknown', most = 1, order = 'place'}}"
3 confidence      {eval} one.json {C} --set confidence=0.9
3 --groups        {eval} one.json {C} --groups north,south --by ward
3 --ledger        {eval} one.json {C} --ledger b.db --dataset d
3 confidense      {private} --set confidense=0.9
3 correct         {watch} 1 --set correct=0.5
3 correct         {watch} 1 --set correct=fast
3 delay           {watch} 1 --set delay=1
3 --in-force      {watch} 1 --in-force now.json
3 correct         {watch} 0.001 --set correct=auto
3 --in-force      {watch} 1 --set correct=auto --in-force one.json
3 correct         {watch} 1 --set correct=auto --batch 2
2 --look          watch r.parquet --calibration own.json --state w.json --score-column s --epsilon 1
3 --epsilon       watch r.parquet --calibration own.json --state w.json --score-column s --look 1
2 --table         sql --dialect duckdb {C} {L}
3 --dialect       {sql} --dialect duckdb,spark
3 --dialect       {sql} --dialect oracle
2 --probabilities sql --dialect duckdb --table t {L}
3 --score         {sql} --score aps
2 --alpha         {counts}
2 --counts        calibrate {L} --out x.json
2 --alpha         calibrate r.parquet --epsilon 1 --out x.json
2 --alpha         {counts} --score-column s --epsilon 1
3 ledger_key      {counts} {C} {L} --classes a,b --counts d.csv --ledger b.db --dataset d --set ledger_key=key
3 --counts        {counts} --probabilities p_a,p_b --classes a,b --label y {L} --set candidates=unit:50
3 --releases      budget plan --epsilon 3
3 --rule          {budget} --rule zcdp --dp-delta 0
2 --n             {budget} --n many
3 --alpha         {budget} --alpha 0.1,0.2
2 --epsilon       budget plan --looks 2
3 --looks-per-person {budget} --looks-per-person 3
3 path            report nothing.json --out r.html
3 --out           report own.json --out no/r.html
3 --out           report own.json --out x.pdf
3 file            report own.json --evaluation empty.json --out r.html
3 --answer        report own.json --answer empty.json --out r.html
3 --title         report own.json --title '' --out r.html
3 --out           card own.json --out card.txt
3 --out           card own.json --out card
3 path            show r.parquet
3 --records       show own.json --records 0
3 --answer        verify own.json --answer empty.json
3 ledger          ledger list none.db
3 ledger          ledger show none.db patients
3 ledger          ledger export none.db
3 --spent         ledger init new.db --spent 2.5
3 --charge-role   ledger init new.db --charge-role jobs
3 --silo          federated plan --silo . --keys keys {L} --compare
2 --alpha         {silo} {C} --alpha 0.2,0.1
3 truth           {silo} --probabilities p_* --set truth=t_*
3 people.most     {silo} {C} --set "people={{person = 'person', most = 2, order = 'id'}}"
"""


def lines(text):
    rows = [line.split(maxsplit=2) for line in text.strip().splitlines()]
    return pytest.mark.parametrize(("code", "subject", "line"), [pytest.param(*row, id=row[2][:70]) for row in rows])


def words(line):
    return shlex.split(line.format(**SHORT))


@lines(PUBLIC)
def test_public_choices_are_refused_before_the_records_are_read(confide_run, there, monkeypatch, code, subject, line):
    monkeypatch.setattr("confide.tables.files._check_readable", lambda path: pytest.fail("the records were touched"))
    ran = confide_run(*words(line))
    assert ran.refused == (int(code), subject), ran.err
    assert "hunter2" not in ran.err


@lines(CASES)
def test_refusals(confide_run, there, code, subject, line):
    ran = confide_run(*words(line))
    assert ran.refused == (int(code), subject), ran.err


@pytest.mark.slow
def test_private_values_are_never_printed(confide_run, folder):
    path = folder / "bad.csv"
    for rows in (1, 30_000):
        for last in (f"{PLANTED},a", f"0.5,a,{PLANTED}", f'0.5,"{PLANTED}'):
            path.write_text("s,name\n" + "0.5,a\n" * rows + last + "\n")
            ran = confide_run("calibrate", path, *words("--score-column s {L} --out new.json"))
            assert ran.code == REFUSED
            assert PLANTED not in ran.error


def test_an_internal_error_names_only_its_type_and_one_of_the_system_its_text(confide_run, there, monkeypatch):
    def fail(error: Exception) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("confide.cli.values.open_table", lambda *_, **__: fail(OSError(PLANTED)))
        assert PLANTED not in confide_run(*words("{asked}")).error
    monkeypatch.setattr("confide.tables.TableRequest.release", lambda *_, **__: fail(RuntimeError(PLANTED)))
    ran = confide_run(*words("{asked}"))
    assert ran.code == 70
    assert "internal error (RuntimeError)" in ran.error
    assert "CONFIDE_TRACEBACK=1" in ran.error
    assert PLANTED not in ran.error
    monkeypatch.setenv("CONFIDE_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        confide_run(*words("{asked}"))


HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202egnp.exe\r\x7f\u2028"
STEERS = set("\x1b\x07\x9b\u202e\r\x7f\u2028")


def test_control_characters_are_escaped_and_nothing_else_changes():
    for code in range(0x3000):
        letter = chr(code)
        shown = escape_text(letter)
        if letter.isprintable() or letter in "\t\n":
            assert shown == letter
        assert shown == letter or shown.isprintable()
        assert len(escape_line(letter).splitlines()) == 1 or letter == ""
    assert escape_text("naïve 猫 🐈\u200d⬛ نص") == "naïve 猫 🐈\u200d⬛ نص"


def test_every_way_to_the_screen(capsys):
    print_text(HOSTILE)
    print_warning(HOSTILE + "\nwarning: forged")
    print_result({"name": HOSTILE}, as_json=True)
    assert main(["show", f"no such file {HOSTILE}"]) == 3
    result = capsys.readouterr()
    assert not STEERS & set(result.out + result.err)
    assert len(result.err.splitlines()) == 2
    assert json.loads(result.out[result.out.index("{") :])["name"] == HOSTILE


@pytest.mark.slow(unless="True")
@pytest.mark.parametrize("as_json", [False, True])
def test_a_hostile_release_is_shown_harmless(tmp_path, capsys, as_json):
    rng = np.random.default_rng(0)
    three = Federation(tmp_path, [rng.random(200) for _ in range(3)])
    plan = three.plan(epsilon=4.0, dropouts=1)
    text = confide.federated.aggregate(plan, three.answers(plan)).to_json()
    content = {key: value for key, value in json.loads(text).items() if key != "sha256"}
    content["refused"] = [[f"north{HOSTILE}\nsigned by 'coordinator'", "late"]]
    path = tmp_path / "released.json"
    path.write_text(json.dumps({**content, "sha256": checksum(content)}))
    for command in ("show", "verify"):
        capsys.readouterr()
        assert main([command, str(path), *(["--json"] if as_json and command == "show" else [])]) == 0
        result = capsys.readouterr()
        assert not STEERS & set(result.out + result.err)
        assert not any(line.strip().startswith("signed by") for line in result.out.splitlines())
    forged = content | {"versions": {f"confide{HOSTILE}": f"1{HOSTILE}\nsigned by 'coordinator'"}}
    with refused(confide.errors.FormatError, "release") as refusal:
        confide.Release.from_json(json.dumps({**forged, "sha256": checksum(forged)}))
    assert not STEERS & set(str(refusal.value))
    printed = str(confide.Release.load(path))
    assert not STEERS & set(printed)
    assert "\nsigned by" not in printed


def test_a_name_stays_on_its_line():
    result = aligned([("plan", "a\nsigned by 'coordinator'"), ("north\rsouth", "b")])
    assert len(result.splitlines()) == 2
    assert not STEERS & set(result)


@pytest.mark.parametrize(
    "line",
    [
        "calibrate postgresql://me:hidden@host/db.t --score-column s --alpha 0.1 --epsilon 1",
        "show s3://me:hidden@host/cal.json",
    ],
)
def test_an_address_with_a_password_is_refused_and_not_repeated(confide_run, line):
    found = confide_run(*line.split())
    assert found.code == REFUSED
    assert "an address carries no password" in found.err
    assert "hidden" not in found.out + found.err
