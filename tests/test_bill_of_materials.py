"""The bill of materials of a release, and pinned installations with the hashes of all files."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PINS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("file", PINS, ids=lambda path: path.stem)
def test_every_pin_has_its_hashes(file):
    """The format for pip --require-hashes, with each package once per machine."""
    lines = file.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    shape = re.compile(r"[a-z0-9-]+==[\w.+]+( ; [^#]+?)? +(--hash=sha256:[0-9a-f]{64} *)+")
    assert lines != []
    assert [line[:80] for line in lines if not shape.fullmatch(line)] == []
    always = [line.split("==")[0] for line in lines if " ; " not in line]
    assert len(always) == len(set(always))


@pytest.fixture
def sbom():
    pytest.importorskip("cyclonedx", reason="needs cyclonedx-python-lib: make test installs it")
    from release import sbom

    return sbom


@pytest.fixture
def released(sbom, tmp_path, monkeypatch):
    """The bill of two files, and the folder with all four."""
    version = PROJECT["version"]
    for name in (f"confide-{version}-py3-none-any.whl", f"confide-{version}.tar.gz"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["sbom", str(tmp_path)])
    sbom.main()
    (written,) = tmp_path.glob("*.cdx.json")
    return json.loads(written.read_text(encoding="utf-8")), tmp_path


@pytest.mark.long
def test_the_bill_names_every_package_with_version_hashes_and_licence(sbom, released):
    bill, folder = released
    parts = {one["purl"]: one for one in bill["components"]}
    assert len(parts) == len(bill["components"]) > 100
    itself = bill["metadata"]["component"]
    stated = {one["url"]: one["hashes"][0]["content"] for one in itself["externalReferences"]}
    assert stated == {path.name: sbom.digest(path) for path in folder.glob("confide-*[lz]")}
    pinned = {
        f"{name}@{version}" for file in PINS for found in sbom.pins([file.name]).values() for name, version in found
    }
    for purl, part in parts.items():
        if purl.startswith("pkg:pypi/"):
            assert purl.removeprefix("pkg:pypi/") in pinned
            assert part["externalReferences"][0]["hashes"] != []
            extras = [one["value"] for one in part.get("properties", ())]
            assert part["scope"] == ("required" if part["name"] in REQUIRED else "optional")
            assert extras or part["name"] in REQUIRED
    unlicensed = {part["name"] for part in parts.values() if "licenses" not in part}
    assert unlicensed <= ON_OTHER_SYSTEMS | set(sbom.pins(["cuda.txt"]))
    direct = next(one for one in bill["dependencies"] if one["ref"] == itself["bom-ref"])["dependsOn"]
    names = {parts[ref]["name"] for ref in direct}
    asked = [one for extra in PROJECT["optional-dependencies"].values() for one in extra] + PROJECT["dependencies"]
    wanted = {re.match(r"[\w-]+", one)[0].lower().replace("_", "-") for one in asked} - {"confide"}
    assert names == wanted


REQUIRED = {"numpy", "scipy", "opendp", "msgspec", "deprecated", "wrapt"}  # the last two by OpenDP
ON_OTHER_SYSTEMS = {"colorama", "pywin32"}  # whose licences were not looked at, since they are not installed on Linux


@pytest.mark.long
def test_the_same_packages_give_the_same_bill(sbom, released):
    """No time and no chance: twice the same bytes, and other packages have another serial number."""
    bill, folder = released
    (written,) = folder.glob("*.cdx.json")
    before = written.read_bytes()
    sbom.main()
    assert written.read_bytes() == before
    assert "timestamp" not in bill["metadata"]
    next(folder.glob("*.whl")).write_text("another", encoding="utf-8")
    sbom.main()
    assert json.loads(written.read_bytes())["serialNumber"] != bill["serialNumber"]
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True, capture_output=True)
    next(folder.glob("*.whl")).unlink()
    with pytest.raises(SystemExit, match="expected one wheel and one sdist"):
        sbom.main()


@pytest.mark.long
def test_the_bills_follow_the_schema(sbom, released):
    """That of CycloneDX 1.6, which the library has with it: no network."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(json.dumps(released[0])) is None
    assert validator.validate_str('{"bomFormat": "CycloneDX"}') is not None
