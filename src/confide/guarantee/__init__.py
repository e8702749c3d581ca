"""In come target ranks and slopes, out go statements about coverage: theorems, without a word about mechanisms.

random_rank.py  the random-rank lemma: privacy noise is a random rank that knows nothing of the data
certificate.py  the sharp marginal certificate
marginal.py     target ranks for the marginal guarantee
conditional.py  target ranks for the training-conditional guarantee
noise_walk.py   the maximum of a noise walk, for noisy histograms
statement.py    `Guarantee`: what is promised, in numbers and in words
"""
