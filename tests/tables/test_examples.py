"""The worked examples give the counts of numpy on the same records."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import confide
from confide import ScoreHistogram

ROOT = Path(__file__).parents[2]
K, N = 10, 4000


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> tuple[Path, np.ndarray]:
    """Parquet files of inputs and labels, and the expected counts of the examples."""
    folder = tmp_path_factory.mktemp("records")
    rng = np.random.default_rng(0)
    x, label = rng.normal(size=(N, K)), rng.integers(0, K, N)
    table = pa.table({f"x_{k}": x[:, k] for k in range(K)} | {"label": label})
    for i in range(4):
        pq.write_table(table.slice(i * N // 4, N // 4), folder / f"{i}.parquet")
    raised = np.exp(x - x.max(axis=1, keepdims=True))
    scores = confide.aps_score(raised / raised.sum(axis=1, keepdims=True), label, randomised=False)
    return folder, ScoreHistogram.from_scores(
        scores, confide.scores.kinds.score_kind("aps_deterministic").candidates()
    ).counts


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_spark(spark, records):
    from examples.engines.spark_map_in_arrow import histogram

    folder, expected = records
    np.testing.assert_array_equal(histogram(spark, str(folder)).counts, expected)


@pytest.mark.slow
def test_ray(records, tmp_path):
    if find_spec("ray") is None:
        pytest.skip("needs Ray: pip install 'ray>=2.40' pandas")
    folder, expected = records
    program = f"""if True:
        import numpy, ray
        ray.init("local", num_cpus=2, include_dashboard=False, object_store_memory=100 * 2**20, log_to_driver=False)
        from examples.engines.ray_map_batches import histogram
        numpy.save({str(tmp_path / "counts.npy")!r}, histogram({str(folder)!r}).counts)
        ray.shutdown()
    """
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    np.testing.assert_array_equal(np.load(tmp_path / "counts.npy"), expected)


@pytest.mark.slow
def test_torch():
    torch = pytest.importorskip("torch", reason="needs PyTorch: install the extra torch")
    from torch.utils.data import DataLoader, TensorDataset

    from examples.engines.torch_dataloader import histogram

    rng = np.random.default_rng(0)
    x, label = rng.normal(size=(N, K)).astype(np.float32), rng.integers(0, K, N)
    model = torch.nn.Linear(K, K)
    loader = DataLoader(TensorDataset(torch.from_numpy(x), torch.from_numpy(label)), batch_size=300)
    with torch.no_grad():
        p = torch.cat([torch.softmax(model(part).double(), 1) for part in torch.from_numpy(x).split(300)]).numpy()
    own = confide.aps_score(np.minimum(p, 1), label, randomised=False)
    found = histogram(model, loader)
    np.testing.assert_array_equal(found.counts, ScoreHistogram.from_scores(own, found.candidates).counts)


@pytest.mark.slow
def test_torch_runs_as_a_script():
    pytest.importorskip("torch", reason="needs PyTorch: install the extra torch")
    script = [sys.executable, "examples/engines/torch_dataloader.py"]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1-differential privacy" in done.stdout
