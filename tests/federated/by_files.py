"""Silos that exchange files by the command line."""

from pathlib import Path

import numpy as np

from confide import federated

RULES = ("--coordinator", "public/coordinator.json", "--peers", "public")


class Files:
    """Keys, public files and tables in the working folder.

    Every method runs one command and returns its output. `asked` are options of every plan, `columns` those of every
    table.
    """

    def __init__(self, run, sizes, *, asked=(), columns=("--score-column", "s"), budget=4, keys=None):
        self.run, self.names, self.asked, self.columns, self.budget = run, tuple(sizes), asked, columns, budget
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
        rules = (*RULES, "--budget", self.budget) if rules is None else rules
        own = ("--plan", plan, *self.own(name, "answer"))
        return self.run("federated", "answer", f"{name}.csv", *self.columns, *own, *rules, *options, code=code)

    def own(self, name, made):
        """Return the options with a silo's keys, its ledger and the output file."""
        return ("--keys", f"{name}.key", "--ledger", f"{name}.db", "--out", f"{name}-{made}.json")

    def answers(self, names=None):
        return [f"{name}-answer.json" for name in names or self.names]

    def aggregate(self, *options, names=None, code=0):
        words = ("--plan", "plan.json", "--out", "released.json", "--force", *options)
        return self.run("federated", "aggregate", *self.answers(names), *words, code=code)
