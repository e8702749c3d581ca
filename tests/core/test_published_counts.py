"""Calibration on counts that another engine made: coverage, readers, files and refusals."""

import json
import math
import shutil
import subprocess
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import confide
from confide import Candidates, Noise, PublishedCounts
from confide.errors import CoverageWarning, FormatError, InputError, InputTypeError
from confide.mechanisms import published_histogram_for
from confide.selection import noisy_counts, noisy_number
from confide.tables import read_published_counts
from tests.exact import histograms
from tests.files import resealed, signed
from tests.refused import refused

NOISE = Noise.discrete_laplace(2.0, copies=2)
FIELD = 2**66 * 4611686018427387897 + 1
UNIT = Candidates.unit(128)


def published(scores, candidates=UNIT, noise=NOISE, *, public=True, **more):
    """What an engine with OpenDP's sampler and two makers publishes."""
    counts = confide.ScoreHistogram.from_scores(scores, candidates).counts
    for _ in range(noise.copies):
        counts = noisy_counts(counts, noise.parameter)
    if public:
        return PublishedCounts(counts, candidates, noise, len(scores), "lac", **more)
    number = {"n_noisy": noisy_number(len(scores), 5.0), "n_noise": Noise.discrete_laplace(5.0)}
    return PublishedCounts(counts, candidates, noise, score="lac", **number, **more)


@pytest.fixture(scope="module")
def counts():
    return published(np.random.default_rng(0).random(10_000), classes=["no", "yes"])


def test_a_release(counts):
    released = confide.calibrate_counts(counts, 0.1, about={"model": "m"})
    assert released.request.noise == NOISE
    assert (released.n, released.epsilon, released.classes) == (10_000, 1.0, ("no", "yes"))
    assert 0.9 <= released.coverage < 0.9 + 1 / 10_000
    assert 0.87 < released.threshold < 0.95  # 300 ranks, where the noise has a standard deviation of 15
    assert confide.Release.from_json(released.to_json()) == released
    assert "every count has independent discrete Laplace noise of scale 2, twice" in str(released)
    sets = confide.predict_set([[0.95, 0.05], [0.5, 0.5]], released)
    assert sets.mask.tolist() == [[True, False], [True, True]]


def test_a_release_of_a_secret_number():
    """Noisy numbers below the least one give +inf; the file restores the statement, with the loss of the number."""
    counts = published(np.random.default_rng(0).random(2000), public=False)
    released = confide.calibrate_counts(counts, 0.1)
    assert (released.coverage, released.n, released.size.counted) == (0.9, None, counts.n_noisy)
    assert released.guarantee.sized
    assert released.privacy.add_remove == pytest.approx(1 / 2 + 1 / 5)
    assert 0.85 < released.threshold < 0.95
    assert confide.Release.from_json(released.to_json()) == released
    with pytest.warns(CoverageWarning):
        assert confide.calibrate_counts(replace(counts, n_noisy=9), 0.1).threshold == math.inf
    for change in ({"counted": 50}, {"counted": None}):
        with pytest.raises(FormatError):
            confide.Release.from_json(resealed(released, "threshold", change))


def test_bins_closed_on_the_left_are_safe():
    """Lemma E3: of every histogram of five scores on candidates, the engine counts each one bin further right."""
    candidates, values = Candidates.of([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3])
    mechanism = published_histogram_for(Fraction(1, 2), Noise.discrete_laplace(0.001), 4, 4, None)
    for h in histograms(5, 3):
        scores = np.repeat(values, h)
        covered = 0
        for k in range(5):
            bins = np.searchsorted(candidates.edges, np.delete(scores, k), side="right")  # [e_(j-1), e_j)
            place = mechanism.choose(np.bincount(bins, minlength=4))
            covered += bool(scores[k] <= candidates.values[place])
        assert covered >= 5 / 2


# Readers


