"""The same model with MAPIE and with confide: three lines make its prediction sets private.

Run it from anywhere: `python examples/from_mapie.py`. Without MAPIE it prints the private sets alone.
"""

from importlib.util import find_spec

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.utils import shuffle

import confide

X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
X_cal, y_cal, X_new, y_new = X[200:1000], y[200:1000], X[1000:], y[1000:]
model = LogisticRegression(max_iter=2000, C=0.001).fit(X[:200], y[:200])


def show(name: str, mask: np.ndarray) -> None:
    """Print coverage and mean size of sets, given as a mask of shape (n, classes)."""
    covered = mask[np.arange(len(y_new)), y_new].mean()
    print(f"{name}: coverage {covered:.3f}, {mask.sum(axis=1).mean():.2f} labels per set")


# MAPIE. The fitted object contains the scores of the calibration records: do not publish it.
if find_spec("mapie") is None:
    print("MAPIE is not installed")
else:
    from mapie.classification import SplitConformalClassifier

    fitted = SplitConformalClassifier(estimator=model, confidence_level=0.9, conformity_score="lac", prefit=True)
    fitted.conformalize(X_cal, y_cal)
    show("MAPIE", fitted.predict_set(X_new)[1][:, :, 0])

# confide. The release is one threshold, which may be published within its privacy loss.
scores = confide.lac_score(model.predict_proba(X_cal), y_cal)
released = confide.calibrate(scores, alpha=0.1, epsilon=1.0, score="lac", classes=[*range(10)])
sets = confide.predict_set(model.predict_proba(X_new), released)
show("confide", sets.mask)
print(released.privacy)
