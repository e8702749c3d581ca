"""Quantile regressors for CQR scores: each returns lower and upper quantile predictions for new rows."""

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_predict

LOW, HIGH = 0.05, 0.95


def ridge(x, y, x_new):
    """Ridge regression with the quantiles of its cross-validated residuals."""
    model = Ridge(1.0)
    residual = y - cross_val_predict(model, x, y, cv=5)
    center = model.fit(x, y).predict(x_new)
    return center + np.quantile(residual, LOW), center + np.quantile(residual, HIGH)


def forest(x, y, x_new):
    """A random forest with a forest of its absolute residuals as a local scale."""
    model = RandomForestRegressor(100, min_samples_leaf=5, n_jobs=2, random_state=0)
    size = np.abs(y - cross_val_predict(model, x, y, cv=3))
    center = model.fit(x, y).predict(x_new)
    local = RandomForestRegressor(100, min_samples_leaf=20, n_jobs=2, random_state=1).fit(x, size).predict(x_new)
    return center - 2 * local, center + 2 * local


def quantile_forest(x, y, x_new):
    """Quantile regression forest, the regressor of the paper's synthetic study."""
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(100, min_samples_leaf=10, n_jobs=2, random_state=0).fit(x, y)
    found = model.predict(x_new, quantiles=[LOW, HIGH])
    return found[:, 0], found[:, 1]


def neural(x, y, x_new):
    """A small network trained with the pinball loss at both levels."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    center, spread = y.mean(), y.std()
    inputs = torch.tensor(x, dtype=torch.float32)
    target = torch.tensor((y - center) / spread, dtype=torch.float32)[:, None]
    levels = torch.tensor([LOW, HIGH])
    net = torch.nn.Sequential(
        torch.nn.Linear(x.shape[1], 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 2),
    )
    optimiser = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-5)
    for _ in range(60):
        for rows in torch.randperm(len(inputs)).split(128):
            error = target[rows] - net(inputs[rows])
            loss = torch.maximum(levels * error, (levels - 1) * error).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        found = np.sort(net(torch.tensor(x_new, dtype=torch.float32)).numpy().astype(np.float64), axis=1)
    return center + spread * found[:, 0], center + spread * found[:, 1]


MODELS = {"ridge": ridge, "forest": forest, "quantile forest": quantile_forest, "neural": neural}
