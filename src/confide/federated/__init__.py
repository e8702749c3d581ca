"""One-shot federated calibration: plan, answer and aggregate, independent of any engine.

Each silo sends one small message about its own scores. The coordinator computes one threshold with a coverage
guarantee. The stated privacy loss bounds what any party learns about a patient.

Examples
--------
Three hospitals and a coordinator, here in one process:

>>> import tempfile
>>> import numpy as np
>>> from confide import federated
>>> coordinator = federated.SiloKeys.generate("coordinator")
>>> hospitals = [federated.SiloKeys.generate(name) for name in ("north", "south", "east")]
>>> silos = [keys.public(size=300) for keys in hospitals]
>>> plan = federated.plan(silos, alpha=0.1, epsilon=2.0, method="private-qq", score="lac")
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

from confide.federated.answers import (
    Sending,
    answer,
    distant_replies,
    message_head,
    read_answer,
    read_answers,
    replies,
    replies_of,
)
from confide.federated.certificates import (
    certified_k,
    conditional_coverage_failure,
    coverage_fraction,
    order_statistic_coverage,
    poisson_binomial,
)
from confide.federated.keys import Silo, SiloKeys, fingerprint, roster
from confide.federated.messages import Message, read_time
from confide.federated.own_share import OwnShare, local, own_share
from confide.federated.plan import FederatedPlan, identity_rows, read_plan, roster_number
from confide.federated.planning import Alternative, Comparison, PlanChoices, compare, plan
from confide.federated.policy import DEFAULT_METHODS, Policy
from confide.federated.private_quantiles import best_private_qq
from confide.federated.protocols import METHODS, Promise, ThresholdPlan, published_quantile
from confide.federated.published_ranks import (
    PublishedChoice,
    RankChoice,
    best_published,
    least_above,
    least_of,
    published_at,
    published_correction,
    qq_coverage,
)
from confide.federated.quadrature import expectation
from confide.federated.refusals import CODES, Refusal
from confide.federated.release import FederatedRelease, FederatedThreshold, aggregate
from confide.federated.reply_laws import RandomRankReply, ReplyLaw
from confide.federated.silo_ledger import RECORDS, SiloLedger
from confide.federated.verification import Conditions, Verification, read_signed, sign, verify, verify_signer

__all__ = [
    "Alternative", "Comparison", "Conditions", "FederatedPlan", "FederatedRelease", "OwnShare", "Policy", "Refusal",
    "Silo", "SiloKeys", "SiloLedger", "Verification", "aggregate", "answer", "best_private_qq", "compare",
    "distant_replies", "expectation", "fingerprint", "local", "own_share", "plan", "qq_coverage", "read_answer",
    "read_plan", "read_signed", "replies", "roster", "sign", "verify",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
