"""Tasks that run less often than `make test`: other environments, measurements, and long computations.

`make setup` installs nox into .venv; `.venv/bin/nox -l` lists the sessions, `.venv/bin/nox -s NAME` runs one. Every
environment is created from pinned requirements: pip takes only the packages in them, with one of the listed hashes.
"""

import shutil
import sys
from pathlib import Path

import nox

nox.options.sessions = ["peers", "nvflare", "mlflow", "stores"]
nox.options.default_venv_backend = "none"

PYTHON = ".venv/bin/python"
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
TORCH = ("requirements/torch.sh", "requirements/cpu.txt", "requirements/cuda.txt")
REPORT = ("-m", "coverage", "report", "--format=total")
FLOORS = {  # least percentage of lines and branches that all tests reach, for the packages that guarantees rest on
    "selection": 98,
    "guarantee": 98,
    "mechanisms": 98,
    "counting": 99,
    "core": 95,
    "federated": 95,
    "ledger": 96,
}


def pinned(session: nox.Session, name: str, python: str = PYTHON) -> None:
    """Install the packages of requirements/NAME.txt."""
    session.run(python, *PIP, "--require-hashes", "-r", f"requirements/{name}.txt", external=True)


def is_old(ready: Path, *needs: str) -> bool:
    """Return whether the target marked by `ready` is missing or older than its inputs."""
    return not ready.exists() or any(ready.stat().st_mtime < Path(one).stat().st_mtime for one in needs)


def environment(session: nox.Session, name: str, *, editable: bool = False) -> Path | None:
    """Create .venv-NAME with the packages of NAME.txt; return None if it is up to date."""
    folder = Path(f".venv-{name}")
    if not is_old(folder / ".ready", f"requirements/{name}.txt", "pyproject.toml"):
        return None
    session.run(sys.executable, "-m", "venv", str(folder), external=True)
    pinned(session, name, f"{folder}/bin/python")
    if editable:
        session.run(f"{folder}/bin/python", *PIP, "--no-build-isolation", "--editable", ".", external=True)
    (folder / ".ready").touch()
    return folder


def modules(session: nox.Session, *names: str) -> None:
    """Run modules of this repository, or installed ones, one after the other."""
    for name in names:
        session.run(PYTHON, "-m", *name.split(), external=True)


@nox.session
def peers(session: nox.Session) -> None:
    """Install the other conformal libraries in .venv-peers."""
    ready = Path(".venv-peers/.ready")
    if is_old(ready, *TORCH, "benchmarks/peers_setup.sh", "requirements/peers.txt"):
        session.run("benchmarks/peers_setup.sh", sys.executable, ".venv-peers", external=True)
        ready.touch()


@nox.session
def nvflare(session: nox.Session) -> None:
    """Install NVIDIA FLARE for its recipe in .venv-nvflare."""
    environment(session, "nvflare", editable=True)


@nox.session
def mlflow(session: nox.Session) -> None:
    """Install MLflow for its recipe in .venv-mlflow."""
    environment(session, "mlflow", editable=True)


@nox.session
def stores(session: nox.Session) -> None:
    """Install servers of object stores for their tests in .venv-stores."""
    folder = environment(session, "stores")
    if folder is not None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy2(f"requirements/npm/{name}", folder)
        if shutil.which("npm"):
            session.run("npm", "ci", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), external=True)


@nox.session
def extras(session: nox.Session) -> None:
    """Install every optional package (PyTorch, Flower, matplotlib, ...) in .venv."""
    ready = Path(".venv/.extras")
    if is_old(ready, *TORCH, "requirements/extras.txt", ".venv/.ready"):
        session.run("requirements/torch.sh", PYTHON, "requirements/extras.txt", external=True)
        ready.touch()


@nox.session
def smoke(session: nox.Session) -> None:
    """Run a small form of every command that documents name and no other session runs, in some minutes."""
    for needed in (extras, peers, nvflare, mlflow):
        needed(session)
    for name in ("fuzz", "measuring"):
        pinned(session, name)
    modules(session, "tests.commands")


@nox.session
def fuzz(session: nox.Session) -> None:
    """Run more than a million coverage-guided executions of every parser of outside data, in about 20 minutes."""
    extras(session)
    pinned(session, "fuzz")
    modules(session, "fuzz.run")


@nox.session
def long(session: nox.Session) -> None:
    """Run the tests that are marked `long`: simulations, installations and clusters, in about a quarter of an hour."""
    extras(session)
    command = "pytest -m long --hypothesis-profile=thorough -n 2 --dist loadgroup"
    session.run(PYTHON, "-m", *command.split(), *session.posargs, external=True)


@nox.session
def coverage(session: nox.Session) -> None:
    """Measure branch coverage of all tests and compare it with FLOORS: about two hours."""
    extras(session)
    pinned(session, "measuring")
    modules(session, "coverage erase")
    command = "coverage run -m pytest -n 2 --dist loadgroup"
    session.run(PYTHON, "-m", *command.split(), *session.posargs, external=True)
    modules(session, "coverage combine --quiet")
    below = []
    for package, floor in FLOORS.items():
        least = ("--include", f"src/confide/{package}/*,src/confide/{package}.py", "--fail-under", str(floor))
        below += [package] if session.run(PYTHON, *REPORT, *least, external=True, success_codes=[0, 2]) == 2 else []
    modules(session, "coverage report --skip-covered --show-missing")
    if below:
        session.error(f"coverage is below FLOORS in {', '.join(below)}")


@nox.session
def proofs(session: nox.Session) -> None:
    """Check the theorems of proofs/ with Rocq (needs coqc: apt-get install coq), in half a minute."""
    session.run("proofs/check", external=True)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure speed compared with numpy in the same run."""
    extras(session)
    names = ("calibrate", "command_line", "first_call", "price --runs 20 sizes", "ranked_sets", "federated")
    modules(session, *(f"benchmarks.{name}" for name in names))


@nox.session(name="bench-peers")
def bench_peers(session: nox.Session) -> None:
    """Measure speed, memory, coverage and set size compared with other conformal libraries."""
    extras(session)
    peers(session)
    modules(session, "benchmarks.peers .venv-peers/bin/python")


@nox.session
def screenshots(session: nox.Session) -> None:
    """Make the pictures of docs/report.md (needs Chromium: apt-get install chromium)."""
    extras(session)
    modules(session, "tests.reports.screenshots")


@nox.session
def gallery(session: nox.Session) -> None:
    """Make the pictures of docs/gallery.md with its blocks."""
    extras(session)
    modules(session, "tests.docs.gallery")


@nox.session
def experiments(session: nox.Session) -> None:
    """Make figures and tables of docs/experiments, within an hour, or `-- --full`; continues where it stopped."""
    extras(session)
    session.run(PYTHON, "-m", "experiments", *session.posargs, external=True)


@nox.session
def packages(session: nox.Session) -> None:
    """Build wheel, sdist, bill of materials and checksums in dist/."""
    modules(session, "build --no-isolation --outdir dist", "release.sbom dist")


@nox.session
def dist(session: nox.Session) -> None:
    """Build packages after a check: built twice and compared, installed into an empty environment."""
    modules(session, "pytest tests/test_release.py")
    packages(session)


@nox.session
def lock(session: nox.Session) -> None:
    """Pin the newest versions that pyproject.toml allows, with the hashes of their files (needs uv and npm)."""
    session.run(PYTHON, "requirements/lock.py", *session.posargs, external=True)
    update = (
        "update --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund --prefix requirements/npm"
    )
    session.run("npm", *update.split(), external=True)
