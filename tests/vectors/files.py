"""Files: canonical texts, checksums of releases, and the seals of a ledger's records."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from tests.vectors.form import case, refused

ABOUT = {
    "releases": "From the text of a file to its canonical text, its checksum and what it says; and files to refuse.",
    "ledgers": "The chain of a ledger's records: each seal covers the one before.",
}
ARITHMETIC = {
    "releases": "canonical texts written down by hand; files as versions 0.1 and 0.2 left them; SHA-256",
    "ledgers": "SHA-256 of previous seal, time and body, joined by newlines",
}
SAMPLES = Path(__file__).parents[1] / "releases" / "samples"
KEPT = (
    "0.1/slopes-replace_one", "0.1/slopes-one-third", "0.1/infinite-without-data", "0.1/none", "0.1/noisy-histogram",
    "0.1/risk", "0.2/renewed", "0.2/noisy-labels", "0.2/record-weights",
)  # fmt: skip
CANONICAL = {
    "order": ('{"b": 1, "a": 2, "B": 3, "ä": 4, "aa": 5}', '{"B":3,"a":2,"aa":5,"b":1,"\\u00e4":4}'),
    "order-beyond-16-bits": ('{"\U0001f600": 1, "\uff5e": 2}', '{"\\uff5e":2,"\\ud83d\\ude00":1}'),
    "spaces": ('{ "a" : [ 1 , 2 ] ,\n"b":{}, "c" : [] }', '{"a":[1,2],"b":{},"c":[]}'),
    "whole-floats": ("[1.0, -0.0, 100.0, 1e3, 1, 0]", "[1.0,-0.0,100.0,1000.0,1,0]"),
    "small-floats": ("[0.0001, 0.00001, 1.5e-7, 5e-324]", "[0.0001,1e-05,1.5e-07,5e-324]"),
    "large-floats": (
        "[123456789012345.0, 1e15, 1e16, 12345678901234567890.0, 1.7976931348623157e308]",
        "[123456789012345.0,1000000000000000.0,1e+16,1.2345678901234567e+19,1.7976931348623157e+308]",
    ),
    "shortest-floats": ("[0.1, 0.30000000000000004, 2.50, 0.1000]", "[0.1,0.30000000000000004,2.5,0.1]"),
    "integers": ("[9007199254740993, -7, 123456789012345678]", "[9007199254740993,-7,123456789012345678]"),
    "escapes": (
        '"tab\\t \\" \\\\ \\/ \\u00e9 é \\n \\u001f \\u007f"',
        '"tab\\t \\" \\\\ / \\u00e9 \\u00e9 \\n \\u001f \\u007f"',
    ),
    "words": ("[true, false, null]", "[true,false,null]"),
}


def checksum(text: str) -> str:
    """The SHA-256 of a file's canonical text without its own field."""
    content = json.loads(text)
    del content["sha256"]
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def signed(content: dict[str, Any]) -> str:
    """A file with a fresh checksum."""
    body = {key: value for key, value in content.items() if key != "sha256"}
    return json.dumps({**body, "sha256": checksum(json.dumps({**body, "sha256": ""}))}, indent=2) + "\n"


