"""The authors' values: means over 20 splits of the result tables in their public repository.

github.com/pierreHmbt/FedCP-QQ, precompute_results/real_data_xp.csv (m >> n) and real_data_xp_low_m.csv (m << n). The paper
itself prints no table. Coverage and length, a length in units of the mean absolute target of the training records.
"""

METHODS = ("FedCP-QQ", "centralised", "FedCP-Avg")

_ROWS = {
    ("bio", "ridge", "many"): (0.8998, 0.8953, 0.9389, 2.1438, 2.1178, 2.4246),
    ("bio", "network", "many"): (0.9082, 0.8997, 0.9539, 1.4259, 1.3933, 1.7326),
    ("bio", "forest", "many"): (0.9023, 0.8971, 0.9584, 1.5648, 1.5427, 1.9837),
    ("bike", "ridge", "many"): (0.8993, 0.9053, 0.9549, 2.4174, 2.4457, 3.2009),
    ("bike", "network", "many"): (0.8956, 0.8983, 0.959, 0.9161, 0.932, 1.4648),
    ("bike", "forest", "many"): (0.9029, 0.9039, 0.951, 1.0013, 1.0012, 1.1802),
    ("community", "ridge", "many"): (0.9119, 0.9058, 0.9461, 1.9641, 1.892, 2.4492),
    ("community", "network", "many"): (0.9031, 0.8975, 0.9553, 1.3635, 1.3191, 1.8529),
    ("community", "forest", "many"): (0.9138, 0.9076, 0.9607, 1.5713, 1.536, 2.1016),
    ("star", "ridge", "many"): (0.9048, 0.9039, 0.9426, 0.1803, 0.1791, 0.201),
    ("star", "network", "many"): (0.9042, 0.9001, 0.9431, 0.1725, 0.17, 0.1976),
    ("star", "forest", "many"): (0.9007, 0.8991, 0.9419, 0.1798, 0.1792, 0.2027),
    ("concrete", "ridge", "many"): (0.8961, 0.8998, 0.94, 0.9815, 0.9873, 1.1329),
    ("concrete", "network", "many"): (0.8988, 0.9039, 0.9519, 0.347, 0.3532, 0.4466),
    ("concrete", "forest", "many"): (0.9058, 0.9046, 0.9456, 0.5651, 0.5631, 0.669),
    ("bio", "ridge", "few"): (0.8926, 0.8953, 0.9093, 2.1013, 2.1178, 2.2049),
    ("bio", "network", "few"): (0.8996, 0.8997, 0.9205, 1.392, 1.3933, 1.4833),
    ("bio", "forest", "few"): (0.8972, 0.8971, 0.9164, 1.5443, 1.5427, 1.6242),
    ("bike", "ridge", "few"): (0.9097, 0.9053, 0.9451, 2.4729, 2.4457, 3.0119),
    ("bike", "network", "few"): (0.899, 0.9039, 0.9444, 0.913, 0.9348, 1.2229),
    ("bike", "forest", "few"): (0.9078, 0.9039, 0.94, 1.0079, 1.0012, 1.118),
    ("community", "ridge", "few"): (0.9055, 0.9058, 0.9209, 1.8879, 1.892, 2.0478),
    ("community", "network", "few"): (0.9075, 0.8994, 0.9159, 1.0027, 0.9473, 1.0475),
    ("community", "forest", "few"): (0.9049, 0.9076, 0.9256, 1.5221, 1.536, 1.674),
    ("star", "ridge", "few"): (0.8998, 0.9039, 0.9176, 0.1774, 0.1791, 0.1867),
    ("star", "network", "few"): (0.9003, 0.9001, 0.9189, 0.1706, 0.17, 0.1812),
    ("star", "forest", "few"): (0.9003, 0.8991, 0.9149, 0.1801, 0.1792, 0.1872),
    ("concrete", "ridge", "few"): (0.9066, 0.8998, 0.9383, 1.0068, 0.9873, 1.1212),
    ("concrete", "network", "few"): (0.9032, 0.9039, 0.941, 0.3549, 0.3532, 0.4195),
    ("concrete", "forest", "few"): (0.9036, 0.9046, 0.94, 0.5615, 0.5631, 0.6486),
}
"""Data set, regressor, many silos (m >> n) or few (m << n): coverages and lengths of the methods, in their order."""

ALL = {
    "many": {"FedCP-QQ": (0.9032, 1.120), "centralised": (0.9015, 1.107), "FedCP-Avg": (0.9496, 1.416)},
    "few": {"FedCP-QQ": (0.9025, 1.086), "centralised": (0.9020, 1.083), "FedCP-Avg": (0.9273, 1.212)},
}
"""Figure 4: means over all data sets and regressors."""


def published(data: str, regressor: str, regime: str, method: str) -> tuple[float, float] | None:
    """Mean coverage and mean length, or None for other methods."""
    row = _ROWS.get((data, regressor, regime))
    if row is None or method not in METHODS:
        return None
    at = METHODS.index(method)
    return row[at], row[at + 3]
