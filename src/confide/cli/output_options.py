"""Output files as options. What checks and writes them is imported when a command runs."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confide.support import FileKind, FileLocation


@dataclass(frozen=True)
class OptionalOutput:
    """An optional output file."""

    out: Path | None = None
    force: bool = False

    def check(self, kind: "FileKind", *inputs: "str | FileLocation | None") -> None:
        """Check before any work that the file can be written, and replaces no input."""
        from confide.cli.output import check_output

        check_output(self.out, kind, *inputs, force=self.force)

    def write(self, text: str) -> None:
        """Write the file as a whole or not at all, if there is one."""
        from confide.support import write_text

        if self.out is not None:
            write_text(self.out, text, overwrite=self.force)

    def write_page(self, value: Any) -> None:
        """Write the HTML page of a value, if there is a file."""
        if self.out is not None:
            from confide.reports import report

            self.write(report(value).html)

    def saved(self) -> str | None:
        """A line with the path, if there is a file."""
        return None if self.out is None else f"saved: {self.out}"


@dataclass(frozen=True)
class Output(OptionalOutput):
    """A required output file."""

    out: Path = field()

    def new(self, kind: "FileKind") -> AbstractContextManager[Path]:
        """A path to write to; the output file appears when the block ends without an error."""
        from confide.support import new_file

        return new_file(self.out, overwrite=self.force, kind=kind)

    def save(self, text: str, verb: str = "saved") -> None:
        """Write the file, and print its path."""
        from confide.cli.output import print_text

        self.write(text)
        print_text(f"{verb}: {self.out}")
