"""The figures of Private Prediction Sets at the papers' settings, numbered as there, next to the authors' values.

`published` holds what the authors printed or drew, `bins` and `study` the papers' uniform bins and random splits on them,
`tail_scores` and `public_law` the scores; `figure2` ... `figure6` make the pages of
docs/experiments/private-prediction-sets.
"""
