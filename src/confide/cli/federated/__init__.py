"""The commands of a federation, as dataclasses of their options."""

from dataclasses import dataclass
from pathlib import Path

from confide.cli.command import command
from confide.cli.commands import RequestOptions, Scored
from confide.cli.options import ANSWER, FEDERATED_PLAN
from confide.cli.output_options import OptionalOutput, Output

# Silos


@command("federated keygen", "federated.silo:keygen")
class Keygen:
    r"""Create the keys of a silo, and the public file to send to the others.

    Compare the fingerprints by another channel, for example by phone: all
    trust in the files rests on the right public files. `confide show FILE`
    prints the same digits of a file that you received. With --ledger, which
    every silo of a secure sum should use, a copy of the keys cannot answer a
    plan a second time.

    Example:

      confide federated keygen north --keys north.key \
        --public north.json --size 300 --ledger north.db
    """

    name: str
    keys: Path
    public: Path
    size: int | None = None
    ledger: str | None = None


@command("federated public", "federated.silo:public")
class Public:
    r"""Issue a new public file, with the same keys and another size or ledger.

    The fingerprint stays the same, and needs no new comparison: the size is
    signed by the key that the fingerprint covers. A ledger named before stays
    named; --ledger is also written into the key file.

    Example:

      confide federated public --keys north.key --size 301 \
        --ledger north.db --out north.json --force
    """

    keys: Path
    size: int | None = None
    ledger: str | None = None
    output: Output


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """The options of a policy, except coordinator and budget."""

    peers: tuple[Path, ...] = ()
    methods: tuple[str, ...] = ()
    least_colluding: int | None = None


@command("federated policy", "federated.silo:policy")
class WritePolicy:
    r"""Write the policy of this silo: coordinator, budget, methods, other silos.

    The policy contains the identities of the coordinator and of the other
    silos. Compare the printed fingerprints by another channel first. Use the
    file with `answer --policy`, and in Python with Policy.load.

    Example:

      confide federated policy --coordinator coordinator.json --peers public/ \
        --budget 4 --per-plan 2 --least-colluding 2 --out policy.json
    """

    coordinator: Path
    budget: float
    per_plan: float | None = None
    agreed: Agreed
    output: Output


# The coordinator


@command("federated plan", "federated.coordinator:plan", FEDERATED_PLAN)
class Plan(RequestOptions):
    r"""Plan a federated calibration before any data are read.

    The request is that of `confide calibrate`, and so is its --request file.
    States the guaranteed coverage for every number of answers. Without
    --method it selects the method that suits the silos' sizes, as --compare
    recommends. --classes lists the classes that every silo must have. Each
    silo answers several levels, such as --alpha 0.2,0.1, or --groups,
    --set by_class=true or --score cqr_sides with one file, for one charge.

    Example:

      confide federated plan --silo north.json --silo south.json \
        --keys coordinator.key --alpha 0.1 --epsilon 1 --out plan.json
    """

    silos: tuple[Path, ...]
    keys: Path
    method: str | None = None
    dropouts: int | None = None
    liars: int | None = None
    missing: bool = False
    colluding: int | None = None
    n_typical: int | None = None
    closes: str | None = None
    compare: bool = False
    pilot: str | None = None
    table: str | None = None
    output: OptionalOutput


@command("federated answer", "federated.silo:answer", ANSWER)
class Answer(Scored):
    r"""Answer a plan from this silo's records: one small signed file.

    The privacy loss is charged in this silo's own budget ledger before the
    records are used. A plan beyond the ledger's limit or the budget raises an
    error. If you repeat the command, it writes the same answer again, at no
    cost. Before, `confide show plan.json` prints the plan's request and the
    fingerprints.

    Example:

      confide federated answer records.csv --score-column s --plan plan.json \
        --keys north.key --coordinator coordinator.json \
        --ledger north.db --budget 4 --out north-answer.json
    """

    file: str
    table: str | None = None
    plan: Path
    keys: Path
    policy: Path | None = None
    coordinator: Path | None = None
    budget: float | None = None
    agreed: Agreed
    ledger: str
    dataset: str = "calibration records"
    output: Output


@command("federated aggregate", "federated.coordinator:aggregate")
class Aggregate:
    r"""Compute the release from the answers; use it with `confide predict`.

    Example:

      confide federated aggregate north-answer.json south-answer.json \
        --plan plan.json --keys coordinator.key --out released.json
    """

    answers: tuple[Path, ...]
    plan: Path
    output: Output
    keys: Path | None = None
    drop_refused: bool = False


@command("federated own", "federated.silo:own")
class Own:
    r"""Compute a release of one silo from the common round, at no cost.

    Its threshold is the larger of the common threshold and the silo's answer.
    It covers new records of this silo as stated, whatever the other silos are
    like. No records are read and nothing is charged, because both files were
    released already. It is not possible for sums, which reveal nothing about
    one silo; see `calibrate`. With several thresholds, --of selects one.

    Example:

      confide federated own north-answer.json \
        --calibration released.json --out north-own.json
    """

    answer: Path
    release: Path
    of: str | None = None
    output: Output
