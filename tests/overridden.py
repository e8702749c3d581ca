"""Plans with slopes and a rise that are stated, which no public option offers."""

from dataclasses import replace

import confide
from confide.core import Plan, make_plan


def overridden(alpha, epsilon=None, n=1000, *, slopes=None, rise=None, **options) -> Plan:
    """The plan with these slopes (left, right) and this rise; None leaves the choice to the plan."""
    return make_plan(replace(confide.plan(alpha, epsilon, n, **options).request, slopes=slopes, rise=rise), n)
