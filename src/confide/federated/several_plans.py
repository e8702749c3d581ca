"""Plans of several thresholds under one signature and one session: levels, groups, classes, or sides of an interval.

Every part is a plan. A silo answers all of them by one message, which is charged once with the total loss. Levels and
sides are about the same records, so their losses add up. Groups are disjoint, so their losses compose in parallel. The
levels of `secure-sum` follow from one opened sum, which costs as much as one level.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, Unpack

from confide.core import (
    SIDES,
    By,
    class_list,
    different_levels,
    exact_shares,
    levels_of_sides,
    part_of_failure,
    shares_of_sides,
    typical_of_groups,
    unusual,
)
from confide.errors import InputError
from confide.federated.envelope import PREFIX, Envelope, digest, fields_of, parse, sign_message, verify_message
from confide.federated.keys import Silo, SiloKeys
from confide.federated.plan import AnyPlan, FederatedPlan
from confide.federated.planning import plan
from confide.federated.protocols import Channel, Method
from confide.federated.refusals import Refusal
from confide.federated.release_size import check_length
from confide.federated.terms import AnyPlanChoices
from confide.mechanisms import (
    NEIGHBORS,
    Neighbors,
    PrivacyStatement,
    parallel_composition,
    sequential_composition,
    split_epsilon,
)
from confide.support import Level, check_names, one_of, privacy_loss, shapes

_SEVERAL = "plans"
BY: tuple[By, ...] = ("level", "group", "class", "side")


@dataclass(frozen=True, repr=False)
class SeveralPlans(AnyPlan):
    """Plans that are signed, answered and charged together.

    Build it with `plan_levels`, `plan_groups` or `plan_sides`.

    Parameters
    ----------
    by
        What distinguishes the parts: the miscoverage level, the group of a record, its class, or the side of an
        interval.
    neighbors
        The adjacency under which the total loss is stated.
    parts
        The plan by level, name of a group or class, or score of a side. Levels decrease.
    """

    by: By
    neighbors: Neighbors
    parts: Mapping[Any, FederatedPlan] = field(hash=False)

    silos: tuple[Silo, ...] = field(init=False, compare=False)
    session: str = field(init=False, compare=False)
    method: str = field(init=False, compare=False)
    protocol: Method = field(init=False, compare=False)
    channel: Channel = field(init=False, compare=False)
    coordinator: Silo | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        one_of("by", self.by, BY)
        one_of("neighbors", self.neighbors, NEIGHBORS)
        if not self.parts:
            raise InputError("parts", "must not be empty", got="no plan")
        object.__setattr__(self, "parts", MappingProxyType(dict(self.parts)))
        for name in ("silos", "session", "method", "protocol", "channel", "coordinator"):
            object.__setattr__(self, name, getattr(self.first, name))
        if self.by in ("group", "class"):
            _check_groups(self.parts)
        else:
            _check_same_records(self.by, self.parts, self.neighbors)
        self.channel.check_length(self.first, self.method, self.protocol.candidate_advice, len(self.drawn_plans))

    @property
    def first(self) -> FederatedPlan:
        """The plan of the first part; silos, session and most other fields are the same in all."""
        return next(iter(self.parts.values()))

    @property
    def single_plans(self) -> Sequence[FederatedPlan]:
        """The plans of the parts."""
        return tuple(self.parts.values())

    @property
    def names(self) -> tuple[Any, ...]:
        """The levels, the names of groups or classes, or the scores of both sides."""
        return tuple(self.parts)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about unusual levels or an unusual total failure probability."""
        if self.by in ("group", "class"):
            return self.first.remarks
        failures = [part.delta or 0.0 for part in self.parts.values()]
        return unusual(min(part.alpha for part in self.parts.values()), sum(failures) or None)

    @property
    def rows(self) -> list[tuple[str, str]]:
        """The rows of the first plan, with the request, the total loss and the digest of all parts."""
        rows = {**dict(self.first.rows), "plan": self.digest}
        rows["privacy of an answer"] = str(self.privacy())
        if self.by == "level":
            rows["requested"] = "coverage " + " and ".join(f"{float(1 - level):g}" for level in self.parts)
        elif self.by == "side":
            covered = 1 - sum(part.alpha for part in self.single_plans)
            rows["score"] = " and ".join(self.parts)
            rows["requested"] = f"coverage {float(covered):g} by both sides together"
        else:
            rows["requested"] += f" for each {self.by} of {class_list(tuple(self.parts))}"
        return list(rows.items())

    @property
    def promise_lines(self) -> list[str]:
        """The guarantees by number of answers: for each level or side, or once for all groups."""
        if self.by == "side":
            return [f"{side}, {line}" for side, part in self.parts.items() for line in part.promise_lines]
        if self.by != "level":
            each = "groups" if self.by == "group" else "classes"
            return [f"each of {len(self.parts)} {each}, {line}" for line in self.first.promise_lines]
        return [f"alpha {float(a):g}, {line}" for a, part in self.parts.items() for line in part.promise_lines]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all plans together, which answers state."""
        return digest(self._head() | {"plans": [plan.digest for plan in self._different()]})

    def privacy(self, answered: Collection[int] | None = None) -> PrivacyStatement:
        """The loss of one record, for all parts together."""
        stated = {id(plan): plan.privacy(answered) for plan in self.drawn_plans}
        parts = [stated[id(plan)] for plan in self.drawn_plans]
        if len(parts) == 1 and self.by == "level":
            return parts[0]
        return (
            parallel_composition(parts, self.neighbors)
            if self.by in ("group", "class")
            else sequential_composition(parts)
        )

    def sign(self, coordinator: SiloKeys) -> str:
        """The plans as one signed JSON message. It is read back as every silo will read it.

        Raises
        ------
        InputError
            If silos could not read it.
        """
        signed = [json.loads(plan.sign(coordinator)) for plan in self._different()]
        text = sign_message(_SEVERAL, self._head() | {"plans": signed}, coordinator.signing)
        try:
            SeveralPlans.read(text)
        except Refusal as refusal:
            raise InputError(
                "plans", "must be readable by silos", remedy=f"They would reject the plans: {refusal}"
            ) from None
        check_length(text, self)
        return text

    @classmethod
    def read(cls, text: str) -> tuple["SeveralPlans", Envelope]:
        """Read signed plans; the plans and their envelope with the signer.

        Raises
        ------
        Refusal
            `malformed` or `altered`.
        """
        envelope = verify_message(_SEVERAL, text)
        with fields_of("several plans", envelope.content) as fields:
            by: By = fields.read("by", shapes.choice(*BY))
            neighbors: Neighbors = fields.read("neighbors", shapes.choice(*NEIGHBORS))
            fields.read("plans", shapes.LIST)
            plans = [FederatedPlan.read(one) for one in plan_texts(envelope.content)]
            if any(inner.signer != envelope.signer for _, inner in plans):
                raise Refusal("altered", "a plan is signed with another key than the whole; request the original")
            names: tuple[Any, ...] = tuple(plan.score if by == "side" else plan.alpha for plan, _ in plans)
            if by in ("group", "class"):
                names = check_names("names", fields.read("names", shapes.LIST))
                if len(plans) != 1:
                    raise Refusal("malformed", "one plan must serve all groups; request the original")
                plans *= len(names)
            if len(set(names)) != len(names):
                raise Refusal("malformed", "a level must be planned once; request the original")
            return cls(by, neighbors, {name: plan for name, (plan, _) in zip(names, plans, strict=True)}), envelope

    def _head(self) -> dict[str, Any]:
        names = {"names": list(self.parts)} if self.by in ("group", "class") else {}
        return {"by": self.by, "neighbors": self.neighbors, **names}

    def _different(self) -> Sequence[FederatedPlan]:
        """One for each level or side; the one of all groups."""
        return [self.first] if self.by in ("group", "class") else self.single_plans


def read_plan(text: str) -> tuple[AnyPlan, Envelope]:
    """Read a signed plan of one threshold or of several; the plan and its envelope with the signer.

    Raises
    ------
    Refusal
        `malformed` or `altered`.
    """
    return SeveralPlans.read(text) if is_several(text) else FederatedPlan.read(text)


def is_several(text: str) -> bool:
    """Whether the kind of a text is several plans under one signature."""
    return parse(text, "plan").get("kind") == PREFIX + _SEVERAL


def plan_texts(content: Mapping[str, Any]) -> list[str]:
    """The signed plans inside of several plans, as separate texts."""
    return [json.dumps(plan, indent=1) + "\n" for plan in content["plans"]]


def _check_same_records(by: By, parts: Mapping[Any, FederatedPlan], neighbors: Neighbors) -> None:
    """Check plans of levels or sides, which are about all records of a silo and differ in nothing else."""
    names, first = list(parts), next(iter(parts.values()))
    if by == "side" and (names != list(SIDES) or any(plan.score != side for side, plan in parts.items())):
        raise InputError("parts", f"must be plans of the scores {' and '.join(SIDES)}, in this order")
    levels = names != sorted(names, reverse=True) or any(plan.alpha != level for level, plan in parts.items())
    if by == "level" and levels:
        raise InputError("parts", "must be plans of their levels, which decrease")
    if first.neighbors != neighbors:
        raise InputError("neighbors", f"must be the adjacency under which the plans of the {by}s state their losses")
    of_side = ("score",) if by == "side" else ()
    of_share = () if by == "level" and first.protocol.one_draw else _OF_A_SHARE
    _check_equal_fields(parts, but=("alpha", "targets", *of_share, *of_side))


def _check_groups(parts: Mapping[Any, FederatedPlan]) -> None:
    check_names("names", parts)
    _check_equal_fields(parts, but=())
    plan = next(iter(parts.values()))
    if plan.method != "private-qq":
        raise _needs_sizes_of_groups(plan.method)
    _check_secret_sizes(plan.silos)


def _needs_sizes_of_groups(method: str) -> InputError:
    return InputError(
        "method",
        (
            "must be 'private-qq' for groups and classes: the numbers of records of each stay secret, and the "
            f"certificate of {method!r} needs them"
        ),
    )


def _check_secret_sizes(silos: Iterable[Silo]) -> None:
    if any(silo.size is not None for silo in silos):
        raise InputError(
            "silos",
            "must keep their sizes secret where groups or classes have thresholds of their own",
            remedy="Issue public files without a size: SiloKeys.public(), or confide federated public",
        )


_OF_A_SHARE = ("epsilon", "left", "right", "scale", "rate", "flat", "rise", "published_k")
"""Fields in which plans of several levels may differ, in addition to level and targets."""


def _check_equal_fields(parts: Mapping[Any, FederatedPlan], but: Collection[str]) -> None:
    """Check that plans have the same silos, session, score, candidates and all other fields except `but`."""
    stated = [{name: value for name, value in plan.fields().items() if name not in but} for plan in parts.values()]
    if any(one != stated[0] for one in stated):
        different = sorted({name for one in stated for name in one if one[name] != stated[0].get(name)})
        raise InputError("parts", "must be plans that differ in nothing but their levels", got=f"other {different[0]}")


def plan_levels(
    silos: Sequence[Silo],
    alphas: Sequence[Level],
    epsilon: float,
    *,
    shares: Sequence[Level] | None = None,
    **options: Unpack[AnyPlanChoices],
) -> SeveralPlans:
    """Plan nested thresholds for several levels: one message from each silo, one charge.

    Every silo's reply to a level costs its share of epsilon. With `secure-sum` epsilon is not divided: one opened
    histogram serves all levels, so they cost as much as one level.

    Parameters
    ----------
    silos, **options
        As in `plan`. With shares the default method is `"private-qq"`.
    alphas
        Different miscoverage levels in (0, 1).
    epsilon
        Privacy loss per record, for all levels together.
    shares
        Shares of epsilon in the order of `alphas`, positive and with sum 1; by default equal. Not for `secure-sum`.
    delta
        Failure probability of training-conditional guarantees for all levels at once; each level gets an equal part.

    Raises
    ------
    InputError, InputTypeError
        As `plan` does.

    Examples
    --------
    >>> from confide import Candidates
    >>> from confide.federated import SiloKeys
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=200) for i in range(5)]
    >>> few = Candidates.unit(100)
    >>> plan_levels(silos, [0.2, 0.1], 4.0, candidates=few).privacy().epsilon
    4.0
    >>> both = plan_levels(silos, [0.2, 0.1], 2.0, candidates=few, method="secure-sum")
    >>> both.privacy().epsilon, [part.protocol.scale for part in both.parts.values()]
    (2.0, [1.0, 1.0])
    """
    levels = different_levels(alphas)
    options["delta"] = part_of_failure(options.get("delta"), len(levels))
    if options.get("method") is None:  # a sum of noisy counts has no shares
        divided = shares is not None
        options["method"] = "private-qq" if divided else plan(silos, levels[0], epsilon, **options).method
    if options["method"] == "secure-sum":
        if shares is not None:
            raise InputError("shares", "must be left out for 'secure-sum': one opened histogram serves all levels")
        budgets = [epsilon] * len(levels)
    else:
        budgets = split_epsilon(privacy_loss("epsilon", epsilon), exact_shares(shares, len(levels)))
    asked = [(level, level, budget) for level, budget in zip(levels, budgets, strict=True)]
    return _of_same_records("level", sorted(asked, reverse=True), silos, options)


PartRequest: TypeAlias = tuple[Any, Fraction, float]
"""The name of a part, its miscoverage level and its share of the loss."""


def _of_same_records(
    by: By, asked: Sequence[PartRequest], silos: Sequence[Silo], options: AnyPlanChoices
) -> SeveralPlans:
    """The parts in their order, in one session, with the method and the candidates of the part of least loss."""
    made: dict[Any, FederatedPlan] = {}
    for name, level, budget in sorted(asked, key=lambda one: one[2]):
        if by == "side":
            options["score"] = name
        made[name] = plan(silos, level, budget, **options)
        options |= {"candidates": made[name].candidates, "unit": None, "method": made[name].method}
    first = asked[0][0]
    parts = {name: replace(made[name], session=made[first].session) for name, _, _ in asked}
    return SeveralPlans(by, made[first].neighbors, parts)


def plan_sides(
    silos: Sequence[Silo],
    alpha: Level | tuple[Level, Level],
    epsilon: float,
    *,
    share_low: Level = "0.5",
    **options: Unpack[AnyPlanChoices],
) -> SeveralPlans:
    """Plan a threshold for each side of conformalized quantile regression: one message from each silo, one charge.

    Both sides are about the same records, so their losses add up. The interval covers with probability at least
    1 - alpha by the union bound (Romano, Patterson and Candes, NeurIPS 2019, Theorem 2), as in
    `confide.calibrate_sides`.

    Parameters
    ----------
    silos, **options
        As in `plan`, without a score: it is `cqr_low` for the lower side and `cqr_high` for the upper one. A silo
        answers with the scores of both, by these names.
    alpha
        Miscoverage level of the interval in (0, 1), split in halves, or a pair (lower side, upper side).
    epsilon
        Privacy loss per record, for both sides together.
    share_low
        Share of epsilon for the lower side.
    delta
        Failure probability of a training-conditional guarantee for the interval; each side gets half of it.

    Raises
    ------
    InputError, InputTypeError
        As `plan` does.

    Examples
    --------
    >>> from confide.federated import SiloKeys
    >>> silos = [SiloKeys.generate(f"hospital {i}").public(size=400) for i in range(5)]
    >>> made = plan_sides(silos, 0.2, 4.0, unit=1.0)
    >>> made.privacy().epsilon, list(made.parts)
    (4.0, ['cqr_low', 'cqr_high'])
    """
    if options.get("score") is not None:
        raise InputError("score", f"must be left out for two sides: their scores are {' and '.join(SIDES)}")
    options["delta"] = part_of_failure(options.get("delta"), len(SIDES))
    budgets = split_epsilon(privacy_loss("epsilon", epsilon), shares_of_sides(share_low))
    asked = zip(SIDES, levels_of_sides(alpha), budgets, strict=True)
    return _of_same_records("side", list(asked), silos, options)


def plan_groups(
    silos: Sequence[Silo],
    names: Sequence[str | int],
    alpha: Level,
    epsilon: float,
    *,
    by: Literal["group", "class"] = "group",
    neighbors: Neighbors = "add_remove",
    **options: Unpack[AnyPlanChoices],
) -> SeveralPlans:
    """Plan group- or class-conditional thresholds, one for each group or class: one message, one charge.

    Groups are disjoint, so under `add_remove` every one may cost the whole epsilon. A replaced record can leave one
    group and enter another, so under `replace_one` each costs half of it (docs/theory.md, section 6). The number of
    records of each group in a silo stays secret under both, so the method is `private-qq` and silos have no public
    size. If a group has too few records its threshold is +inf.

    Parameters
    ----------
    silos
        The invited silos, all without a public size.
    names
        All groups, or classes, which must be **public**: taken from a code book, not from the records.
    alpha, epsilon, **options
        As in `plan`. The guarantee holds for each group. `n_min` and `n_typical` are about the records of one group in
        one silo: by default 0, and an equal part of a thousand, at least 150.
    by
        The kind of the thresholds.
    neighbors
        The adjacency of epsilon.

    Raises
    ------
    InputError, InputTypeError
        As `plan` does; also for other methods and for silos with public sizes.

    Examples
    --------
    >>> from confide import Candidates
    >>> from confide.federated import SiloKeys
    >>> silos = [SiloKeys.generate(f"hospital {i}").public() for i in range(5)]
    >>> made = plan_groups(silos, ["women", "men"], 0.1, 2.0, candidates=Candidates.unit(50), n_typical=300)
    >>> made.privacy().epsilon, list(made.parts)
    (2.0, ['women', 'men'])
    """
    known = check_names("names", names)
    one_of("by", by, ("group", "class"))
    one_of("neighbors", neighbors, NEIGHBORS)
    if options.get("method", "private-qq") == "secure-sum":
        raise _needs_sizes_of_groups("secure-sum")
    if by == "class" and options.get("classes") is not None:
        raise InputError("classes", "must be left out with by='class': names are the classes")
    _check_secret_sizes(silos)
    options |= {"method": options.get("method") or "private-qq", "n_min": options.get("n_min", 0)}
    if options.get("n_typical") is None:
        options["n_typical"] = typical_of_groups(len(known), max(options["n_min"], 1))
    part = Fraction(1, 2 if neighbors == "replace_one" else 1)  # a replaced record may change two groups
    (budget,) = split_epsilon(privacy_loss("epsilon", epsilon), [part])
    return SeveralPlans(by, neighbors, dict.fromkeys(known, plan(silos, alpha, budget, **options)))
