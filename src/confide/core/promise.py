"""What a mechanism promises, to its maker and to every reader of a release: its guarantee and its privacy loss."""

import math
from dataclasses import replace
from fractions import Fraction

from confide.core.terms import Terms
from confide.guarantee import Guarantee, RecordCount
from confide.mechanisms import (
    Mechanism,
    NoisySize,
    PrivacyStatement,
    StatedPrivacy,
    certify,
    privacy_statement,
    size_zcdp,
    with_choice,
)
from confide.selection import zcdp_of_range
from confide.support import float_above


def promised(
    terms: Terms, n: int, m: int, mechanism: Mechanism | None, size: NoisySize | None = None
) -> tuple[Guarantee, PrivacyStatement]:
    """The guarantee and the privacy loss of a mechanism over m candidates: the same for its maker and every reader.

    `n` is the number of records if it is public; else it is not used.
    """
    # The guarantee: on average over the noisy number, or certified for every n. Without a mechanism +inf is certain.
    if terms.sized and size is not None:
        is_served = mechanism is None or mechanism.serves(terms.level, m, size.counted, size.scale)
        coverage = float(terms.level) if is_served else 0.0
        guarantee = Guarantee("marginal", coverage, delta=None, n=None, n_min=1, sized=True)
    else:
        guarantee = certified_guarantee(terms, n, m, mechanism)

    # The privacy loss: what the maker of counts states, or what is proved.
    if terms.noise is not None:
        loss = None if math.isinf(terms.epsilon) else terms.epsilon
        return guarantee, StatedPrivacy.of(terms.noise, n if terms.public_n else None, loss, terms.size_scale)
    if terms.population is not None:
        guarantee = replace(guarantee, population=str(terms.population))
    if mechanism is None and size is not None:  # a noisy number decides whether there is a mechanism
        return guarantee, sized_privacy(terms)
    of_threshold = privacy_statement(mechanism, terms.neighbors, terms.records_per_person, terms.size_scale)
    return guarantee, with_choice(of_threshold, terms.choice)


def certified_guarantee(terms: Terms, n: int, m: int, mechanism: Mechanism | None) -> Guarantee:
    """The guarantee that a certificate gives a mechanism over m candidates, for a public n, or for every secret one."""
    records = RecordCount(n) if terms.public_n else RecordCount(terms.n_min, public=False)
    return certify(mechanism, terms.alpha, m, records, terms.delta)


def sized_privacy(terms: Terms) -> PrivacyStatement:
    """The privacy loss of a release with a noisy number of records: an upper bound over all designs."""
    # The losses of one record by the selection and by the noisy number, and the zCDP loss of a person by both.
    assert terms.size_scale is not None
    records = terms.records_per_person
    selection = Fraction(terms.per_record)
    number = 1 / Fraction(terms.size_scale)
    slopes = terms.mechanism == "slopes"
    ranges = records * selection * (1 if slopes else 2)
    rho = float_above(Fraction(zcdp_of_range(ranges)) + size_zcdp(terms.size_scale, records))

    # A replaced record. Theorem P1: the ratio of both losses is at most 1/max(rate, 1 - rate); with delta the rate is
    # at least the level. A record of another weight, or in another bin, is one that is removed and one that is added.
    # None of these changes the number of records.
    ratio = 1 / max(terms.rate, 1 - terms.rate) if terms.moves else min(Fraction(2), 1 / terms.level)
    replaced = selection * (2 if not slopes or terms.population is not None else ratio)
    of_threshold = PrivacyStatement(
        terms.neighbors,
        terms.epsilon,
        records,
        add_remove=float_above(selection + number),
        replace_one=float_above(replaced),
        rho=rho,
    )
    return with_choice(of_threshold, terms.choice)
