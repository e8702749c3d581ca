"""`python -m experiments.federated.paper`: write the tables of the full settings from the available splits."""

from experiments.federated.paper.runs import write_full

if __name__ == "__main__":
    write_full()
