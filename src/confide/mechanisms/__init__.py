"""In come counts over public candidates, out goes the index of one: each file one mechanism with its privacy map.

interface.py        what every mechanism says about itself
slopes.py           the mechanism of this project
pps.py              Private Prediction Sets, the exponential mechanism
pps_laplace.py      Private Prediction Sets, version 1: a Laplace histogram
noisy_histogram.py  the same release, calibrated by the random-rank lemma
opendp_quantile.py  OpenDP's private quantile
split_conformal.py  no privacy: the baseline
privacy.py          `PrivacyStatement`: what a release costs, from the mechanism's own map
composition.py      what several releases cost together
certify.py          `Guarantee` of a mechanism, from public numbers alone
fields.py           mechanisms as JSON objects

Methods of others carry the names that they were published under, so that their price can be compared (docs/methods.md).
"""
