"""The texts of the pages."""

PAGE = """# One-shot federated conformal prediction: its figures at its settings

Humbert, Le Bars, Bellet and Arlot, "One-shot federated conformal prediction", ICML 2023. Written by `python -m
experiments federated-paper`: the figures that need no data, those of the synthetic data, and those of concrete. Figures
4, 8 to 15 and 18 take longer: [paper-full.md](paper-full.md). alpha = 0.1. [README.md](README.md) has studies at other
settings.

| figure | content | where |
|---|---|---|
| 1 | M(l\\*, k\\*) compared with two upper bounds | [below](#figure-1) |
| 2 | degree of compensation of FedCP²-QQ | [below](#figure-2) |
| 3, 5 | intervals on synthetic data, equal and unequal silos | [below](#figure-3) |
| 4 | coverage over all data sets | [paper-full.md](paper-full.md) |
| 6, 7 | M(l, k) | [below](#figure-6) |
| 8, 9 | bio, (m, n) = (100, 10), (10, 100) | [paper-full.md](paper-full.md) |
| 10, 11 | bike, the same | [paper-full.md](paper-full.md) |
| 12, 13 and 14, 15 | community and star, (80, 10), (10, 80) | [paper-full.md](paper-full.md) |
| 16, 17 | concrete, (40, 10), (10, 40) | [below](#figures-16-and-17) |
| 18 | FedCP²-QQ on bio and bike | [paper-full.md](paper-full.md) |

The captions of Figures 8 to 17 give (m, n) only. Their data sets are named in the pictures; here they follow the order in
which Section 5.2 names them.

## Figure 1

M(l\\*, k\\*) is the coverage of FedCP-QQ on continuous scores (Theorem 3.2). The figure compares it with the upper bound
1-alpha+1/(mn+1) of Theorem 2.1 for centralised data, and with that of a single agent, 1-alpha+1/(n+1). The centralised
bound is no bound of M: at m = 5, n = 10 M exceeds it.

![Figure 1](paper/figure1.png)

{figure_1}

## Figure 2

M(l + l_cor, k) for the best gamma, m = 10. The paper states neither its n and epsilon nor B: here B = 100, n up to 1000
at epsilon = 5, and epsilon up to 20 at n = 200. Dotted: the same number for `private-qq`, which aims at lower ranks
because its guarantee counts the noise exactly. A missing point means that no rank within n is sufficient.

![Figure 2](paper/figure2.png)

{figure_2}

## Figure 3

Synthetic data of Section 5.1: 2000 records, half for training and half in m = 50 silos of n = 20, 5000 more for the test.
X ~ U[1, 5], Y ~ Pois(sin² X + 0.1) + 0.03 X N + 25 · 1{{U < 0.01}} N. CQR with a quantile regression forest of 1000 trees.
Its two levels are tuned on 5 % of the training records, held out, and its leaves have at least 40 records. The paper
refers to Romano, Patterson and Candès for both, whose public example has the same data. The picture is one draw, as in
the paper; the table adds means over 20 draws of data, forest and noise. The library plans `private-qq` and `secure-sum`
with its own candidates and a public unit of 0.25. FedCP²-QQ has its 100 bins of equal width up to the largest score,
which is an outlier.

![Figure 3](paper/figure3.png)

{figure_3}

FedCP-QQ and the centralised calibration agree. FedCP-Avg includes outliers in its average and is larger, as the paper
states.

## Figure 5

The same with silos of unequal sizes, l_j = ceil((1-alpha)(n_j + 1)) and the least k that reaches 1-alpha (Appendix A.1).
The paper does not state its sizes: here ten silos each of 10, 15, 20, 25 and 30 records. FedCP²-QQ is for equal sizes.

![Figure 5](paper/figure5.png)

{figure_5}

## Figure 6

![Figure 6](paper/figure6.png)

{figure_6}

## Figure 7

![Figure 7](paper/figure7.png)

{figure_7}

## Figures 16 and 17

20 random splits 40/40/20 of concrete, at all settings of Section 5.2. [paper-full.md](paper-full.md) describes how its
gaps are filled, `secure-sum` and `private-qq` here, and the columns.

{concrete}
"""

