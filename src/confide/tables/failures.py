"""What went wrong with a file, in fixed words: the engines' own texts may quote records and go no further."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confide.errors import FormatError, InputError
from confide.tables.formats import Format

_NAMES: dict[Format, str] = {
    "parquet": "a Parquet file",
    "csv": "a CSV file",
    "arrow": "an Arrow (IPC) or Feather file",
}


def check_readable(path: Path) -> None:
    """Refuse a file that is missing, a folder, closed to us, or of no bytes."""
    if path.is_dir():
        raise InputError(f"file {str(path)!r} is a folder; name a file")
    try:
        with path.open("rb") as stream:
            empty = not stream.read(1)
    except FileNotFoundError:
        raise InputError(f"file {str(path)!r} does not exist") from None
    except OSError as error:
        raise InputError(f"file {str(path)!r} cannot be read: {error.strerror}") from None
    if empty:
        raise FormatError(f"file {str(path)!r} is empty: it has no bytes")


@contextmanager
def fixed_words(path: Path, file_format: Format) -> Iterator[None]:
    """Replace every error of the reading engines by one that says no more than is safe."""
    import duckdb
    import pyarrow as pa

    try:
        yield
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(f"file {str(path)!r} {_finding(str(error), file_format)}") from None


def _finding(text: str, file_format: Format) -> str:
    if text.startswith("Out of Memory"):
        return "needs more memory to read than there is"
    sniffing = "Error when sniffing file" in text
    if file_format != "csv" or not ("CSV Error" in text or sniffing):
        return f"cannot be read: it is truncated, damaged or not {_NAMES[file_format]}"
    if sniffing:
        return (
            "cannot be read: its lines do not look like one CSV table; they must have the same number of values, "
            "separated and quoted alike, and end alike"
        )
    line = re.search(r"\A[A-Za-z ]*Error: CSV Error on Line: ([0-9]{1,15})$", text.partition("\n")[0])
    where = f" on line {line[1]}" if line else ""
    if "Invalid unicode" in text or "not utf-8 encoded" in text:
        return f"cannot be read{where}: it is not UTF-8 text"
    if text.startswith("Conversion Error"):
        return (
            f"cannot be read{where}: a value does not fit the type that the first rows of its column have; "
            "leave that column out with keep, or write CSV, which keeps every column as it is"
        )
    return (
        f"cannot be read{where}: a line has more or fewer values than the header has names, or a quote does not close"
    )
