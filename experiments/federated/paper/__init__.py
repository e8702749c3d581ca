"""The experiments of "One-shot federated conformal prediction" at the paper's settings, numbered as the paper numbers them.

published.py    the authors' values, and their source
data_sets.py    the data sets as the paper uses them: features, sizes, (m, n), figures
regressors.py   ridge, quantile regression forest, quantile network
splits.py       one random split: train, score, store
measure.py      all methods on the same scores
exact.py        Figures 1, 2, 6 and 7
synthetic.py    Figures 3 and 5
pages.py        Figures 4 and 8 to 18: pictures and tables
runs.py         entry points of `nox -s experiments` and `nox -s experiments -- --full`
"""
