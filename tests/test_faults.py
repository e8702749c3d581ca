"""Faults that would break a promise of privacy, of coverage or of accounting, and the tests that notice them.

Each is put into the library in memory, and its test has to fail. A test that is renamed is looked for in vain, and a
function that is renamed cannot be replaced: both show here.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from confide.ledger import Group
from tests.builders import slow
from tests.fault_injection import Fault, always, arguments, result, unnoticed

PRIVACY, SELECTOR = "mechanisms/test_privacy_exact.py", "selection/test_selector.py"
COVERAGE, CERTIFICATE = "guarantee/test_coverage_exact.py", "guarantee/test_certificate.py"
COMPETITORS, RISING = "guarantee/test_certificate.py", "guarantee/test_coverage_exact.py"
TWO_SIDED = "guarantee/test_two_sided.py"
CHARGING, SAME = (f"ledger/test_{name}.py" for name in ("charging", "same_data"))
COMPOSITION, RESTORED = "ledger/test_composition.py", "ledger/test_files.py"
SESSIONS = "federated/test_sessions.py"
IDENTITIES, PROTOCOL = "federated/test_identities.py", "federated/test_protocol.py"


def drawn_once(select: Any) -> Any:
    kept: dict[Any, int] = {}
    return lambda u, *how: kept.setdefault((u.tobytes(), how), select(u, *how))


def same_noise(noisy_counts: Any) -> Any:
    return lambda counts, scale: counts + noisy_counts(np.zeros(1, np.int64), scale)[0]


def one_rank_less(utilities: Any) -> Any:
    return lambda self, counts: utilities(replace(self, offset=self.offset - 1), counts)


NOISE = [
    Fault(
        "every selection has half of its noise",
        "confide.selection.draws:noisy_max",
        arguments(lambda scale: (scale / 2,)),
        f"{SELECTOR}::test_installed_sampler_matches_exact_law",
    ),
    Fault(
        "the scale is chosen for half of the distance",
        "confide.support:scale_for",
        arguments(lambda distance, epsilon: (distance / 2, epsilon)),
        f"{SELECTOR}::test_scale_is_the_smallest_that_keeps_the_loss",
    ),
    Fault(
        "noise is drawn once and used again",
        "confide.selection.draws:select",
        drawn_once,
        f"{PRIVACY}::test_whole_mechanism_matches_exact_law",
    ),
    Fault(
        "all counts get one noise",
        "confide.selection.draws:noisy_counts",
        same_noise,
        "mechanisms/test_noisy_histogram.py::test_installed_noise_matches_its_law",
    ),
    Fault(
        "counts get half of their noise",
        "confide.selection.draws:laplace",
        arguments(lambda scale: (scale / 2,)),
        "noisy_counts/test_noise.py::test_draws_have_the_law",
    ),
    Fault(
        "zCDP of a range is understated",
        "confide.selection.zcdp:zcdp_of_range",
        result(lambda rho: 0.999 * rho),
        "selection/test_selector.py::test_every_order_of_every_two_point_law",
    ),
    Fault(
        "tails of noise end one value early",
        "confide.noisy_counts:NoiseTail.at_least",
        arguments(lambda tail, t: (tail, t + 1)),
        "noisy_counts/test_noise.py::test_tails_of_weighted_sums_are_summed",
    ),
    Fault(
        "every part of an evaluation gets the whole error",
        "confide.noisy_counts:simultaneous",
        arguments(lambda error, _: (error, 1)),
        "noisy_counts/test_interval.py::test_the_error_of_each_of_many_parts",
    ),
]

PRICES = [
    Fault(
        "a replaced record costs what an added one costs",
        "confide.mechanisms.slopes:Slopes.replace_one",
        lambda _: property(lambda self: self.add_remove),
        "guarantee/test_weighted.py::test_loss_by_enumeration",
    ),
    Fault(
        "a head start that fades costs nothing",
        "confide.mechanisms.slopes:add_remove_range",
        arguments(lambda left, right, rate, unit, fade=0: (left, right, rate, unit, 0)),
        f"{PRIVACY}::test_range_distances_of_a_fading_head_start_are_exact[25-slopes27-rate27]",
    ),
    Fault(
        "heights depend on the counts",
        "confide.mechanisms.slopes:Slopes.utilities",
        lambda right: lambda self, counts: right(self, counts) + self.log_prior_weights(len(counts)) * (counts[0] % 2),
        f"{PRIVACY}::test_rising_weights_cost_nothing",
    ),
    Fault(
        "several thresholds of one group are charged as one",
        "confide.mechanisms.privacy:sequential_composition",
        lambda _: lambda parts: parts[0],
        "core/test_several.py::test_losses_add_up",
    ),
    Fault(
        "a removed record costs half of what it does",
        "confide.mechanisms.pps:PpsOfSecretSize.add_remove",
        result(lambda loss: loss / 2),
        "mechanisms/test_pps_removal.py::test_removing_a_record_costs_half_of_epsilon",
    ),
    Fault(
        "a replaced record changes one count of an evaluation",
        "confide.evaluation.query:CountPrivacy.changes",
        always(1),
        "evaluation/test_private.py::test_loss_equals_statement_by_enumeration[options5-replace_one-1]",
    ),
    Fault(
        "pure epsilon is given the zCDP of a bounded range",
        "confide.ledger.cost:Cost.zcdp",
        result(lambda rho: rho / 4),
        f"{COMPOSITION}::test_every_bound_holds_for_randomized_response",
    ),
    Fault(
        "delta is converted for half of the zCDP",
        "confide.ledger.composition:epsilon_of_zcdp",
        arguments(lambda rho, delta: (rho / 2, delta)),
        f"{COMPOSITION}::test_zcdp_conversion_is_valid_for_the_gaussian_mechanism",
    ),
    Fault(
        "totals are rounded to the nearest number",
        "confide.ledger.decimals:decimal_above",
        lambda _: float,
        f"{COMPOSITION}::test_totals_are_rounded_up_and_what_is_left_down",
    ),
]

PROMISES = [
    Fault(
        "the certificate gains a rank",
        "confide.guarantee.certificate:sharp_coverage",
        lambda right: lambda *a: right(*a) + type(right(*a))(1, 8),
        f"{COVERAGE}::test_public_certificate_never_exceeds_the_exact_minimum",
    ),
    Fault(
        "the rank that is drawn is one too low",
        "confide.mechanisms.slopes:Slopes.utilities",
        one_rank_less,
        f"{COVERAGE}::test_planned_public_mechanism_covers",
    ),
    Fault(
        "the target of a secret number is one rank too low",
        "confide.mechanisms.slopes:Slopes.utilities",
        one_rank_less,
        "mechanisms/test_noisy_size.py"
        "::test_designs_cover_for_every_number_of_records_over_the_noisy_number[0.5-8.0-4-sizes0-1]",
    ),
    Fault(
        "+inf is not the last candidate",
        "confide.candidates.lists:Candidates.values",
        result(lambda values: values[:-1]),
        "test_candidates.py",
    ),
    Fault(
        "ranks are lost to one rival only",
        "confide.guarantee.random_rank:tail",
        arguments(lambda deficit, slope, rivals: (deficit, slope, min(rivals, 1.0))),
        f"{COVERAGE}::test_rank_deficit_is_dominated_by_the_tail",
    ),
    Fault(
        "the sharp loss is a little too small",
        "confide.guarantee.certificate:sharp_losses",
        result(lambda loss: loss - 0.3),
        f"{CERTIFICATE}::test_sharp_loss_bounds_every_spread",
    ),
    Fault(
        "rivals are rounded down",
        "confide.guarantee.random_rank:competitor_ratio",
        result(lambda rivals: rivals * (1 - 1e-9)),
        f"{COMPETITORS}::test_competitor_ratio_is_rounded_up_by_less_than_a_billionth",
    ),
    Fault(
        "heights are not in the certificate",
        "confide.mechanisms.slopes:Slopes.rivals",
        lambda _: lambda self, m: float(m - 1) / 8,
        f"{RISING}::test_rising_certificate_never_exceeds_the_exact_minimum",
    ),
    Fault(
        "the two-sided certificate gains a rank",
        "confide.guarantee.two_sided:two_sided_loss",
        result(lambda lost: lost - 1),
        f"{TWO_SIDED}::test_never_above_the_exact_minimum",
    ),
    Fault(
        "scores at a candidate are counted above it",
        "confide.counting:ScoreHistogram.from_scores",
        lambda right: lambda cls, scores, *how: right(cls, np.nextafter(scores, np.inf), *how),
        "counting/test_histogram.py",
    ),
    Fault(
        "the split is drawn by position",
        "confide.estimators.split:_hash_numbers",
        lambda _: lambda key, n, columns: np.random.default_rng(0).random(n),
        "estimators/test_split.py::test_one_record_does_not_move_others",
    ),
    Fault(
        "random numbers of records come from one seed",
        "confide.arrays.uniforms:fresh_uniforms",
        lambda _: lambda n: np.random.default_rng(0).random(n),
        "arrays/test_uniforms.py::test_two_ordinary_calls_use_different_numbers",
    ),
    Fault(
        "ten records of a person are ten people's bets",
        "confide.watching.e_process:bets",
        lambda right: lambda *how, per_person=1, **named: right(*how, **named),
        "watching/test_e_process.py::test_records_of_one_person_may_be_identical",
    ),
]

ACCOUNTS = [
    Fault(
        "a release is not charged",
        "confide.ledger.payment:Transaction.charge",
        lambda _: lambda self, without=(): dict.fromkeys(self.payment.charges, 32 * "0"),
        f"{CHARGING}::test_the_charge_is_on_disk_before_the_mechanism_runs",
    ),
    Fault(
        "a release is not kept",
        "confide.ledger.payment:Transaction.store",
        always(None),
        f"{CHARGING}::test_identical_requests_cost_once_and_different_ones_do_not",
    ),
    Fault(
        "other data get the earlier release",
        "confide.ledger.decisions:find_same_data",
        lambda _: lambda dataset, entries, seen, key: entries[0],
        f"{SAME}::test_only_the_same_data_get_the_earlier_release",
    ),
    Fault(
        "a limit is not looked at",
        "confide.ledger.decisions:check_limits",
        always(None),
        f"{CHARGING}::test_limit_is_exact_and_says_what_remains",
    ),
    Fault(
        "charges together are bounded one by one",
        "confide.ledger.decisions:check_limits",
        arguments(lambda account, costs, *limits: (account, costs[:1], *limits)),
        f"{CHARGING}::test_charges_together_are_bounded_together",
    ),
    Fault(
        "a bound name takes other data",
        "confide.ledger.decisions:check_binding",
        always(None),
        f"{CHARGING}::test_binding_to_data",
    ),
    Fault(
        "relations of neighbours mix",
        "confide.ledger.decisions:check_relation",
        always(None),
        f"{CHARGING}::test_relations_do_not_mix",
    ),
    Fault(
        "cells of all partitions cost their maximum",
        "confide.ledger.composition:Totals.plus",
        lambda right: lambda self, cost: right(self, replace(cost, group=Group("all", str(self.kinds)))),
        f"{COMPOSITION}::test_partitions_add_up_and_their_cells_do_not",
    ),
    Fault(
        "a ledger that forgot charges is charged",
        "confide.ledger.rows:Connection.heads",
        lambda right: lambda self, place, known: right(self, place, {}),
        f"{RESTORED}::test_a_copy_that_is_put_back_under_an_open_ledger_is_refused",
    ),
    Fault(
        "names that look alike are two data sets",
        "confide.ledger.names:name_key",
        lambda _: lambda name: name,
        "ledger/test_charging.py::test_unicode_forms_and_case_are_one_name",
    ),
]

SILOS = [
    Fault(
        "silos share their noise among one more",
        "confide.federated.protocols.secure_sum:noise_share",
        arguments(lambda size, scale, honest: (size, scale, honest + 1)),
        "federated/test_secure_sum.py::test_honest_shares_add_up_to_discrete_laplace",
    ),
    Fault(
        "no masks are added",
        "confide.federated.protocols.channels:mask",
        lambda _: lambda values, *_, bits=64: values.astype(f"<u{bits // 8}"),
        "federated/test_secure_sum.py::test_masks_cancel_and_hide",
    ),
    Fault(
        "a message is believed with any signature",
        "confide.federated.messages:verify",
        always(None),
        f"{PROTOCOL}::test_silo_refuses_by_name",
    ),
    Fault(
        "a public file is signed by any key",
        "confide.federated.keys:_check_signed",
        always(None),
        f"{IDENTITIES}::test_a_public_file_is_signed_by_the_key_that_it_shows",
    ),
    Fault(
        "keys of low order are taken",
        "confide.federated.keys:_agrees",
        always(True),
        f"{IDENTITIES}::test_keys_of_low_order_are_refused_when_they_are_read",
    ),
    Fault(
        "other peers than the pinned ones are taken",
        "confide.federated.policy:Policy._check_peers",
        always(None),
        f"{IDENTITIES}::test_policies_pin_identities",
    ),
    Fault(
        "a policy compares no cost",
        "confide.federated.policy:Policy._check_cost",
        always(None),
        "federated/test_silo_ledger.py::test_the_policy_allows_what_will_be_charged",
    ),
    Fault(
        "keys remember nothing of a ledger",
        "confide.federated.silo_ledger:update_checkpoint",
        always(None),
        f"{SESSIONS}::test_a_restored_ledger_answers_nothing",
    ),
    Fault(
        "implausible sums are believed",
        "confide.federated.protocols.secure_sum:check_plausible",
        always(None),
        "federated/test_secure_sum.py::test_a_wrong_message_of_a_secure_sum_shows",
    ),
    Fault(
        "the reply that is released is one rank too low",
        "confide.federated.protocols.sorted_replies:SortedReplies.certificate",
        result(lambda found: found._replace(k=found.k - 1)),
        "federated/test_coverage.py::test_every_subset_of_silos_is_covered_as_certified",
    ),
    Fault(
        "versions that derive other mechanisms are not noticed",
        "confide.federated.plan:FederatedPlan.derived",
        lambda _: property(lambda plan: "0" * 64),
        "federated/test_messages.py::test_contents_changed_by_their_owner",
    ),
]


@pytest.mark.parametrize(
    "faults",
    slow([NOISE, PRICES, PROMISES, ACCOUNTS, SILOS]),
    ids=["noise", "prices", "promises", "accounts", "silos"],
)
def test_every_fault_is_noticed(faults: Sequence[Fault]) -> None:
    assert not unnoticed(faults)
