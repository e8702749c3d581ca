"""Small federations in one process, or by commands that exchange files."""

import base64
import json
import os
import warnings
from pathlib import Path

import numpy as np

from confide import federated
from confide.candidates import Candidates
from tests.killed import arm


def content_of(text):
    """Return the content of a signed message, which is not checked."""
    return json.loads(base64.b64decode(json.loads(text)["payload"]))


def altered(text, **changes):
    """Return a message with another content and the old signature."""
    payload = json.dumps(content_of(text) | changes, separators=(",", ":"), ensure_ascii=False).encode()
    return json.dumps(json.loads(text) | {"payload": base64.b64encode(payload).decode()})


class Federation:
    """Silos with keys, scores, policies and states in a folder."""

    @classmethod
    def uniform(cls, folder, *sizes, seed=0, **options):
        """Create silos of these sizes with uniform scores."""
        rng = np.random.default_rng(seed)
        return cls(folder, [rng.random(n) for n in sizes], **options)

    def __init__(self, folder, scores, *, secret=False, budget=10.0, names=None):
        self.scores = [np.asarray(s) for s in scores]
        self.coordinator = federated.SiloKeys.generate("coordinator")
        self.keys = [federated.SiloKeys.generate(name) for name in names or (f"silo {i}" for i in range(len(scores)))]
        self.silos = [k.public(None if secret else len(s)) for k, s in zip(self.keys, self.scores, strict=True)]
        peers = {silo.name: silo.identity for silo in self.silos}
        signer = self.coordinator.public().signing
        self.policy = federated.Policy(signer, budget, budget, methods=federated.METHODS, peers=peers)
        self.renewed(folder)

    def renewed(self, folder):
        """Return the same silos with new ledgers in a folder."""
        self.ledgers = [federated.SiloLedger(folder / f"{i}.db") for i in range(len(self.keys))]
        return self

    def plan(self, alpha=0.1, epsilon=2.0, **options):
        options.setdefault("candidates", Candidates.unit(51))
        options.setdefault("method", "private-qq")
        return federated.plan(self.silos, alpha, epsilon, **options).sign(self.coordinator)

    def answer(self, i, plan, **options):
        return federated.answer(plan, self.scores[i], self.keys[i], self.policy, self.ledgers[i], **options)

    def answers(self, plan, who=None):
        return [self.answer(i, plan) for i in (range(len(self.keys)) if who is None else who)]


def kth_reply(replies, k, candidates):
    """Return the index of the k-th smallest reply, or that of +inf if there are fewer than k."""
    return sorted(replies)[k - 1] if k <= len(replies) else candidates - 1


def forked(work):
    """Run the work in a child process and return its pid; the exit code is 0 if the work was done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forking with other threads; the child ends soon
        child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


# Each step of a charged answer: a function, and whether to die before or after its call.
CHARGED, KEPT = "confide.ledger.ledger.Ledger.charge_all", "confide.ledger.ledger.Ledger.attach_all"
PAID_STEPS = {
    "before the charge": (CHARGED, "before"),
    "charge written, not committed": ("confide.ledger.rows.Connection.add:charge", "after"),
    "charge on disk": (CHARGED, "after"),
    "made, not kept": (KEPT, "before"),
    "written, not committed": ("confide.ledger.rows.Connection.add:release", "after"),
    "kept, not returned": (KEPT, "after"),
}


def killed(step, work):
    """Run the work in a child process that is killed with SIGKILL before or after a step."""

    def armed_work():
        arm(*step)
        work()

    assert os.WIFSIGNALED(os.waitpid(forked(armed_work), 0)[1])


RULES = ("--coordinator", "public/coordinator.json", "--peers", "public")


class Files:
    """Keys, public files and tables in the working folder.

    Every method runs one command and returns its output. `asked` are options of every plan.
    """

    def __init__(self, run, sizes, *, asked=(), keys=None):
        self.run, self.names, self.asked = run, tuple(sizes), asked
        self.keys = keys or {name: federated.SiloKeys.generate(name) for name in (*sizes, "coordinator")}
        Path("public").mkdir()
        rng = np.random.default_rng(0)
        for name, own in self.keys.items():
            own.save(f"{name}.key")
            Path("public", f"{name}.json").write_text(own.public(sizes.get(name)).to_json())
        for name, size in sizes.items():
            Path(f"{name}.csv").write_text("s\n" + "\n".join(map(str, rng.random(size))) + "\n")

    def plan(self, *options, silos="public", out="plan.json", code=0):
        words = ("--silo", silos, "--keys", "coordinator.key", *self.asked, "--out", out, *options)
        return self.run("federated", "plan", *words, code=code)

    def answer(self, name, *options, rules=None, plan="plan.json", code=0):
        rules = (*RULES, "--budget", 4) if rules is None else rules
        own = ("--plan", plan, "--keys", f"{name}.key", "--ledger", f"{name}.db", "--out", f"{name}-answer.json")
        words = (f"{name}.csv", "--score-column", "s", *own, *rules, *options)
        return self.run("federated", "answer", *words, code=code)

    def answers(self):
        return [f"{name}-answer.json" for name in self.names]

    def aggregate(self):
        return self.run("federated", "aggregate", *self.answers(), "--plan", "plan.json", "--out", "released.json")
