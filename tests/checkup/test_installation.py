"""What is installed: versions against what is known, files against their list, optional parts; and the command."""

import base64
import hashlib
import json
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

pytest.importorskip("packaging")

import confide
from confide.checkup import installation
from confide.cli.exit_codes import DONE, FOUND, REFUSED

ROOT = Path(__file__).parents[2]


@pytest.fixture
def versions(monkeypatch):
    """Installed versions, as if they were these."""
    real, faked = metadata.version, {"confide": "0.2.0", "opendp": "0.16.0"}
    monkeypatch.setattr(metadata, "version", lambda name: faked.get(name) or real(name))
    monkeypatch.setattr(installation, "_files", lambda name: "as installed")  # 276 MB of OpenDP are hashed else
    return faked


@pytest.mark.slow
def test_no_advisory_about_this_version(versions):
    found = confide.doctor()
    assert found.advisories == ()
    assert not [line for line in found.findings if "advis" in line or "opendp" in line]
    assert found.sampler == "draws; it cannot be seeded"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "version", "known"),
    [
        ("opendp", "0.14.1", {"opendp-2638", "opendp-2912"}),
        ("opendp", "0.15.1", {"opendp-2912"}),
        ("confide", "0.1.0", {"confide-2026-1", "confide-2026-2", "confide-2026-3"}),
    ],
)
def test_versions_with_a_known_defect(versions, package, version, known):
    versions[package] = version
    found = confide.doctor()
    assert {one.id for one in found.advisories} == known
    assert all(name in "\n".join(found.findings) and name in str(found) for name in known)
    if package == "opendp":
        assert any("outside of" in line for line in found.findings)


def test_every_extra_is_explained():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(declared) == set(installation.UNLOCKS)


def test_missing_and_unsupported_parts(monkeypatch):
    asked = [
        "numpy>=2",
        "opendp>=0.16",
        "aaa>=2; extra == 'plots'",
        "confide[plots]; extra == 'jax'",
        "zzz; extra == 'torch'",
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: asked)
    monkeypatch.setattr(
        metadata, "metadata", lambda name: type("M", (), {"get_all": lambda *_: ["plots", "jax", "torch"]})()
    )
    installed = {"aaa": "1.5"}

    def version(name):
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(metadata, "version", version)
    found = {one.extra: one for one in installation.parts()}
    assert found["torch"].missing == ("zzz",)
    assert "pip install 'confide[torch]'" in str(found["torch"])
    assert str(found["plots"]) == "yes: pictures; aaa 1.5, outside of >=2"
    assert [one.name for one in found["jax"].packages] == ["aaa"]


def installed_in(folder: Path, monkeypatch, *, editable: bool = False, listed: bool = True) -> Path:
    """A package `confide` as pip leaves it, with a list of its files."""
    info, module = folder / "confide-0.2.0.dist-info", folder / "confide.py"
    info.mkdir()
    module.write_text("x = 1\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: confide\nVersion: 0.2.0\n")
    if editable:
        (info / "direct_url.json").write_text(json.dumps({"url": "file:///x", "dir_info": {"editable": True}}))
    if listed:
        digest = base64.urlsafe_b64encode(hashlib.sha256(module.read_bytes()).digest()).decode().rstrip("=")
        (info / "RECORD").write_text(f"confide.py,sha256={digest},6\nconfide-0.2.0.dist-info/RECORD,,\n")
    monkeypatch.setattr(metadata, "distribution", lambda name: metadata.PathDistribution(info))
    return module


def test_files_are_compared_with_record(tmp_path, monkeypatch):
    module = installed_in(tmp_path, monkeypatch)
    assert installation._files("confide") == "as installed (1 hashes)"
    module.write_text("x = 2\n")
    assert installation._files("confide") == "changed: confide.py"
    found = confide.doctor()
    assert "confide: files changed: confide.py" in found.findings
    module.unlink()
    assert installation._files("confide") == "changed: confide.py"


def test_editable_installation_and_missing_record(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    installed_in(tmp_path / "a", monkeypatch, editable=True)
    assert installation._files("confide").startswith("editable")
    installed_in(tmp_path / "b", monkeypatch, listed=False)
    assert installation._files("confide").startswith("not known")


@pytest.mark.slow
def test_repeating_sampler_is_broken(versions, monkeypatch):
    import numpy as np

    monkeypatch.setattr("confide.noisy_counts.draw_counts", lambda counts, epsilon: np.zeros(len(counts), np.int64))
    found = confide.doctor()
    assert any(line.startswith("sampler broken") for line in found.findings)


@pytest.mark.slow
def test_checkup_printing(versions):
    found = confide.doctor()
    assert repr(found).startswith("Checkup(confide 0.2.0, OpenDP 0.16.0, 0 files")
    assert "<table" in found._repr_html_()


def test_the_command(capsys, versions, tmp_path, monkeypatch):
    main = pytest.importorskip("confide.cli.run").main
    monkeypatch.setattr("confide.checkup.folders.parts", lambda: ())
    assert main(["doctor", str(tmp_path), "--json"]) == DONE
    fine = capsys.readouterr().out
    assert fine.count("\n") == 1
    assert json.loads(fine)["findings"] == []
    (tmp_path / "\x1b[2J.json").write_text('{"kind": "confide.calibration", ', encoding="utf-8")
    assert main(["doctor", str(tmp_path)]) == FOUND
    found = capsys.readouterr()
    assert "file: " in found.out
    assert "\x1b" not in found.out + found.err
    assert main(["doctor", str(tmp_path / "gone")]) == REFUSED
    assert capsys.readouterr().err.startswith("error: path")