def forms(counts, folder):
    """The same counts in every form that is read."""
    numbers = counts.counts.tolist()
    rows = [{"bin": place, "count": number} for place, number in enumerate(numbers)][::-1]
    (folder / "rows.json").write_text(json.dumps(rows))
    (folder / "lines.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "list.json").write_text(json.dumps(numbers))
    (folder / "counts.csv").write_text("count,bin\n" + "".join(f"{row['count']},{row['bin']}\n" for row in rows))
    collected = {"report_count": counts.n, "aggregate_result": [str(number % FIELD) for number in numbers]}
    (folder / "dap.json").write_text(json.dumps(collected))
    return folder


def test_every_form_reads_the_same(counts, tmp_path):
    for file in sorted(forms(counts, tmp_path).iterdir()):
        n = None if file.name == "dap.json" else counts.n
        read = read_published_counts(file, UNIT, NOISE, n=n, score="lac", classes=["no", "yes"])
        assert read.to_json() == counts.to_json(), file.name
    counts.save(tmp_path / "own.json")
    assert read_published_counts(tmp_path / "own.json").to_json() == counts.to_json()
    assert type(confide.load(tmp_path / "own.json")) is PublishedCounts


def test_prio3_end_to_end():
    """Reports of clients are shared, verified and summed by Prio3 itself; each aggregator adds noise to its share."""
    folder = Path(__file__).parents[2] / "examples" / "phones"
    if shutil.which("node") is None or not (folder / "node_modules" / "@divviup" / "prio3").is_dir():
        pytest.skip("needs node, and `npm install` in examples/phones")
    candidates, scores = Candidates.unit(16), np.random.default_rng(0).beta(2, 4, 200)
    bins = np.searchsorted(candidates.edges, scores).tolist()
    noises = [noisy_counts(np.zeros(16, dtype=np.int64), 0.5).tolist() for _ in range(2)]
    given = json.dumps({"length": 16, "measurements": bins, "noises": noises})
    done = subprocess.run(["node", "prio3.mjs"], cwd=folder, input=given, capture_output=True, text=True, check=True)
    made = PublishedCounts(json.loads(done.stdout), candidates, Noise.discrete_laplace(0.5, 2), score="lac")
    assert made.n == 200
    assert made.counts.tolist() == (np.bincount(bins, minlength=16) + np.sum(noises, axis=0)).tolist()
    assert confide.calibrate_counts(made, 0.1).threshold < math.inf


# Refusals


NUMBER = {"n_noisy": 10_003, "n_noise": Noise.discrete_laplace(5.0)}


def drawn(exact=None, change=lambda noisy: noisy, noise=NOISE, n=10_000, **number):
    exact = np.random.default_rng(0).multinomial(10_000, np.full(128, 1 / 128)) if exact is None else exact
    noisy = noisy_counts(noisy_counts(np.asarray(exact, dtype=np.int64), 2.0), 2.0)
    return PublishedCounts(change(noisy), UNIT, noise, n, **number)


HALF = np.append(np.zeros(64), np.random.default_rng(0).multinomial(10_000, np.full(64, 1 / 64)))


@pytest.mark.parametrize(
    ("made", "argument"),
    [
        (lambda: drawn(change=lambda c: c + 0.5), "counts"),
        (lambda: drawn(change=lambda c: c[c > 70]), "counts"),
        (lambda: drawn(change=np.cumsum), "counts"),
        (lambda: drawn(n=None), "n_noisy"),
        (lambda: drawn(n=None, n_noisy=10_000), "n_noise"),
        (lambda: drawn(n=None, n_noise=Noise.discrete_laplace(5.0)), "n_noise"),
        (lambda: drawn(**NUMBER), "n_noisy"),
        (lambda: drawn(n=None, **NUMBER | {"n_noisy": 1e4}), "n_noisy"),
        (lambda: drawn(n=None, **NUMBER | {"n_noise": NOISE}), "n_noise"),
        (lambda: drawn(n=None, **NUMBER | {"n_noise": Noise.discrete_gaussian(5.0)}), "n_noise"),
        (lambda: drawn(n=None, noise=Noise.table([0.4, 0.2, 0.1]), **NUMBER), "noise"),
        (lambda: drawn(HALF, lambda c: np.where(c < 20, 0, c)), "counts"),
        (lambda: drawn(HALF, lambda c: np.where(c < 20, 0, c), n=None, **NUMBER), "counts"),
        (lambda: drawn(n=0), "n"),
        (lambda: drawn(change=lambda c: c * 2**42), "counts"),
        (lambda: drawn(noise="discrete_laplace(scale=2)"), "noise"),
        (lambda: PublishedCounts([1, 2], 2, NOISE), "candidates"),
        (lambda: PublishedCounts({"bin": [0, 0], "count": [1, 2]}, Candidates.of([1.0]), NOISE), "counts"),
        (lambda: PublishedCounts({"bin": [0, 2], "count": [1, 2]}, Candidates.of([1.0]), NOISE), "counts"),
        (lambda: PublishedCounts({"aggregate_result": ["1.5", "1"]}, Candidates.of([1.0]), NOISE), "counts"),
        (lambda: PublishedCounts({"aggregate_result": [str(FIELD), "1"]}, Candidates.of([1.0]), NOISE), "counts"),
    ],
)  # fmt: skip
def test_refused(made, argument):
    with refused((InputError, InputTypeError), argument):
        confide.calibrate_counts(made(), 0.1)


@pytest.mark.parametrize(
    "change",
    [
        {"edges": [None] * 127},
        {"edges": [[]] * 127},
        {"edges": [0.5] * 127},
        {"edges": None},
        {"recipe": {"kind": "of", "size": 127}},
        {"recipe": {"kind": "other", "size": 128}},
        {"counts": [True] * 128},
        {"counts": [2**60] * 128},
        {"noise": {"kind": "discrete_laplace", "parameter": -2.0, "copies": 2}},
        {"classes": ["no", "no"]},
        {"score": 1},
        {"n": 0},
        {"more": 1},
    ],
    ids=str,
)
def test_a_file_of_counts_that_cannot_be_used_is_refused(change):
    scores, values = np.random.default_rng(0).random(1000), np.linspace(0.01, 1, 127)
    reference = published(scores, Candidates.from_reference(values, 50))
    assert PublishedCounts.from_json(reference.to_json()).candidates.recipe == reference.candidates.recipe
    own = Candidates.of(values)
    content = json.loads(published(scores, own, classes=["no", "yes"]).to_json())
    assert PublishedCounts.from_json(signed(content)).candidates == own
    with pytest.raises(FormatError):
        PublishedCounts.from_json(signed(content | change))


@pytest.mark.parametrize("number", [{}, {"n": None, **NUMBER}])
def test_clipped_counts_are_served_with_a_warning(number):
    made = drawn(HALF, lambda c: np.maximum(c, 0), **number)
    with pytest.warns(
        CoverageWarning, match="look clipped at 0: the promise holds, but each empty bin .* costs about 1.5"
    ):
        released = confide.calibrate_counts(made, 0.1)
    assert released.coverage >= 0.9


@pytest.mark.long
@pytest.mark.parametrize(
    "noise", [{"parameter": 1e4, "copies": 100}, {"kind": "table", "parameter": [1 / (2**20 - 1)] * 2**19}]
)
def test_the_largest_noise_takes_seconds(counts, noise):
    """A file must not keep its readers busy for minutes."""
    released = confide.calibrate_counts(counts, 0.1)
    stated = json.loads(released.to_json())["request"]["noise"]
    text = resealed(released, "request", {"epsilon": 1.0, "noise": stated | noise})
    began = time.process_time()
    with refused(FormatError, "release.coverage"):
        confide.Release.from_json(text)
    assert time.process_time() - began < 10


@pytest.mark.slow(unless=("1", "2"))
@pytest.mark.parametrize("copies", [1, 2, 50])
def test_counts_further_below_zero_than_the_noise_allows_are_refused(copies):
    """The least count that passes is that of the exact tail: 64 P(S > r) <= 1e-9 for the sum S of the noises."""
    candidates, noise = Candidates.unit(64), Noise.discrete_laplace(2.0, copies=copies)
    law = np.exp(-np.abs(np.arange(-400, 401)) / 2) * np.tanh(0.25)
    of_sum = np.array([1.0])
    for _ in range(copies):
        of_sum = np.convolve(of_sum, law)
    tail = np.cumsum(of_sum[::-1])[::-1][len(of_sum) // 2 :]  # P(S >= 0), P(S >= 1), ...
    reach = int((64 * tail[1:] <= 1e-9).argmax())
    for least, passes in ((-reach, True), (-reach - 1, False), (3 * 10**9 - 2**32, False)):
        counts = 10**8 + np.arange(64)
        counts[61] = least
        published = PublishedCounts(counts, candidates, noise, score="lac", **NUMBER)
        if passes:
            assert published.check() == ""
            continue
        with refused(InputError, "counts"):
            confide.calibrate_counts(published, alpha=0.1)
