"""Coverage and size of every score on real data, private beside non-private: `python -m benchmarks.real_data`."""

from tests.test_pitfalls import DETERMINISTIC, RANDOMISED
from tests.test_real_data import IMAGES, TABLES, intervals_of, sets_of


def row(name, score, result):
    n, coverage, private, plain = len(result.scores), result.covered.mean(), result.private, result.plain
    return f"| {name} | {score} | {n} | {coverage:.3f} | {private:.3g} | {plain:.3g} | {private / plain:.3f} |"


def main():
    print("| data | score | n | coverage | size or width | without privacy | ratio |\n|---|---|---|---|---|---|---|")
    for name in IMAGES:
        for score in DETERMINISTIC + RANDOMISED:
            print(row(name.split("_")[0], score, sets_of(name, score)))
    for name, target in TABLES.items():
        for score in ("absolute_residual", "normalised_residual", "gamma", "cqr"):
            print(row(name.split(".")[0], score, intervals_of(name, target, score)))


if __name__ == "__main__":
    main()
