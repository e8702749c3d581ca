"""Sentences for readers without a background in statistics or privacy, from `assets/words.toml`.

They are chosen here, and filled in from public numbers only.
"""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from confide.core import (
    FALSE_NEGATIVES,
    OVERLAP,
    Release,
    Threshold,
    any_shares,
    level_reached,
    limit_text,
    meaning_of_infinity,
)
from confide.federated import FederatedRelease
from confide.guarantee import Guarantee, coverage_text, silos_text
from confide.mechanisms import PrivacyStatement, PublishedHistogram, loss_facts
from confide.scores import score_kind
from confide.support import Facts, Section, Table, decimal_text, describe


@lru_cache(maxsize=1)
def words() -> Mapping[str, Any]:
    """All sentences, by section and name."""
    return tomllib.loads(files("confide.reports").joinpath("assets/words.toml").read_text(encoding="utf-8"))


def say(section: str, name: str, **values: object) -> str:
    """A sentence, with these values filled in."""
    return str(words()[section][name]).format(**values).strip()


def percent(level: float) -> str:
    r"""Format a share in per cent, without trailing zeros, with a no-break space.

    Examples
    --------
    >>> percent(0.9), percent(0.999), percent(0.0712345)
    ('90\xa0%', '99.9\xa0%', '7.1235\xa0%')
    """
    return f"{100 * level:.4f}".rstrip("0").rstrip(".") + "\u00a0%"


def number(value: float) -> str:
    """Format a number with five significant digits; +inf is written +∞.

    Examples
    --------
    >>> number(0.912345678), number(float("inf"))
    ('0.91235', '+∞')
    """
    if not math.isfinite(value):
        return "+∞" if value > 0 else "−∞"
    return f"{value:.5g}".replace("-", "−")


def date_of(time: str) -> str:
    """The date of a time in ISO 8601."""
    return time[: len("2026-03-02")]


def as_sentence(text: str) -> str:
    """A clause with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:]}."


# The promise


def noun(release: Release) -> str:
    """The model's answer: a set, or an interval."""
    return "interval" if release.task == "regression" else "set"


def promise(guarantee: Guarantee, where: str = "in the set") -> str:
    r"""Coverage promise for users of the sets.

    Examples
    --------
    >>> promise(Guarantee("marginal", 0.9, None, None, 1))
    'On average, the true label is in the set for at least 90\xa0% of new records.'
    """
    if guarantee.kind == "none" or guarantee.coverage == 0:
        return say("promise", "none")

    # For whom: the same distribution in all silos, or another population.
    alike = ", if all silos have the same distribution" if guarantee.silos == "alike" else ""
    if guarantee.population is not None:
        alike = f", {guarantee.population.replace('for new records', 'that is, of those', 1)}"

    # On average, or with a probability.
    true = "true label" if where.endswith("set") else "true value"
    filled = {"true": true, "where": where, "share": _share(guarantee.coverage), "alike": alike}
    if guarantee.delta is None:
        return say("promise", "average", **filled)
    return say("promise", "sure", sure=percent(1 - guarantee.delta), **filled)


def headline(release: Release) -> str:
    """Promise of the whole release."""
    if release.loss is not None:
        limit = limit_text(release.loss, release.bound, release.risk)
        if not limit.startswith("at most"):
            limit = f"the loss “{release.loss}” is at most {release.risk:.6g}"
        return f"On average, {limit}."
    if release.by == "level":
        shares = ", ".join(_share(level.coverage) for level in release.parts.values())
        return say("promise", "levels", share=shares)
    if release.by == "side":
        return say("promise", "sides", share=_share(release.promised))
    text = promise(release.first.guarantee, f"in the {noun(release)}")
    return f"For each {release.by}: {text[0].lower()}{text[1:]}" if release.disjoint else text


