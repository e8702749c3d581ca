"""Small files in the place of the real data, with their names, columns and shapes: for commands in their small form."""

import io
from pathlib import Path

import numpy as np

RECORDS, ROWS, IMAGES = 1200, 300, 100


def write_stand_ins(folder: Path) -> None:
    """All files that the commands read, from a generator with a fixed seed."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    _images(folder, rng)
    _logits(folder, rng)
    _tables(folder, rng)


def _images(folder: Path, rng: np.random.Generator) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    for part in ("train", "test"):
        labels = rng.permutation(np.arange(IMAGES) % 10)
        pictures = []
        for pixels in rng.integers(0, 256, (IMAGES, 32, 32, 3), dtype=np.uint8):
            held = io.BytesIO()
            Image.fromarray(pixels).save(held, format="jpeg")
            pictures.append(held.getvalue())
        pq.write_table(pa.table({"label": labels, "jpeg": pictures}), folder / f"cifar10_{part}.parquet")


def _logits(folder: Path, rng: np.random.Generator) -> None:
    """Held-out outputs of classifiers: labels are drawn from the probabilities, so that the models are good."""

    def drawn(n: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.permutation(np.arange(n) % classes)
        logits = rng.normal(size=(n, classes)) + 3 * np.eye(classes)[labels]
        return logits.astype(np.float32), labels

    for name, classes in (("cifar100", 100), ("bloodmnist", 8), ("dermamnist", 7)):
        (val, val_labels), (test, test_labels) = drawn(RECORDS // 6, classes), drawn(RECORDS, classes)
        named = {"val_logits": val, "val_labels": val_labels, "test_logits": test, "test_labels": test_labels}
        np.savez(folder / f"{name}_resnet14.npz", **named)
    logits, labels = drawn(RECORDS, 10)
    p = np.exp(logits)
    np.savez(folder / "cifar10_vgg16.npz", probabilities=p / p.sum(axis=1, keepdims=True), labels=labels)


def _tables(folder: Path, rng: np.random.Generator) -> None:
    import pandas as pd

    x = rng.normal(size=(ROWS, 9)).round(3)
    y = (x.sum(axis=1) + rng.normal(size=ROWS)).round(3)
    bio = pd.DataFrame(x, columns=[f"F{i}" for i in range(1, 10)])
    bio.insert(0, "RMSD", y)
    bio.to_csv(folder / "CASP.csv", index=False)
    pd.DataFrame(x).assign(strength=y).to_csv(folder / "Concrete_Data.csv", index=False)
    casual, registered = rng.integers(0, 50, ROWS), rng.integers(0, 200, ROWS)
    bike = pd.DataFrame({"datetime": pd.date_range("2011-01-01", periods=ROWS, freq="37h")})
    for name, most in (("season", 4), ("holiday", 1), ("workingday", 1), ("weather", 3)):
        bike[name] = rng.integers(min(1, most - 1), most + 1, ROWS)
    bike[["temp", "atemp", "humidity", "windspeed"]] = x[:, :4]
    bike.assign(casual=casual, registered=registered, count=casual + registered).to_csv(
        folder / "bike_train.csv", index=False
    )
    hospitals = folder / "uci_heart"
    hospitals.mkdir(exist_ok=True)
    for name in ("cleveland", "hungarian", "switzerland", "va"):
        patients = pd.DataFrame(rng.normal(size=(90, 13)).round(2)).astype(object)
        patients = patients.mask(rng.random(patients.shape) < 0.05, "?")
        patients.assign(target=rng.integers(0, 3, 90)).to_csv(hospitals / f"{name}.csv", index=False)
