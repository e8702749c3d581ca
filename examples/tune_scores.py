"""`python -m examples.tune_scores`: the parameters of RAPS and a temperature, from records that do not calibrate.

A score must be a function of one record and of public information. Parameters that were fitted to the calibration
records depend on all of them: the threshold is then no longer protected by its epsilon, and calibration and new records
are no longer exchangeable. The tuning records themselves have no protection, so use public ones.
"""

import math
import warnings

import numpy as np

import confide
from confide.demo import digits

PENALTIES, K_REGS = (0.0, 0.001, 0.01, 0.1, 0.2, 0.5), (1, 2, 5)


def tuned_raps(p, y, alpha):
    """The RAPS score with the smallest non-private sets on tuning records (Angelopoulos et al., ICLR 2021, E)."""
    sizes, u = {}, confide.ExperimentalUniforms(0)
    for penalty in PENALTIES:
        for k_reg in K_REGS:
            name = f"raps(penalty={penalty:g},k_reg={k_reg})"
            scores = confide.raps_score(p, y, penalty=penalty, k_reg=k_reg, u=u)
            released = confide.calibrate(scores, alpha, score=name, mechanism="none", neighbors="replace_one")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", confide.CoverageWarning)  # a set may be empty without privacy
                sizes[name] = confide.predict_set(p, released, u=u).sizes.mean()
    return min(sizes, key=sizes.get)


def tuned_temperature(p, y):
    """The temperature of least log loss (Guo et al., ICML 2017): above 1 if the model is over-confident."""
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    logs = np.log(np.maximum(np.asarray(p, dtype=np.float64), 1e-300))

    def loss(log_temperature):
        z = logs / math.exp(log_temperature)
        return np.mean(logsumexp(z, axis=1) - z[np.arange(len(y)), y])

    found = minimize_scalar(loss, bounds=(math.log(0.01), math.log(100)), method="bounded")
    return float(f"{math.exp(found.x):.3g}")


def main() -> None:
    """Tune on half of the demonstration's records, and calibrate on the others."""
    data = digits()
    p, y = data.probabilities, data.labels
    tuning = np.arange(len(y)) % 2 == 0
    print("RAPS:", tuned_raps(p[tuning], y[tuning], 0.1))
    temperature = tuned_temperature(p[tuning], y[tuning])
    scores = confide.lac_score(p[~tuning], y[~tuning], temperature=temperature)
    print(confide.calibrate(scores, 0.1, 1.0, score=f"lac(temperature={temperature:g})"))


if __name__ == "__main__":
    main()
