"""Small federations in one process."""

import os
import signal
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from confide import federated
from confide.candidates import Candidates
from confide.federated import silo_ledger


class Federation:
    """Silos with keys, scores, policies and states in a folder."""

    def __init__(self, folder, scores, *, secret=False, budget=10.0, names=None):
        self.scores = [np.asarray(s) for s in scores]
        self.coordinator = federated.SiloKeys.generate("coordinator")
        self.keys = [federated.SiloKeys.generate(name) for name in names or (f"silo {i}" for i in range(len(scores)))]
        self.silos = [k.public(None if secret else len(s)) for k, s in zip(self.keys, self.scores, strict=True)]
        peers = {silo.name: silo.identity for silo in self.silos}
        signer = self.coordinator.public().signing
        self.policy = federated.Policy(signer, budget, budget, methods=federated.METHODS, peers=peers)
        self.ledgers = [federated.SiloLedger(folder / f"{i}.db") for i in range(len(scores))]

    def plan(self, alpha=0.1, epsilon=2.0, **options):
        options.setdefault("candidates", Candidates.unit(51))
        options.setdefault("method", "private-qq")
        return federated.plan(self.silos, alpha, epsilon, **options).sign(self.coordinator)

    def answer(self, i, plan, **options):
        return federated.answer(plan, self.scores[i], self.keys[i], self.policy, self.ledgers[i], **options)

    def answers(self, plan, who=None):
        return [self.answer(i, plan) for i in (range(len(self.keys)) if who is None else who)]


def forked(work):
    """Does the work in a process of its own, whose number it returns; it ends with 0 if the work was done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside other threads: the child ends soon
        child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def killed(name, when, work):
    """Does the work in a process of its own, which is killed with SIGKILL before or after a step."""

    def armed_work():
        original = getattr(silo_ledger.SiloLedger, name)

        def armed(*arguments):
            if when == "after":
                original(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(silo_ledger.SiloLedger, name, armed)
        work()

    assert os.WIFSIGNALED(os.waitpid(forked(armed_work), 0)[1])


def asked_twice_at_once(monkeypatch, federation):
    """The first request has charged and not answered when the second one looks: one message, for one charge."""
    plan = federation.plan()
    charged, found = threading.Event(), threading.Event()
    store, entry = silo_ledger.SiloLedger.store_answer, silo_ledger.SiloLedger._entry

    def wait(self, *arguments):
        charged.set()
        assert found.wait(60)
        store(self, *arguments)

    def look(self, token):
        one = entry(self, token)
        if one is not None and one.release is None:
            found.set()
        return one

    monkeypatch.setattr(silo_ledger.SiloLedger, "store_answer", wait)
    monkeypatch.setattr(silo_ledger.SiloLedger, "_entry", look)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(federation.answer, 0, plan)
        try:
            assert charged.wait(60)
            second = federation.answer(0, plan)
        finally:
            found.set()
    assert second == first.result()
    assert federation.ledgers[0].spent == 2.0
