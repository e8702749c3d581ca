"""MONAI with its own components: Compose, loaders, inferers, bundle configuration, metrics."""

import copy
from functools import partial

import numpy as np
import pytest

import confide
from confide.releases import RiskCalibration, critical_score
from tests.calibrations import calibration_at
from tests.refused import refused

torch = pytest.importorskip("torch", reason="needs the extra monai: pip install 'confide[monai]'")
monai = pytest.importorskip("monai", reason="needs the extra monai: pip install 'confide[monai]'")
pytest.importorskip("array_api_compat", reason="needs the extra monai: pip install 'confide[monai]'")

from dataclasses import replace  # noqa: E402

import confide.monai as front  # noqa: E402

EXACT = {"mechanism": "none", "neighbors": "replace_one", "progress": False}
"""No noise and no plan: the calibrated values are exact, and there is no privacy cost."""


def of_masks(threshold, loss="missed_area", classes=1):
    """A release of masks with a given threshold."""
    return RiskCalibration(loss, 1.0, replace(calibration_at(threshold, score=critical_score(loss)), classes=classes))


def calibrated(classes=1, **options):
    """A release that is written to a file and read back."""
    p = np.random.default_rng(0).dirichlet(np.ones(3), (50, 8)).transpose(0, 2, 1)[:, :classes]
    return confide.calibrate_masks(
        zip(p, p > 0.3, strict=True), 0.2, mechanism="none", neighbors="replace_one", **options
    )


@pytest.mark.parametrize("spatial", [(6, 5), (4, 3, 5)])
def test_the_transform_returns_the_masks_of_confide(spatial, tmp_path):
    """From a file, of logits or probabilities, numpy arrays, tensors and MetaTensors, in 2 and 3 dimensions."""
    from monai.data import MetaTensor
    from monai.transforms import Compose

    z = torch.randn(3, *spatial)
    released = calibrated(3, background=0)
    released.save(tmp_path / "release.json")
    for options, p in ((("softmax",), z.softmax(0)), (("sigmoid",), z.sigmoid()), ((), z.softmax(0))):
        expected = confide.predict_masks(p.numpy(), released)
        given = z if options else p
        transform = front.ConformalSet(tmp_path / "release.json", **dict.fromkeys(options, True))
        found = transform(given)
        assert (found.dtype, found.shape) == (torch.float32, z.shape)
        assert (found.numpy() == expected).all()
        array = transform(given.numpy())
        assert isinstance(array, np.ndarray)
        assert (array == expected).all()
        meta = transform(MetaTensor(given, meta={"filename_or_obj": "a.nii"}))
        assert isinstance(meta, MetaTensor)
        assert meta.meta["filename_or_obj"] == "a.nii"
        assert torch.equal(meta.as_tensor(), found)
        done = Compose([front.ConformalSetd(["pred"], released, **dict.fromkeys(options, True), dtype=torch.uint8)])(
            {"pred": given, "other": 1}
        )
        assert done["pred"].dtype == torch.uint8
        assert (done["pred"].numpy() == expected).all()
        assert done["other"] == 1
    assert torch.equal(copy.deepcopy(transform)(p), transform(p))
    assert front.ConformalSetd("pred", released, allow_missing_keys=True)({"a": 1}) == {"a": 1}


def test_the_transform_returns_the_sets_of_confide():
    z = torch.randn(40, 5)
    released = replace(calibration_at(0.7, score="aps_deterministic"), classes=5)
    transform = front.ConformalSet(released, softmax=True)
    expected = confide.predict_set(torch.softmax(z, 1), released).mask
    assert (torch.stack([transform(one) for one in z]).numpy() == expected).all()


def test_errors():
    released, one = of_masks(0.5, classes=3), of_masks(0.5)
    for made, error, argument in (
        (lambda: front.ConformalSet(released, softmax=True, sigmoid=True), confide.InputError, "softmax"),
        (lambda: front.ConformalSet(calibration_at(0.5), sigmoid=True), confide.InputError, "sigmoid"),
        (lambda: front.ConformalSet(3), confide.InputTypeError, "calibration"),
        (lambda: front.ConformalSet(one, softmax=True)(torch.randn(1, 2, 2)), confide.InputError, "sigmoid"),
        (lambda: front.ConformalSet(released)(torch.rand(2, 4, 4)), confide.InputError, "probabilities"),
        (
            lambda: front.ConformalSet(calibration_at(0.5))(torch.rand(3, 4, 4)),
            confide.InputError,
            "img",
        ),
        (lambda: front.MissedArea()(torch.ones(2, 3), torch.ones(2)), confide.InputError, "y_pred"),
        (lambda: front.Coverage()(torch.ones(2, 3), torch.tensor([0, 3])), confide.InputError, "y"),
        (lambda: front.Coverage()(torch.ones(2, 3, 4), torch.ones(2)), confide.InputError, "y_pred"),
        (
            lambda: front.calibrate_masks(torch.nn.Identity(), [{"image": torch.ones(1, 1, 2, 2)}], 0.1, **EXACT),
            confide.InputTypeError,
            "loader",
        ),
        (
            lambda: front.calibrate_masks(
                torch.nn.Identity(), [{"image": torch.ones(1, 1, 2, 2), "label": torch.ones(1, 1, 2, 2)}], 0.1,
                softmax=True, **EXACT,
            ),
            confide.InputError,
            "sigmoid",
        ),
    ):  # fmt: skip
        with refused(error, argument):
            made()