FULL_PAGE = """# One-shot federated conformal prediction: Figures 4, 8 to 15 and 18

Written by `nox -s experiments -- --full` (`python -m experiments --full federated-paper-full`), which continues where it
was interrupted, split by split. `python -m experiments.federated.paper` writes this page from the available splits.
[paper.md](paper.md) has the other figures, including concrete (16, 17).

Settings of Section 5.2: 20 random splits, 40 % for training, 40 % for calibration, 20 % for the test; features
standardised; alpha = 0.1. Gaps of the text are filled as follows, after the paper to which it refers for its regressors
(Romano, Patterson and Candès, 2019) and that paper's public code.

- **Ridge**: penalty by cross-validation (leave-one-out, 1e-3 to 1e3); scores are absolute residuals, so all intervals
  have one length.
- **RF**: CQR with a quantile regression forest of 1000 trees, all features at every cut, leaves of one record or more.
  Its two levels, from (0.05, 0.95) inwards to (0.35, 0.65), are the narrowest that still cover 0.85 · 0.9 of 5 % of the
  training records, held out. Then the forest is trained on all of them.
- **NN**: CQR with a network of two hidden layers of 64, dropout 0.1, pinball loss at 0.1 and 0.9, Adam (rate 0.0005,
  decay 1e-6), batches of 64, up to 1000 epochs. It uses as many steps as gave the shortest intervals among epochs that
  cover 0.8 of 5 % of the training records, held out. Then it is trained again on all of them, for every split from the
  start.
- Lengths are in units of the mean absolute target of the training records, as in Romano, Patterson and Candès.
- The first m n calibration records, in random order, are dealt to the silos, and the centralised method uses the same.

**Ours** for comparison: `private-qq` at epsilon = 10 and `secure-sum` at epsilon = 1, planned by the library, with the
paper's bins (Appendix B.2: 100 of equal width on (0, S_max], S_max the largest score. Reading S_max from the data is the
paper's setting, not a private one). The paper's three methods have no privacy here.

"Authors" are the result tables of the authors' public repository, means over their 20 splits. "±" is the standard error
of our mean; theirs is about as large. "Exact law" is the average coverage of a method on continuous scores, for all data:
M(l\\*, k\\*), and ceil(0.9 (mn + 1))/(mn + 1) for the centralised one.

## What the authors' tables show

- **Sizes.** Coverages of bio are multiples of 1/800 and those of bike of 1/206. With 20 % for the test, 4000 and 1030
  records took part and not all 45,730 and 10,886. With 412 calibration records bike cannot have had (100, 10), the
  setting of its caption. Both are run here twice: as in the text, and with as many records as the tables. The tables do
  not state which records those were. Here they are drawn at random once, and lengths on bike depend on them: the first
  1030 of the file have 2.35 ± 0.03 with a ridge.
- **FedCP-Avg where m << n.** Its published coverage is above that of rank l = ceil((1-alpha)(n+1)), which Section 5
  states, and agrees with rank l + 1 ("one rank higher"). Where n = 10 both are the largest score, and all agree. This is
  part of its distance to FedCP-QQ in the paper's figures for m << n.
- **Networks.** The lengths of the authors' networks decrease from their first split to their last: concrete 0.464 to
  0.316, bio 1.624 to 1.177, bike 1.509 to 0.666 (centralised, m >> n). Ours are trained again for every split. They are
  about as long as those of the authors' first, on bike longer.

{sizes}

## Figure 4

Coverage over all data sets and regressors, one dot per split. Sizes are those of the authors' table. community and star
are not distributed with this project. 2000 records of bike, a set of about their size, replace them. It has (80, 10) and
(10, 80), as they have, and counts once. On bio and concrete lengths agree for ridge and forest. Over the three sets
together, the networks and bike are longer, see above.

{figure_4}

## Figures 8 to 15

{figures}

## Figure 18

FedCP-QQ and FedCP²-QQ at epsilon 10, 5 and 1, m = 5, n = 200, quantile forests, B = 100, S_max the largest score,
compared with ours. The last column is the same methods on uniform scores, 2000 draws: coverage depends on the data only
through ties and bins. If most bins of equal width are beyond nearly all scores, as here, noise affects them more often
than on uniform scores. The authors published no table of this figure.

{figure_18}

## Time

Processor time of a split, and the number of splits. All of it would take about two hours of one processor, about half of
them for the forests of all bio (two of 1000 trees on 18,000 records, twenty times).

{seconds}
"""