def explanation(guarantee: Guarantee) -> str:
    """What the promise averages over and what it assumes; for a whole release, that of its first part."""
    # The records over which it averages.
    if guarantee.kind == "none" or guarantee.coverage == 0:
        return say("explanation", "none")
    average = say("explanation", "average")
    if guarantee.population is not None:
        return f"{average} {say('explanation', 'shifted')}"

    # Silos, and the certainty.
    silos = ""
    if guarantee.silos is not None:
        kind = "alike" if guarantee.silos == "alike" else "unlike"
        silos = f" {say('explanation', kind, silos=silos_text(guarantee.silos))}"
    if guarantee.delta is None:
        return f"{average} {say('explanation', 'single')} {say('explanation', 'assumed', how='')}{silos}"
    sure = say("explanation", "sure", risk=percent(guarantee.delta))
    return f"{sure} {say('explanation', 'assumed', how=', independently')}{silos}"


def about_groups(release: Release) -> str:
    """For thresholds by group: which one a record has if groups overlap, or that the shares of groups may change."""
    if release.overlap is not None:
        return f" Groups of {release.overlap}: {OVERLAP}."
    clause = any_shares(release)
    return f" {as_sentence(clause)}" if clause else ""


def _share(coverage: float) -> str:
    return percent(float(coverage_text(coverage)))


# What the sets mean


def meaning(release: Release, example: Section | None, *, broken: bool = False) -> Section:
    """What sets or intervals mean, with the promise, a rule, an example with invented numbers, and all thresholds."""
    # What a set is, and what is promised.
    name = noun(release)
    first = release.first
    scores = {threshold.score for threshold in release.parts.values()}
    one_width = name == "interval" and scores == {"absolute_residual"}
    before = f"{say('meaning', 'before')} " if broken else ""
    lines = [
        say("meaning", "one_width" if one_width else name),
        f"{before}{headline(release)} {explanation(first.guarantee)}{about_groups(release)}",
    ]

    # The promise for a hundred records, if it is that simple, and the rule of one threshold.
    plain = release.by is None and release.loss is None and first.guarantee.delta is None
    if plain and first.coverage and not broken:
        true = "value" if name == "interval" else "label"
        lines.append(say("meaning", "hundred", covered=f"{100 * first.coverage:.6g}", true=true, noun=name))
    if release.by is None and (sentence := rule(first, release.loss)):
        lines.append(sentence)
    thresholds = [replace(section, title="The thresholds") for section in describe(release).parts]
    parts = thresholds if example is None else [example, *thresholds]
    return Section(f"What the {name}s mean", "\n".join(lines), parts=tuple(parts))


def rule(stated: Threshold, loss: str | None = None) -> str:
    """Sentence about the contents of a set; empty for a loss of another program."""
    if loss not in (None, FALSE_NEGATIVES):
        return ""
    kind = score_kind(stated.score if loss is None else "lac")
    if stated.excludes_nothing:
        return f"The threshold is {number(stated.threshold)}: {meaning_of_infinity(stated.score)}."
    sentence = kind.sentence(stated.threshold, number)
    if kind.temperature is None:
        return sentence
    return f"{sentence} {say('meaning', 'temperature', value=number(kind.temperature))}"


# What is protected, and what is not

# Beliefs before the release, as probabilities, for which the page states how far they can move
PRIORS = (0.01, 0.1, 0.5)


