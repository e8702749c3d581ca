"""The exit codes and what they are called; their words in the help may become better."""

from collections.abc import Iterator


def lines() -> Iterator[str]:
    from confide.cli import exit_codes

    named = {value: name for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    yield from (f"{value} {name}" for value, name in sorted(named.items()))
