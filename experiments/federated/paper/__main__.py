"""`python -m experiments.federated.paper`: write the page of the full settings from the available splits."""

from experiments.federated.paper.runs import write_page

if __name__ == "__main__":
    write_page()
