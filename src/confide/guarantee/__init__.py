"""From a mechanism to statements about coverage: the random-rank lemma and the sharp marginal certificate."""
