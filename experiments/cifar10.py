"""CIFAR-10 images: from the data folder, or downloaded from the authors' page and checked by hash.

Krizhevsky, "Learning multiple layers of features from tiny images", 2009.
"""

import hashlib
import io
import os
import pickle
import tarfile
import urllib.request
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.cache import RESULTS, ROOT

URL = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
MD5 = "c58f30108f718f92721af3b95e74349a"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

Images = NDArray[np.uint8]
Labels = NDArray[np.int64]


def data_folder() -> Path:
    """The folder named by CONFIDE_DATA, or ../shared/data next to the checkout."""
    return Path(os.environ.get("CONFIDE_DATA", ROOT.parent / "shared" / "data"))


def load(part: str, folder: Path | None = None) -> tuple[Images, Labels]:
    """Images of shape (n, 32, 32, 3) and labels of shape (n,) of the part `"train"` or `"test"`."""
    parquet = (folder or data_folder()) / f"cifar10_{part}.parquet"
    return _from_parquet(parquet) if parquet.exists() else _from_archive(download(), part)


def labels(part: str) -> Labels:
    """Labels alone, without decoding the images if they are in the data folder."""
    parquet = data_folder() / f"cifar10_{part}.parquet"
    if not parquet.exists():
        return load(part)[1]
    import pyarrow.parquet as pq

    return pq.read_table(parquet, columns=["label"])["label"].to_numpy().astype(np.int64)


def _from_parquet(path: Path) -> tuple[Images, Labels]:
    import pyarrow.parquet as pq
    from PIL import Image

    table = pq.read_table(path)
    images = [np.asarray(Image.open(io.BytesIO(blob))) for blob in table["jpeg"].to_pylist()]
    return np.stack(images), table["label"].to_numpy().astype(np.int64)


def download(url: str = URL, md5: str = MD5, folder: Path = RESULTS) -> Path:
    """The archive, downloaded once; a file with a wrong hash is removed and raises an error."""
    path = folder / Path(url).name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        urllib.request.urlretrieve(url, part)  # noqa: S310  (a constant https address)
        part.replace(path)
    digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    if digest != md5:
        path.unlink()
        raise OSError(f"{url} does not have the MD5 {md5}; it was removed, try again")
    return path


def _from_archive(path: Path, part: str) -> tuple[Images, Labels]:
    names = [f"data_batch_{i}" for i in range(1, 6)] if part == "train" else ["test_batch"]
    images, labels = [], []
    with tarfile.open(path) as archive:
        for name in names:
            member = archive.extractfile(f"cifar-10-batches-py/{name}")
            if member is None:
                raise OSError(f"{path} lacks {name}")
            batch = pickle.load(member, encoding="bytes")  # noqa: S301  (checked by hash)
            images.append(batch[b"data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
            labels.extend(batch[b"labels"])
    return np.concatenate(images), np.array(labels, dtype=np.int64)
