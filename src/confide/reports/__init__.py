"""A release, or a plan, as one self-contained HTML page: no network, nothing that depends on data but the release.

`release_page` and `plan_page` return the HTML; `Calibration.report` and `confide report` write it.
"""
