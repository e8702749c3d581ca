"""The options of calibrations: choices of a threshold, what is charged, and other fields of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypedDict

from confide.core.account import Payer
from confide.core.fingerprint import ModelFingerprint
from confide.core.rules import reason_against
from confide.core.thresholds import By
from confide.errors import InputError
from confide.mechanisms import Chosen, MechanismName, Neighbors
from confide.support import Level, check_unknown_arguments

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


class Choices(TypedDict, total=False):
    """Public choices of a threshold, in addition to its level, epsilon and candidates.

    Parameters
    ----------
    rho
        zCDP loss per person, instead of epsilon: the mechanism has the largest epsilon that it allows
        (docs/theory.md, Lemma P3).
    neighbors
        The adjacency: `"add_remove"` (n stays secret) or `"replace_one"` (n is public).
    n_min
        Public lower bound on the secret number of records (`add_remove` only). With `delta`, and for published methods,
        the coverage guarantee holds for every n >= n_min. The default guarantee holds for every n.
    delta
        Guarantee "coverage at least 1-alpha with probability 1-delta over the calibration data" instead of marginal
        coverage; in (0, 1).
    records_per_person
        Public bound on the number of records of one person; each record then gets epsilon/records_per_person.
    mechanism
        `"slopes"` (default), or the name of a published method, for comparisons: `"pps"`, `"pps-laplace"`,
        `"noisy-histogram"`, `"opendp-quantile"` (no coverage guarantee) or `"none"` (**not private**: split
        conformal prediction; leave out epsilon). See docs/methods.md.
    """

    rho: float | None
    neighbors: Neighbors
    n_min: int
    delta: Level | None
    records_per_person: int
    mechanism: MechanismName


class LedgerOptions(TypedDict, total=False):
    """Options that state which privacy budget is charged.

    Parameters
    ----------
    ledger, dataset
        A `confide.Ledger`, and the name (or `confide.Dataset`) of the data set's budget in it. The cost is charged
        durably before the mechanism runs. An identical request with the same records returns the stored release with
        a warning, at no cost. With other records it raises `OtherDataError`.
    again
        The same people with new records or a new model: draw and charge again, although the ledger contains an
        identical request.
    """

    ledger: Ledger | None
    dataset: str | Dataset | None
    again: bool


class Options(Choices, LedgerOptions, total=False):
    """Options of `calibrate` and related functions, including all of `Choices` and `LedgerOptions`.

    Parameters
    ----------
    about
        Public metadata for the release: any of `model`, `version` (of the model), `data`, `purpose`, `responsible`
        and `date`, each of up to 500 printable characters.
    fingerprint
        The model's `confide.ModelFingerprint`, of its outputs on PUBLIC probe records or of its file. It is stored in
        the release, so that another model is rejected (`Release.for_model`).
    unit
        For residuals: a public number in their units, such as a typical size of the target or of an error. Candidates
        are spread around it. If it is right within a factor of 100, thresholds are sharper and rarely exceed the data.
    chosen
        The public statement of `choose_score`, if the score was chosen privately on a share of the records. The records
        of this call are all others. The release then states the choice, and the privacy loss of both together.
    """

    about: Mapping[str, str] | None
    fingerprint: ModelFingerprint | None
    unit: float | None
    chosen: Chosen | None


class GroupOptions(Options, total=False):
    """Options of functions that also make thresholds per group or class.

    Parameters
    ----------
    partition
        For groups and classes, required with a ledger: the public name of the attribute that divides the records, such
        as `"hospital"`. A name must always stand for the same division.
    """

    partition: str | None


# The options that state what is charged.
_PAYER_OPTIONS = tuple(field.name for field in fields(Payer))

# Arguments of `calibrate` that related functions do not take, and the reasons.
_WEIGHTS = ("class_weights", "labels", "weights", "weight_bound")
_WEIGHTED = "weights are for `calibrate` and tables, which read every record; for weighted counts pass population"
_NUMBER = "the number of records is the number of scores that are given"


def split_options(
    function: str, options: Mapping[str, Any], *additional: str, by: By | None = None
) -> tuple[Payer, dict[str, Any]]:
    """Return the payer, and the other options as fields of a `Request`; `additional` are options of this call alone."""
    refuse_weights(by, [name for name in _WEIGHTS if name in options])
    accepted = (*Options.__optional_keys__, *additional)
    hints = {"n": _NUMBER} | dict.fromkeys(_WEIGHTS, _WEIGHTED)
    check_unknown_arguments(function, options, accepted, hints, ("score", "classes", "candidates", "epsilon", "alpha"))
    payer = Payer(**{name: options[name] for name in _PAYER_OPTIONS if name in options})
    return payer, {name: value for name, value in options.items() if name not in _PAYER_OPTIONS}


def refuse_weights(by: By | None, given: Sequence[str]) -> None:
    """Reject the first of these arguments about weights if several thresholds of this kind exclude a population."""
    reason = reason_against("population", by)
    if given and reason is not None:
        raise InputError(given[0], f"must be left out {reason}")
