"""Facts about mechanisms and privacy losses, as names and values: the same in `confide show`, on pages and in cards."""

import math
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

from confide.guarantee import Guarantee
from confide.mechanisms.fields import mechanism_fields
from confide.mechanisms.interface import Mechanism
from confide.mechanisms.noisy_histogram import NoisyHistogram
from confide.mechanisms.privacy import NEIGHBORS, PrivacyStatement
from confide.mechanisms.published_counts import PublishedHistogram
from confide.mechanisms.slopes import Slopes
from confide.support import Facts, decimal_text

# The mechanism


def mechanism_facts(mechanism: Mechanism | None, m: int) -> Facts:
    """The mechanism and its parameters, for m candidates; None stands for +inf without reading the data."""
    if mechanism is None:
        return (("mechanism", "none: +inf was returned without reading the data"),)
    # The default and a noisy histogram in words; others by the names of their fields.
    if isinstance(mechanism, Slopes):
        return _slopes(mechanism, m)
    if isinstance(mechanism, NoisyHistogram):
        return (
            (
                "mechanism",
                "a noisy histogram, and the first candidate from which on few enough records lie beyond each",
            ),
            ("noise in each bin", f"discrete Laplace of scale {mechanism.scale:.17g} (OpenDP)"),
            ("noisy records beyond the threshold", f"at most {mechanism.beyond:,}"),
        )
    stated = {name: str(value) for name, value in mechanism_fields(mechanism).items()}
    noise = (("noise", str(mechanism.noise)),) if isinstance(mechanism, PublishedHistogram) else ()
    return (("mechanism", stated.pop("name")), *noise, *stated.items())


def _slopes(mechanism: Slopes, m: int) -> Facts:
    grows = "" if mechanism.rate == 0 else f"{mechanism.rate} (n + 1) + "
    weighs = mechanism.weight
    largest = (
        () if weighs is None else (("largest weight", f"{weighs:,} steps; ranks and n are weights, divided by it"),)
    )
    return (
        ("mechanism", "slopes on both sides of a target rank"),
        *largest,
        ("target rank", f"{grows}{_decimal(mechanism.offset)}"),
        ("slopes per rank, below and above it", f"{mechanism.slope_left:.6g} and {mechanism.slope_right:.6g}"),
        ("rise of the prior weights", _rise(mechanism, m)),
        *((("prior bonus of +inf", _head_start(mechanism)),) if mechanism.head_start else ()),
        ("drawn by", f"the exponential mechanism, noise scale {mechanism.scale:.17g} (OpenDP)"),
    )


def _decimal(exact: Fraction) -> str:
    """A fraction as a decimal number if that is exact."""
    text = f"{float(exact):.15g}"
    return text if Fraction(text) == exact else str(exact)


def _rise(mechanism: Slopes, m: int) -> str:
    if not mechanism.rise:
        return "none: all candidates have equal prior odds"
    return (
        f"the first {float(mechanism.flat):,.6g} of {m:,} candidates have equal prior odds; from there on the prior "
        f"log-odds increase evenly, by {mechanism.total_rise:.4g} in all. So the many candidates below the target have "
        "a small total weight, and the promise costs few ranks"
    )


def _head_start(mechanism: Slopes) -> str:
    if not mechanism.fade:
        return f"{mechanism.head_start_ranks:.6g} ranks"
    return (
        f"{mechanism.head_start_ranks:.6g} ranks without records; it decreases by {mechanism.fade_ranks:.4g} with each "
        f"record{' of the largest weight' if mechanism.weight else ''}, because only few records need it"
    )


def proof_of(mechanism: Mechanism | None, guarantee: Guarantee, *, shifted: bool) -> str:
    """The page of the documentation that proves a guarantee, and its theorem; `shifted` for another population."""
    if guarantee.kind == "none":
        return "no theorem: this mechanism has no certificate"
    if mechanism is None:
        return "+inf covers everything"
    # By the mechanism, and for slopes by the type of guarantee.
    if isinstance(mechanism, PublishedHistogram):
        return "docs/theory-published-counts.md, Theorem E1"
    if isinstance(mechanism, NoisyHistogram):
        return f"docs/theory-one-number.md, Theorem W3{'b' if guarantee.sized else ''}; privacy by docs/methods.md"
    if not isinstance(mechanism, Slopes):
        return "docs/methods.md"
    if guarantee.delta is not None:
        return "docs/theory.md, Theorem C3" if guarantee.n is None else "docs/theory.md, Theorem C1b"
    if shifted:
        return "docs/theory-after-release.md, Theorem A6; privacy by docs/theory.md, Theorem P1, and group privacy"
    theorem = "docs/theory.md, Theorem C2a or docs/theory-one-number.md, Theorem T1a"
    if guarantee.sized:
        theorem = "docs/theory-one-number.md, Theorem H1"
    return f"{theorem}; privacy by docs/theory.md, Theorem P1"


# The privacy loss by unit


def losses(privacy: PrivacyStatement, records: int = 1) -> dict[str, float]:
    """The privacy loss if up to so many records change at once, by the change."""
    return {relation: privacy.loss(relation, records) for relation in NEIGHBORS}


def loss_facts(privacy: PrivacyStatement, *numbers: int) -> Facts:
    """The privacy loss by unit, rounded up: for each of these numbers of records, and for one."""
    rows = []
    for k in sorted({1, *numbers}):
        number, s = ("one", "") if k == 1 else (str(k), "s")
        by_change = losses(privacy, k)
        for change, unit in (("add_remove", "added or removed"), ("replace_one", "replaced")):
            loss = by_change[change]
            text = _unlimited(privacy, change) if math.isinf(loss) else rounded_up(loss)
            rows.append((f"{number} record{s} {unit}", text))
    if privacy.rho is not None and math.isfinite(privacy.rho):
        rows.append(("one person, as zCDP (rho)", rounded_up(privacy.rho)))
    return tuple(rows)


def _unlimited(privacy: PrivacyStatement, change: str) -> str:
    if change == "add_remove" and privacy.neighbors == "replace_one":
        return "unlimited: the number is public"
    return "unlimited: zCDP alone, no epsilon" if privacy.concentrated_only else "unlimited: not private"


def rounded_up(loss: float) -> str:
    """Format a loss with six significant digits, rounded up except for noise in its tenth digit."""
    exact = Decimal(f"{loss:.10g}")
    digits = Decimal(1).scaleb(exact.adjusted() - 5)
    return decimal_text(float((exact / digits).to_integral_value(ROUND_CEILING) * digits), 6)
