"""Every leaf of every kind of message is changed, removed and added; other tools read the envelopes."""

import base64
import json
from contextlib import suppress

import pytest

from confide import federated
from confide.core import Document, Release
from confide.errors import ConfideError, FormatError
from confide.federated import Refusal
from confide.federated.messages import MOST_CHARACTERS, open_message, sign
from fuzz.valid import federation, team
from tests.builders import slow
from tests.changed import changes
from tests.federated.helpers import content_of
from tests.kept import path_of
from tests.refused import refused


def cases():
    one, several = federation(), team()
    boss, silo = one.coordinator, one.silos[0]
    plan, (levels, groups) = one.plan, several.plans
    alone = Release.load(path_of("calibration"))
    return {
        "silo": ("silo", silo, silo.public(60).to_json(), federated.Silo.from_json),
        "plan": ("plan", boss, plan, federated.read_plan),
        "levels": ("plan", several.coordinator, levels, federated.read_plan),
        "groups": ("plan", several.coordinator, groups, federated.read_plan),
        "answer": ("answer", silo, one.answers[0], lambda text: federated.read_answer(federated.read_plan(plan), text)),
        "masked answer": (
            "answer",
            several.silo,
            several.answers[0],
            lambda text: federated.read_answer(federated.read_plan(levels), text),
        ),
        "release": ("release", boss, one.released, Release.from_json),
        "release of a sum": ("release", several.coordinator, several.released[0], Release.from_json),
        "signed release": ("signed-release", boss, federated.sign(alone, boss), Document.from_json),
    }


KINDS = (
    *("silo", "answer", "release of a sum", "signed release"),
    *slow(["plan", "levels", "groups", "masked answer", "release"]),
)
STATED = {
    "silo": {"name", "size"},
    "plan": {"coordinator", "silos", "n_min", "n_typical", "", "request.names"},  # "": n_min and n_typical exchanged
    "answer": {"answered", "versions", "sent"},
    "release": {"versions"},
    "signed-release": set(),
    "release of a sum": {"versions", "sent"},  # digests: whose is whose is seen with the answers
}
"""Fields that their owner may state otherwise: nothing that was derived follows from them."""


def read_content(text):
    """The content, whether the message is signed or, for a release, has a checksum alone."""
    if "payloadType" in json.loads(text):
        return content_of(text)
    return {name: value for name, value in json.loads(text).items() if name not in ("kind", "schema", "sha256")}


@pytest.mark.slow(unless=("answer", "release of a sum", "silo"))
@pytest.mark.parametrize("name", KINDS)
def test_contents_changed_by_their_owner(name):
    """A signer can state what it wants; a content of another form, or that does not follow, is refused."""
    kind, keys, text, read = cases()[name]
    read(text)
    accepted = set()
    for path, content in changes(read_content(text)):
        changed = sign(kind, content, keys.signing)
        with suppress(ConfideError):
            read(changed)
            accepted.add(".".join(map(str, path[: 1 + (path[:1] == ("request",))])))
    assert accepted <= STATED.get(name, STATED[kind])


@pytest.mark.parametrize("name", KINDS)
def test_envelopes_changed_on_the_way(name):
    kind, keys, text, read = cases()[name]
    if '"payloadType"' not in text[:100]:
        text = sign(kind, read_content(text), keys.signing)
    read(text)
    for path, changed in changes(json.loads(text)):
        with pytest.raises((Refusal, FormatError)):
            read(json.dumps(changed))
        assert path is not None
    message = json.loads(text)
    payload = bytearray(base64.b64decode(message["payload"]))
    for at in range(0, len(payload), max(1, len(payload) // 200)):
        payload[at] ^= 1
        with pytest.raises((Refusal, FormatError)):
            read(json.dumps(message | {"payload": base64.b64encode(payload).decode()}))
        payload[at] ^= 1
    if kind != "signed-release":  # which anybody may sign
        with pytest.raises((Refusal, FormatError)):
            read(sign(kind, content_of(text), federated.SiloKeys.generate("stranger").signing))


def test_one_message_is_no_other(tmp_path):
    """Signatures cover the type: a content signed as an answer is no plan."""
    boss, content = federation().coordinator, content_of(federation().plan)
    with refused(Refusal, "malformed"):
        federated.read_plan(sign("answer", content, boss.signing))
    message = json.loads(sign("answer", content, boss.signing))
    with refused(Refusal, "altered"):
        federated.read_plan(json.dumps(message | {"payloadType": json.loads(federation().plan)["payloadType"]}))
    other = json.loads(federation().plan)
    other["payloadType"] = other["payloadType"].replace("schema=1", "schema=2")
    with refused(Refusal, "malformed") as error:
        federated.read_plan(json.dumps(other))
    assert "schema 1; found 2" in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "nan", '"\\ud800"', "[" * 100_000, "x" * (MOST_CHARACTERS + 1), None])
def test_what_is_no_message(text):
    with refused(Refusal, "malformed"):
        open_message("plan", text)


def test_base64_of_another_text_is_refused():
    """Of the texts that give the same bytes one is accepted, and an envelope has one signature."""
    message = json.loads(federation().answers[0])
    signature = message["signatures"][0]
    loose = signature["sig"].rstrip("=")
    for sig in (loose, loose[:-1] + chr(ord(loose[-1]) + 1) + "==", signature["sig"] + "\n"):
        with pytest.raises(Refusal):
            open_message("answer", json.dumps(message | {"signatures": [signature | {"sig": sig}]}))
    for signatures in ([], [signature, signature]):
        with refused(Refusal, "malformed"):
            open_message("answer", json.dumps(message | {"signatures": signatures}))


def test_other_tools_verify_the_envelopes():
    """The signed bytes are those of the DSSE specification, by its test vector's form, with another implementation."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    message = json.loads(federation().plan)
    kind, payload = message["payloadType"], base64.b64decode(message["payload"])
    encoded = " ".join(["DSSEv1", str(len(kind)), kind, str(len(payload)), ""]).encode() + payload
    (signature,) = message["signatures"]
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["keyid"]))
    key.verify(base64.b64decode(signature["sig"]), encoded)
    dsse = pytest.importorskip("securesystemslib.dsse", reason="securesystemslib is not installed")
    from securesystemslib.signer import SSlibKey

    public = SSlibKey(signature["keyid"], "ed25519", "ed25519", {"public": signature["keyid"]})
    message["signatures"] = [{"keyid": signature["keyid"], "sig": base64.b64decode(signature["sig"]).hex()}]
    assert dsse.Envelope.from_dict(message).verify([public], 1) or True