class Network(torch.nn.Module):
    """Logits that are the image itself, shifted in training mode only: it must be called in evaluation mode."""

    def forward(self, x):
        return x + 100 if self.training else x


def test_calibration_from_a_loader_through_an_inferer():
    """Dictionaries with further keys, MetaTensors, and a sliding window: the release equals that of the pairs."""
    from monai.data import DataLoader, Dataset, MetaTensor
    from monai.inferers import SlidingWindowInferer

    z = 2 * torch.randn(60, 1, 8, 8)
    truth = (torch.rand(z.shape) < z.sigmoid()).float()
    items = [
        {"image": MetaTensor(one, meta={"name": str(i)}), "label": MetaTensor(y), "name": str(i)}
        for i, (one, y) in enumerate(zip(z, truth, strict=True))
    ]
    loader = DataLoader(Dataset(items), batch_size=16)
    network = Network().train()
    calibrate = partial(front.calibrate_masks, network, loader, 0.2, sigmoid=True, **EXACT)
    pairs = zip(z.sigmoid(), truth, strict=True)
    numbers = confide.ExperimentalUniforms
    wanted = confide.calibrate_masks(pairs, 0.2, u=numbers(0), mechanism="none", neighbors="replace_one")
    assert calibrate(u=numbers(0)) == wanted
    inferer = SlidingWindowInferer(roi_size=(4, 4), sw_batch_size=3)
    assert calibrate(u=numbers(0), inferer=inferer) == wanted
    assert network.training
    assert wanted.calibration.guarantee.n == 60


def test_metrics_are_those_of_the_evaluation():
    """For batches and decollated lists, class numbers and one-hot true labels; `reset` clears the state."""
    from monai.networks import one_hot

    p = torch.softmax(2 * torch.randn(12, 3, 5, 4), 1)
    truth = torch.distributions.Categorical(probs=p.movedim(1, -1)).sample()
    truth[0] = 0  # no area
    released = of_masks(0.6, "missed_area(background=0,average=classes)", 3)
    found = confide.evaluate_masks(zip(p.numpy(), truth.numpy(), strict=True), released)
    masks = torch.from_numpy(np.stack([confide.predict_masks(one, released) for one in p.numpy()])).float()
    missed, ratio, size = front.MissedArea(released), front.AreaRatio(released), front.SetSize()
    for y in (truth, truth[:, None], truth[:, None].float(), one_hot(truth[:, None], 3)):
        for metric in (missed, ratio, size):
            metric.reset()
        per_image = missed(y_pred=masks[:5], y=y[:5])
        assert per_image.shape == (5, 1)
        assert per_image[0] == 0
        missed(y_pred=list(masks[5:]), y=list(y[5:]))
        ratio(y_pred=masks, y=y)
        size(y_pred=masks)
        assert missed.aggregate().item() == pytest.approx(found.missed_area, abs=1e-6)
        assert ratio.aggregate().item() == pytest.approx(found.area_ratio, abs=1e-6)
        assert size.aggregate().item() == pytest.approx(masks.sum(1).mean().item(), abs=1e-6)
    by_hand = front.MissedArea(background=0, average="classes")
    by_hand(y_pred=masks, y=truth)
    assert by_hand.aggregate().item() == pytest.approx(found.missed_area, abs=1e-6)
    missed.reset()
    assert np.isnan(missed.aggregate().item())


def test_coverage_of_sets_of_classes():
    sets = torch.tensor([[1.0, 0, 1], [0, 1, 0], [0, 0, 0]])
    labels = torch.tensor([2, 0, 1])
    for y in (labels, labels[:, None], torch.eye(3)[labels]):
        metric = front.Coverage()
        assert metric(y_pred=sets, y=y).flatten().tolist() == [1, 0, 0]
        assert metric.aggregate().item() == pytest.approx(1 / 3)
    size = front.SetSize()
    size(y_pred=sets)
    assert size.aggregate().item() == pytest.approx(1)


def test_a_bundle_names_the_transform_in_its_configuration(tmp_path):
    from monai.bundle import ConfigParser

    released = calibrated()
    released.save(tmp_path / "conformal.json")
    parser = ConfigParser(
        {
            "bundle_root": str(tmp_path),
            "post": {
                "_target_": "confide.monai.ConformalSetd",
                "keys": "pred",
                "release": "$@bundle_root + '/conformal.json'",
            },
        }
    )
    post = parser.get_parsed_content("post")
    p = torch.rand(1, 6, 5)
    assert (post({"pred": p})["pred"].numpy() == confide.predict_masks(p.numpy(), released)).all()
