"""Which federations are drawn, and the texts of the page."""

from benchmarks.small import small

MODELS = ("ridge", "forest", "neural")
_FEW = ((2, 40),)
SYNTHETIC = small(((5, 200), (20, 50), (50, 20), (200, 10)), _FEW)
LARGE = small(((5, 200), (100, 20)), _FEW)
SMALL = small(((5, 70), (20, 17)), _FEW)


def shapes_for(records: int) -> tuple[tuple[int, int], ...]:
    """Few large silos and many small ones, leaving at least a third of the records to test on."""
    spare = 2 * records // 3
    few, many = (5, min(200, spare // 5)), (min(100, spare // 20), 20)
    if few[1] < 10 or many[0] < 5:
        raise SystemExit("the CSV has too few records; a few hundred are needed after training")
    return few, many


HEAD = """# One-shot federated calibration: experiments

Written by `python -m experiments.federated`. alpha = 0.1. Every draw deals new records to m silos of n. All methods use
the same silos. Coverage is measured on other records. The methods are:

- `centralised` pools all scores; `fedcp-avg` averages quantiles and has no guarantee;
- `fedcp-qq` and `fedcp2-qq` are the published methods, without and with privacy;
- `private-qq` is ours.

Scores are those of conformalized quantile regression. Private methods choose among 100 public candidates, which come
from reference records. A width is the mean length of the intervals over draws with a finite threshold. The draws use
the exact laws of the mechanisms with a seeded generator; a release draws its noise from OpenDP.

## Settings of the paper and our own

The figures of *One-shot federated conformal prediction* (arXiv 2302.06322) at its settings, by number, compared with the
authors' values: [paper.md](paper.md) (Figures 1, 2, 3, 5, 6, 7, 16, 17) and [paper-full.md](paper-full.md) (4, 8 to 15,
18).

The studies on this page are **further ones, at our own settings**: other (m, n), one fixed training set of at most 2000
records instead of 20 splits, public candidates instead of bins up to the largest score, and these regressors:

| name | here | in the paper |
|---|---|---|
| synthetic, quantile forest | a quantile regression forest of 100 trees, levels 0.05 and 0.95 | one of 1000 trees, levels by cross-validation |
| ridge | ridge regression with fixed penalty; interval ends are its mean plus the 0.05 and 0.95 quantiles of cross-validated residuals | penalty by cross-validation, absolute residuals |
| forest | a random forest, and a second one of its absolute residuals as a local scale: no quantile forest | a quantile regression forest |
| neural | a quantile network, 60 epochs, levels 0.05 and 0.95 | that of Romano et al., 1000 epochs with early stopping |

`exact.png` is computed without drawing. It shows M(l\\*, k\\*) for n up to 1000, Theorem 3.3 compared with the exact
value, and the degree of compensation at m = 5, n = 200. `python -m experiments.federated --csv FILE --target COLUMN
--model MODEL --out FOLDER` makes the same studies of your own file; `--m` and `--n` choose the silos.

Not in the paper: four real hospitals, [hospitals.md](hospitals.md), `python -m experiments.federated.hospitals`; and 93
education authorities as they are, [chem97.md](chem97.md), by `--csv FILE --target COLUMN --silo COLUMN`. This works for
any CSV with a column that names the silo of each record.
"""

STUDIES = "One row per study and method. The pictures below show the same studies."

OWN = """# One-shot federated calibration on a CSV

Written by `python -m experiments.federated --csv`. alpha = 0.1; the methods are explained in docs/federated.md.
"""
