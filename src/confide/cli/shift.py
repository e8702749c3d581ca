"""The options that ask a promise for a population that is a known shift away."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, TypeAlias

import click

from confide.cli.options import option, split
from confide.planning import ClassShift

_shift = partial(option, "A known shift")

WeightBound: TypeAlias = Annotated[float | None, _shift("NUMBER", "What no weight exceeds.")]


@dataclass(frozen=True)
class ClassShiftOptions:
    """By how much classes are more or less frequent among new records."""

    class_weights: Annotated[
        str | None,
        _shift("A=W", "How many times as frequent classes are anew: A=0.5,B=2."),
    ] = None
    source_shares: Annotated[
        str | None,
        _shift("A=P", "Or by public shares: where the records come from,"),
    ] = None
    target_shares: Annotated[str | None, _shift("A=P", "and those of new records.")] = None

    @property
    def shift(self) -> ClassShift | None:
        """What they ask for; None if nothing."""
        if (self.source_shares is None) != (self.target_shares is None):
            raise click.UsageError("--source-shares and --target-shares must be given together")
        if self.class_weights is not None and self.source_shares is not None:
            raise click.UsageError("give --class-weights, or --source-shares with --target-shares, not both")
        if self.class_weights is not None:
            return ClassShift.of_weights(named_numbers("--class-weights", self.class_weights))
        if self.source_shares is None or self.target_shares is None:
            return None
        source = named_numbers("--source-shares", self.source_shares)
        return ClassShift.of_shares(source, named_numbers("--target-shares", self.target_shares))


@dataclass(frozen=True)
class ShiftOptions(ClassShiftOptions):
    """The same, or a weight for each record."""

    weight_column: Annotated[
        str | None,
        _shift("COLUMN", "Or public weights, functions of covariates alone."),
    ] = None
    weight_bound: WeightBound = None

    def arguments(self, divided: Mapping[str, Any]) -> dict[str, Any]:
        """What `calibrate_table` takes of them; nothing if no shift is asked for."""
        shift = self.shift
        if (self.weight_column is None) != (self.weight_bound is None):
            raise click.UsageError("--weight-column and --weight-bound must be given together")
        if shift is not None and self.weight_column is not None:
            raise click.UsageError("give --class-weights or --weight-column, not both")
        if shift is None and self.weight_column is None:
            return {}
        if divided:
            raise click.UsageError(
                "thresholds per group or class keep their promise under every shift of shares: leave weights out"
            )
        return {"class_weights": shift, "weights": self.weight_column, "weight_bound": self.weight_bound}


def named_numbers(option: str, text: str) -> dict[str, str]:
    """Numbers by name.

    Examples
    --------
    >>> named_numbers("--class-weights", "A=0.5, B=2")
    {'A': '0.5', 'B': '2'}
    """
    found: dict[str, str] = {}
    for pair in split(text):
        name, equals, number = pair.rpartition("=")
        if not equals or not name:
            raise click.UsageError(f"{option} must be like A=0.5,B=2; found {pair!r}")
        if name in found:
            raise click.UsageError(f"{option} must have every class once; found {name!r} twice")
        found[name] = number
    return found