def releases() -> list[dict[str, Any]]:
    """All cases of files."""
    source, made = "docs/vectors.md, canonical text", []
    for name, (text, expected) in CANONICAL.items():
        about = f"the canonical text of JSON: {name.replace('-', ' ')}"
        made.append(case(f"canonical-{name}", "canonical", about, source, {"text": text}, expected))
    for name in KEPT:
        text = (SAMPLES / f"{name}.json").read_text(encoding="utf-8")
        content = json.loads(text)
        expected = {key: content[key] for key in ("kind", "schema", "sha256")}
        assert expected["sha256"] == checksum(text)
        expected |= {"threshold": content.get("threshold"), "document": hashlib.sha256(text.encode()).hexdigest()}
        given = {"text": text}
        about = (
            f"a file of version {name[:3]}: kind, schema, threshold, checksum, and the digest by which others name it"
        )
        made.append(case(f"file-{name[4:]}", "release", about, source, given, expected))
    good = (SAMPLES / "0.1" / "slopes-replace_one.json").read_text(encoding="utf-8")
    content = json.loads(good)
    for name, text in {
        "threshold-changed": re.sub(r'"threshold": [^,]*', '"threshold": 0.5', good, count=1),
        "digit-of-checksum": good.replace(content["sha256"], content["sha256"][::-1]),
        "no-checksum": json.dumps({k: v for k, v in content.items() if k != "sha256"}),
        "cut-short": good[: len(good) // 2],
        "field-twice": good.replace('"schema": 1,', '"schema": 1,\n  "schema": 1,'),
        "not-a-number": good.replace('"rate": "0"', '"rate": NaN'),
        "schema-99": signed({**content, "schema": 99}),
        "schema-of-another-type": signed({**content, "schema": "1"}),
        "unknown-kind": signed({**content, "kind": "confide.other"}),
        "list": "[" + good + "]",
        "empty": "",
        "half-a-surrogate": good.replace('"a score"', '"\\ud83d"'),
    }.items():
        assert text != good
        made.append(
            refused(f"refused-{name}", "release", f"a file to refuse: {name.replace('-', ' ')}", source, {"text": text})
        )
    weaker = json.loads(good)
    weaker["privacy"]["epsilon"] = weaker["privacy"]["replace_one"] = 0.5
    better = json.loads(good)
    better["guarantee"]["coverage"] = 0.95
    for name, changed in {
        "claims-less-loss": weaker,
        "claims-more-coverage": better,
        "unknown-field": {**content, "note": "hello"},
        "target-beyond-n": {**content, "mechanism": {**content["mechanism"], "offset": "401"}},
    }.items():
        about = f"a file with a fitting checksum that must not be believed: {name.replace('-', ' ')}"
        source = "docs/vectors.md, what readers compute again"
        made.append(refused(f"refused-{name}", "release_claims", about, source, {"text": signed(changed)}))
    return made


BODIES = [
    ["2030-01-31T12:00:00Z", '{"kind": "limited", "dataset": "patients", "epsilon": 2.0, "delta": 0.0}'],
    ["2030-01-31T12:00:01Z", '{"kind": "charged", "dataset": "Zürich"}'],
    ["2030-02-01T00:00:00Z", ""],
]

EVENTS = [
    [
        "2026-11-21T19:45:28+00:00",
        '{"kind": "opened", "dataset": "patients", "neighbors": "add_remove", "fingerprint": null}',
    ],
    ["2026-11-21T19:45:29+00:00", '{"kind": "limited", "dataset": "patients", "epsilon": 0.25, "dp_delta": 0.0}'],
]


def seals(records: list[list[str]], last: str = "0" * 64) -> list[str]:
    """SHA-256 of the last seal, the time and the body."""
    found = []
    for made, body in records:
        last = hashlib.sha256(f"{last}\n{made}\n{body}".encode()).hexdigest()
        found.append(last)
    return found


def ledgers() -> list[dict[str, Any]]:
    """All cases of ledgers."""
    source = "docs/vectors.md, ledgers"
    made = []
    for length in (1, 2, 3):
        given = {"records": BODIES[:length]}
        text = f"the seals of {length} records, times and bodies as they are stored"
        made.append(case(f"seals-{length}", "seals", text, source, given, seals(BODIES[:length])))
    rows = [[i + 1, *record, one] for i, (record, one) in enumerate(zip(EVENTS, seals(EVENTS), strict=True))]
    text = "a chain that is whole: its number of records and its last seal"
    expected = [len(rows), rows[-1][3]]
    made.append(case("chain", "chain", text, source, {"rows": rows}, expected))
    changed = [rows[0], [2, rows[1][1], rows[1][2].replace("0.25", "0.05"), rows[1][3]]]
    spoiled = {"changed": changed, "first-missing": rows[1:], "swapped": rows[::-1]}
    spoiled["renumbered"] = [[1, *rows[1][1:]]]
    for name, one in spoiled.items():
        made.append(refused(f"chain-refused-{name}", "chain", f"a chain with a record {name}", source, {"rows": one}))
    return made
