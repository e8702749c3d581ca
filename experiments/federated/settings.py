"""Which federations are drawn, and the texts of the page."""

MODELS = ("ridge", "forest", "neural")
SYNTHETIC = ((5, 200), (20, 50), (50, 20), (200, 10))
LARGE = ((5, 200), (100, 20))
SMALL = ((5, 70), (20, 17))


def shapes_for(records: int) -> tuple[tuple[int, int], ...]:
    """Few large silos and many small ones, leaving at least a third of the records to test on."""
    spare = 2 * records // 3
    few, many = (5, min(200, spare // 5)), (min(100, spare // 20), 20)
    if few[1] < 10 or many[0] < 5:
        raise SystemExit("the CSV has too few records; a few hundred are needed after training")
    return few, many


HEAD = """# One-shot federated calibration: experiments

Written by `python -m experiments.federated`. alpha = 0.1. Every draw puts new records into m silos of n; all methods
see the same silos; coverage is measured on records that took no part. `centralised` pools all scores, `fedcp-avg`
averages quantiles (no guarantee), `fedcp-qq` and `fedcp2-qq` are the published methods (without and with privacy),
`private-qq` is ours. Scores are those of conformalized quantile regression; private methods choose among 100 public
candidates taken from reference records. A width is the mean length of the intervals over draws with a finite threshold.
These draws use the exact laws of the mechanisms with a seeded generator; a release draws its noise from OpenDP.

## The figures of the publication

*One-shot federated conformal prediction* (arXiv 2302.06322) has Figures 1 to 18. Their captions state (m, n) as
(100, 10) and (10, 100) for bio and bike, (80, 10) and (10, 80) or (40, 10) and (10, 40) for concrete. The pictures here
take other settings of the same two regimes, for one fixed training set instead of 20 splits, and regressors of the same
kinds but not the same: they repeat what is said there, not its numbers. `--m 100 --n 10 --out FOLDER` draws the settings
of the captions, or any other. Two of the five data sets are not in the data folder; the command takes them as they are. A
picture here shows coverage and width of all methods, private
ones included, for one regressor, data set and regime, over 100 draws.

| study | setting | here | command |
|---|---|---|---|
| synthetic data, CQR with quantile forests | (m, n) from (5, 200) to (200, 10) | `synthetic_quantile_forest_*.png` | `python -m experiments.federated` |
| bio, m << n | ridge, random forest, neural network | `CASP_{ridge,forest,neural}_m5_n200.png` | the same |
| bio, m >> n | the same | `CASP_*_m100_n20.png` | the same |
| bike, m << n | the same | `bike_train_*_m5_n200.png` | the same |
| bike, m >> n | the same | `bike_train_*_m100_n20.png` | the same |
| concrete, m << n | the same | `Concrete_Data_*_m5_n70.png` | the same |
| concrete, m >> n | the same | `Concrete_Data_*_m20_n17.png` | the same |
| star, both regimes | the same | the same two pictures, in your folder | `python -m experiments.federated --csv FILE --target COLUMN --model MODEL --out FOLDER` |
| community, both regimes | the same | the same two pictures, in your folder | the same |
| private | m = 5, n = 200, B = 100, epsilon 10, 5, 1 | every `*_m5_n200.png`, the table below, `exact.png` on the right | `python -m experiments.federated` |
| coverage M(l, k) and Theorem 3.3 | exact, nothing drawn | `exact.png` | the same |

Beyond the publication: four real hospitals, [hospitals.md](hospitals.md), `python -m experiments.federated.hospitals`; and
93 education authorities as they are, [chem97.md](chem97.md), by `--csv FILE --target COLUMN --silo COLUMN`, as for any CSV
with a column that names the silo of each record.
"""

OWN = """# One-shot federated calibration on a CSV

Written by `python -m experiments.federated --csv`. alpha = 0.1; the methods are explained in docs/federated.md.
"""
