"""One-shot federated calibration: plan -> answer -> aggregate, free of any engine.

Each silo sends one small message about its own scores; the coordinator makes one threshold with a coverage guarantee,
and nobody learns more about a patient than the stated privacy loss allows.

Examples
--------
Three hospitals and a coordinator, here in one process:

>>> import tempfile
>>> import numpy as np
>>> from confide import federated
>>> coordinator = federated.SiloKeys.generate("coordinator")
>>> hospitals = [federated.SiloKeys.generate(name) for name in ("north", "south", "east")]
>>> plan = federated.plan([keys.public(size=300) for keys in hospitals], alpha=0.1, epsilon=2.0, score="lac")
>>> text = plan.sign(coordinator)
>>> policy = federated.Policy(coordinator.public().signing, budget=4.0, per_plan=2.0)
>>> rng, folder, answers = np.random.default_rng(0), tempfile.TemporaryDirectory(), []
>>> for keys in hospitals:
...     ledger = federated.SiloLedger(f"{folder.name}/{keys.name}.db")
...     answers.append(federated.answer(text, rng.random(300), keys, policy, ledger))
>>> released = federated.aggregate(text, answers)
>>> released.coverage, released.epsilon, len(released.answered)
(0.9, 2.0, 3)
>>> folder.cleanup()
"""

from confide.federated.aggregate import aggregate
from confide.federated.answer import answer
from confide.federated.answers import read_answer, replies, unlike_replies
from confide.federated.baselines import average_threshold, centralised_threshold
from confide.federated.calibration import FederatedCalibration
from confide.federated.comparison import COMPARABLE, Alternative, compare
from confide.federated.envelope import check_integrity, read_time
from confide.federated.exact_sum import coverage_fraction
from confide.federated.identities import fingerprint, roster
from confide.federated.keys import Silo, SiloKeys
from confide.federated.message_head import MessageHead, RoundHead, message_head, opening_head, part_head
from confide.federated.open_part import open_part
from confide.federated.openings import openings
from confide.federated.order_statistics import conditional_coverage_failure, expectation, order_statistic_coverage
from confide.federated.own_share import OwnShare, own_share
from confide.federated.plan import FederatedPlan
from confide.federated.plan_words import colluders, identity_rows, openers, roster_number
from confide.federated.planning import plan
from confide.federated.poisson_binomial import poisson_binomial
from confide.federated.policy import DEFAULT_METHODS, Policy
from confide.federated.private_quantiles import best_private_qq
from confide.federated.protocols import (
    METHODS,
    DealtVectors,
    OpenedSum,
    Promise,
    PublishedChoice,
    RepliedSum,
    SecureSum,
    best_published,
    published_at,
    published_correction,
    published_quantile,
)
from confide.federated.quantile_of_quantiles import best_qq, best_qq_unequal, published_ranks, qq_coverage
from confide.federated.random_rank_reply import RandomRankReply, ReplyLaw
from confide.federated.refusals import CODES, Refusal
from confide.federated.several_planning import plan_groups, plan_levels
from confide.federated.several_plans import SeveralPlans, read_plan
from confide.federated.several_released import FederatedGroups, FederatedLevels
from confide.federated.shuffling import clones_delta, clones_epsilon, clones_local
from confide.federated.silo_ledger import RECORDS, SiloLedger
from confide.federated.silo_report import SiloReport, coverage_in_silo, own_calibration, shrunk_threshold
from confide.federated.verification import Verification, verify

__all__ = [
    "CODES", "COMPARABLE", "DEFAULT_METHODS", "METHODS", "RECORDS", "Alternative", "DealtVectors",
    "FederatedCalibration", "FederatedGroups", "FederatedLevels", "FederatedPlan", "MessageHead", "OpenedSum",
    "OwnShare", "Policy", "Promise", "PublishedChoice", "RandomRankReply", "Refusal", "RepliedSum", "ReplyLaw",
    "RoundHead", "SecureSum", "SeveralPlans", "Silo", "SiloKeys", "SiloLedger", "SiloReport", "Verification",
    "aggregate", "answer", "average_threshold", "best_private_qq", "best_published", "best_qq", "best_qq_unequal",
    "centralised_threshold", "check_integrity", "clones_delta", "clones_epsilon", "clones_local", "colluders",
    "compare", "conditional_coverage_failure", "coverage_fraction", "coverage_in_silo", "expectation",
    "fingerprint", "identity_rows", "message_head", "open_part", "openers", "opening_head", "openings",
    "order_statistic_coverage", "own_calibration", "own_share", "part_head", "plan", "plan_groups", "plan_levels",
    "poisson_binomial", "published_at", "published_correction", "published_quantile", "published_ranks",
    "qq_coverage", "read_answer", "read_plan", "read_time", "replies", "roster", "roster_number",
    "shrunk_threshold", "unlike_replies", "verify",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is to use."""
    return sorted(__all__)
