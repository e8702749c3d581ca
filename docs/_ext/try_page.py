"""The page "Try it": this version of confide as a wheel, and the demonstration sampler, in `try-files.js`.

The wheel is built from the tree, without the network, so that the browser runs the version that the pages describe. A
script, not a file to fetch, since browsers forbid fetching for pages that are opened from disk. It is loaded only when
the reader asks for Python.
"""

import base64
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
FILE = "try-files.js"
SAMPLER = ROOT / "docs" / "_static" / "demonstration_sampler.py"


def wheel(folder: Path) -> Path:
    """The wheel of the tree, built in a folder by the installed hatchling."""
    # `build --no-isolation` needs no network; hatchling is a dependency of development.
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a fixed command
    (built,) = folder.glob("*.whl")
    return built


def files() -> dict[str, str]:
    """What the page needs in addition to Pyodide: the wheel in base 64, its name, and the text of the sampler."""
    with tempfile.TemporaryDirectory() as folder:
        built = wheel(Path(folder))
        content = base64.b64encode(built.read_bytes()).decode()
    return {"wheel": content, "name": built.name, "sampler": SAMPLER.read_text(encoding="utf-8")}


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the files next to the pages."""
    if exception is None and app.builder.format == "html":
        (Path(app.outdir) / FILE).write_text(f"window.tryFiles = {json.dumps(files())};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the build."""
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
