"""`python -m examples.language_models [SPLITS]`: private thresholds for a small language model, over random splits.

The model counts words and pairs of words in half of the texts that come with Python, and fills gaps in the rest: once
for sets of options, and once as answers of five claims each, sampled fifty times, of which the confident ones are kept.
Both thresholds are calibrated on half of the rest and evaluated on the other half, over random splits. The guarantees
also hold for means over random splits of the same passages, because every passage is equally likely to be new.
"""

import ast
import re
import sys
import sysconfig
from collections import Counter
from itertools import pairwise
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

import confide

CLAIMS, SAMPLES, TEMPERATURE = 5, 50, 4
ALPHA = 0.1
CANDIDATES = confide.Candidates.of(np.arange(SAMPLES) / SAMPLES)


def passages():
    """Paragraphs of the language reference and of docstrings of the standard library, as words."""
    texts = list(topics.values())
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        nodes = ast.walk(ast.parse(file.read_bytes()))
        texts += [ast.get_docstring(node) or "" for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    found = {tuple(re.findall("[a-z]+", part.lower())) for text in texts for part in text.split("\n\n")}
    return sorted(words for words in found if len(words) >= 12)


class PairModel:
    """A bigram model from counts, smoothed by the frequencies of words."""

    def __init__(self, learned):
        self.words = Counter(word for passage in learned for word in passage)
        self.pairs = Counter(pair for passage in learned for pair in pairwise(passage))
        self.total = self.words.total()

    def log_after(self, first, word):
        """The log-probability of a word after another."""
        often = (self.words[word] + 1) / self.total
        return np.log((self.pairs[first, word] + often) / (self.words[first] + 1))

    def questions(self, passages, each, rng):
        """Log-probabilities of four options for gaps in passages, shape (n, each, 4), and the right option."""
        known, often = list(self.words), np.array(list(self.words.values())) / self.total
        others = rng.choice(known, (len(passages), each, 3), p=often)
        logs, right = np.empty((len(passages), each, 4)), rng.integers(4, size=(len(passages), each))
        for i, passage in enumerate(passages):
            for j, gap in enumerate(rng.choice(np.arange(1, len(passage) - 1), each, replace=False)):
                options = list(others[i, j])
                options.insert(right[i, j], passage[gap])
                before, behind = passage[gap - 1], passage[gap + 1]
                logs[i, j] = [self.log_after(before, word) + self.log_after(word, behind) for word in options]
        return logs, right


def softmax(logs):
    """Probabilities of the options, over the last axis."""
    p = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def options(p, right, held, epsilon):
    """Coverage and mean size of the sets of new questions."""
    released = confide.calibrate(confide.lac_score(p[held], right[held]), ALPHA, epsilon)
    sets = confide.predict_set(p[~held], released)
    return sets.contains(right[~held]).mean(), sets.sizes.mean()


def claims(agreed, false, held, epsilon):
    """The share of false claims that are kept, of all claims, and the share of true ones, in new answers."""
    kept = agreed[held][:, :, None] > CANDIDATES.edges  # with every threshold: shape (n, claims, thresholds)
    losses = (kept & false[held][:, :, None]).mean(axis=1)
    released = confide.calibrate_losses(losses, CANDIDATES, ALPHA, epsilon, loss="share of false claims kept")
    kept = agreed[~held] > released.threshold
    return (kept & false[~held]).mean(), kept[~false[~held]].mean()


def main() -> None:
    """Print means over splits, with standard errors of the two guaranteed ones."""
    splits = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rng = np.random.default_rng(0)
    every = passages()
    order = rng.permutation(len(every))
    learned, rest = ([every[i] for i in half] for half in np.array_split(order, 2))
    model = PairModel(learned)
    logs, right = model.questions(rest, 1, rng)
    p, right = softmax(logs)[:, 0], right[:, 0]
    logs, true = model.questions(rest, CLAIMS, rng)
    drawn = rng.multinomial(SAMPLES, softmax(logs / TEMPERATURE))
    agreed, false = drawn.max(axis=-1) / SAMPLES, drawn.argmax(axis=-1) != true
    print(f"{len(rest)} passages, half of them calibrate; {splits} splits; alpha {ALPHA}")
    print(f"options: the most probable is right in {(p.argmax(axis=1) == right).mean():.3f}")
    print(f"claims: {false.mean():.3f} are false; nothing kept: 0 false, 0 true")
    print("epsilon  covered  +-      size   false kept  +-      true kept")
    for epsilon in (0.1, 0.5, 1.0, 4.0):
        found = []
        for _ in range(splits):
            held = rng.permutation(len(rest)) < len(rest) // 2
            found.append([*options(p, right, held, epsilon), *claims(agreed, false, held, epsilon)])
        (covered, size, wrong, kept), errors = np.mean(found, axis=0), np.std(found, axis=0) / splits**0.5
        print(
            f"{epsilon:<7g}  {covered:.4f}   {errors[0]:.4f}  {size:.3f}  {wrong:.4f}      {errors[2]:.4f}  {kept:.3f}"
        )


if __name__ == "__main__":
    main()