def protection(privacy: PrivacyStatement, *parts: Section) -> Section:
    r"""What a privacy statement protects, from whom, and how well: how far beliefs can move, and the loss by unit.

    Examples
    --------
    >>> protection(PrivacyStatement("replace_one", 1.0, 1, None, 1.0, None)).tables[0].rows[2]
    ('50\xa0%', '26.9\xa0%', '73.1\xa0%')
    """
    # What stays secret, from whom, and the loss by unit.
    hidden = "hidden" if privacy.neighbors == "add_remove" else "counted"
    secret = say("protection", f"{hidden}_one" if privacy.records_per_person == 1 else hidden)
    facts = [("What stays secret", secret), ("From whom", say("protection", "whom"))]
    units = loss_facts(privacy, privacy.records_per_person, 10 * privacy.records_per_person)
    tables = [Table(("Unit", "ε"), units, "Privacy loss")]

    # How far beliefs can move.
    if math.isfinite(privacy.epsilon):
        facts.append(("How well", say("protection", "well", factor=factor(privacy.epsilon))))
        heads = ("Probability before", "after, at least", "after, at most")
        rows = tuple(_belief(prior, privacy.epsilon) for prior in PRIORS)
        tables.insert(0, Table(heads, rows, "How far a belief about one person can move"))
    elif privacy.concentrated_only:
        facts.append(("How well", say("protection", "concentrated")))
    reading = (say("protection", "reading"),)
    return Section("What is protected", str(privacy), tuple(facts), tuple(tables), parts=parts, notes=reading)


def protection_warnings(privacy: PrivacyStatement) -> tuple[str, ...]:
    """Warnings about privacy that is missing, weak, or without an epsilon."""
    if not privacy.is_private or privacy.concentrated_only:
        return (say("protection", "no_epsilon" if privacy.concentrated_only else "bare"),)
    weak = privacy.weak
    loss = decimal_text(privacy.epsilon)
    return (say("protection", "weak", loss=loss, weak=weak),) if weak else ()


# Largest epsilon whose factor is written as a number
LARGEST_EXPONENT = 20


def factor(epsilon: float) -> str:
    """Factor on the odds of a statement, rounded up.

    Examples
    --------
    >>> factor(1.0), factor(8), factor(30)
    ('2.72', '2,981', 'e^30')
    """
    if epsilon > LARGEST_EXPONENT:
        return f"e^{decimal_text(epsilon)}"
    odds = math.exp(epsilon)
    return f"{math.ceil(100 * odds) / 100:.2f}" if epsilon < 4 else f"{math.ceil(odds):,}"


def _belief(prior: float, epsilon: float) -> tuple[str, str, str]:
    """Bayes' rule with likelihood ratios exp(-epsilon) and exp(epsilon)."""
    log_odds = math.log(prior / (1 - prior))
    reach = min(epsilon, 500.0)  # exp of more is beyond a float
    least = 1 / (1 + math.exp(reach - log_odds))
    most = 1 / (1 + math.exp(-reach - log_odds))
    return percent(prior), percent(round(least, 3)), percent(round(most, 3))


def limits(release: Release) -> Facts:
    """What is not protected or promised: names and sentences."""
    applies = {
        "grouped": release.disjoint,
        "overlapping": release.overlap is not None and not release.disjoint,
        "uneven": release.overlap is None and not release.disjoint,
        "silos": isinstance(release, FederatedRelease),
        "noise": isinstance(release.first.mechanism, PublishedHistogram),
    }
    return tuple((name, text) for key, (name, text) in words()["limits"].items() if applies.get(key, True))


# Variation of coverage

# Probabilities with which a calibration reaches a coverage
SURE = (0.99, 0.95, 0.75, 0.5)

# A function of a level c: a bound on the probability that coverage given the calibration data is below c
Failure = Callable[[float], float]


def variation(failures: Mapping[str, Failure], level: float) -> Section:
    """How coverage varies over calibrations: what each reaches surely, by number of records.

    Examples
    --------
    >>> variation({"1,000": lambda c: c**100}, 0.9).tables[0].rows[0][-2:]
    ('0.9931', '0.0000')
    """
    heads = ("Records", *(f"reached with {percent(p)}" for p in SURE), f"risk of less than {percent(level)}")
    rows = tuple(
        (name, *(f"{level_reached(below, 1 - p):.4f}" for p in SURE), f"{below(level):.4f}")
        for name, below in failures.items()
    )
    table = Table(heads, rows, "Coverage that a calibration reaches, at least")
    note = say("variation", "note", level=percent(level))
    return Section("How coverage varies", say("variation", "lead"), tables=(table,), notes=(note,))
