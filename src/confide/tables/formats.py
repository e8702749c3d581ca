"""File formats, told by the extension."""

from pathlib import Path
from typing import Literal, TypeAlias

from confide.errors import InputError

Format: TypeAlias = Literal["parquet", "csv", "arrow"]

EXTENSIONS: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def file_format(path: Path) -> Format:
    """The format that a file's extension stands for.

    Raises
    ------
    InputError
        If the extension is not known.

    Examples
    --------
    >>> file_format(Path("scores.Parquet"))
    'parquet'
    """
    if path.is_dir():
        raise InputError(f"file {str(path)!r} is a folder; name a file")
    found = EXTENSIONS.get(path.suffix.lower())
    if found is None:
        raise InputError(
            f"file {str(path)!r} must end in one of {', '.join(EXTENSIONS)}; found {path.suffix or 'no extension'!r}"
        )
    return found
