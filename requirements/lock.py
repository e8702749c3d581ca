"""Write every `requirements/*.txt`: `nox -s lock`, or with `--keep`, which changes no pinned version.

Needs uv, and pip with its configured indexes. A pin is a line `name==version ; marker` with the hashes of all
files of that version below it, for every platform and every supported Python.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
CUDA = re.compile(r"(nvidia|cuda|triton)")
COMPILE = "uv pip compile --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url --quiet"


def compiled(name: str, *sources: str, upgrade: bool, near: str | None = None) -> None:
    """Pin the requirements of `sources` in `name`; packages that the file `near` also has keep its version."""
    options = [*(["--upgrade"] if upgrade else []), *(["--constraint", str(HERE / near)] if near else [])]
    command = [*COMPILE.split(), "--generate-hashes", *options, *sources, "--output-file", str(HERE / name)]
    subprocess.run(command, cwd=HERE.parent, check=True)


def pins(name: str) -> dict[str, str]:
    """The pins of a file: each first line, without its end, and the whole block that it starts."""
    text = (HERE / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^\S.*\n(?:[ ].*\n)*", text, flags=re.MULTILINE)
    return {block.partition("\n")[0].removesuffix(" \\"): block for block in blocks}


def written(name: str, blocks: dict[str, str]) -> None:
    (HERE / name).write_text("".join(blocks.values()), encoding="utf-8")


def cpu_wheel(torch: str) -> str:
    """The pin of PyTorch without CUDA, of this version and for this machine: the wheel that pip finds."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, torch]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).iterdir()
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    known = re.fullmatch(
        r"torch-(?P<version>.*\+cpu)-cp3(?P<minor>\d+)-.*manylinux.*_(?P<machine>x86_64)\.whl", wheel.name
    )
    if known is None:
        sys.exit(f"pip found {wheel.name}, with CUDA; set PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu")
    where = f"python_version == '3.{known['minor']}' and sys_platform == 'linux'"
    where += f" and platform_machine == '{known['machine']}'"
    return f"torch=={known['version']} ; {where} \\\n    --hash=sha256:{found}\n"


def main() -> None:
    """Write all files."""
    new = "--keep" not in sys.argv
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    one = "--extra=standard"  # every environment has it
    extras = [f"--extra={name}" for name in project["optional-dependencies"] if name != "standard"]
    everything = {line: block for name in ("dev.txt", "extras.txt", "cuda.txt") for line, block in pins(name).items()}
    written("all.txt", everything)
    compiled("all.txt", "pyproject.toml", "--group=dev", "--group=docker", "--group=recipes", one, *extras, upgrade=new)
    compiled("dev.txt", "pyproject.toml", "--group=dev", one, upgrade=False, near="all.txt")
    more = {line: block for line, block in pins("all.txt").items() if line not in pins("dev.txt")}
    written("cuda.txt", {line: block for line, block in more.items() if CUDA.match(line)})
    written("extras.txt", {line: block for line, block in more.items() if not CUDA.match(line)})
    (torch,) = (line.split()[0] for line in more if line.startswith("torch=="))
    (HERE / "cpu.txt").write_text(cpu_wheel(torch), encoding="utf-8")
    compiled("docker.txt", "pyproject.toml", "requirements/docker.in", one, upgrade=False, near="all.txt")
    build = "--group=build"
    compiled("nvflare.txt", "pyproject.toml", one, "--group=nvflare", build, upgrade=False, near="all.txt")
    compiled("mlflow.txt", "pyproject.toml", "--group=mlflow", build, upgrade=False, near="dev.txt")
    for name in ("stores", "fuzz"):
        compiled(f"{name}.txt", f"requirements/{name}.in", upgrade=new)
    compiled("measuring.txt", "requirements/measuring.in", upgrade=new, near="dev.txt")
    override = ("--override", str(HERE / "peers.override"))
    compiled("peers.txt", "requirements/peers.in", *override, upgrade=new)
    written("peers.txt", {line: block for line, block in pins("peers.txt").items() if not CUDA.match(line)})
    (HERE / "all.txt").unlink()


if __name__ == "__main__":
    main()
