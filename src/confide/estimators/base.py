"""`PrivateConformal`, the common base of the two estimators: how they train, calibrate, and choose a model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _is_fitted, check_is_fitted, validate_data

from confide.arrays import GroupColumns, refuse_other_rows
from confide.candidates import AnyCandidates
from confide.core import (
    By,
    Choice,
    ModelFingerprint,
    Payer,
    Release,
    Request,
    Source,
    choose_score,
    is_several,
    release,
    renewed,
    source_of,
)
from confide.errors import InputError, InputTypeError, RetrainedWarning
from confide.estimators.split import (
    calibrating,
    checked_target,
    checked_weights,
    has_entry_per_record,
    of_rows,
    rows_of,
)
from confide.mechanisms import Chosen, Neighbors
from confide.scores import NamedScores
from confide.support import Level, caller_stacklevel, exact_level, require

if TYPE_CHECKING:
    from confide.ledger import Dataset, Ledger


class SecondReleaseWarning(UserWarning):
    """An estimator was calibrated again: on shared records the privacy loss of this second release adds up."""


@dataclass(frozen=True)
class _Offer:
    """A trained model and a score, from which thresholds may be released; a single model has no name."""

    model: str
    estimator: Any
    score: str

    @property
    def name(self) -> str:
        return f"{self.model} {self.score}" if self.model else self.score


@dataclass(eq=False, repr=False)
class PrivateConformal(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Common base of the classifier and the regressor, whose docstrings describe the parameters.

    A subclass defines `_default`, and the methods `_usable`, `_outputs`, `_scores` and `_sizes`.
    """

    estimator: Any = None
    alpha: Level | Sequence[Level] | None = None
    epsilon: float = 1.0
    _: KW_ONLY
    confidence_level: Level | Sequence[Level] | None = None
    conformity_score: str | Sequence[str] = ""
    calibration_size: float = 0.5
    prefit: bool = False
    group_names: Sequence[str | int] | Mapping[str, Sequence[str | int]] | None = None
    partition: str | None = None
    neighbors: Neighbors = "add_remove"
    delta: Level | None = None
    candidates: AnyCandidates = None
    ledger: Ledger | None = None
    dataset: str | Dataset | None = None
    again: bool = False
    about: Mapping[str, str] | None = None
    choice_share: Level = "1/5"
    largest_size: float | None = None
    probe: Any = None
    random_state: Any = None

    _default: ClassVar[type]
    """The estimator that is trained if none is given."""

    __metadata_request__fit = {"sample_weight": None}  # noqa: RUF012
    """For `set_fit_request(sample_weight=True)`: `fit` accepts weights among its **fit_params."""

    def fit(self, X: Any, y: ArrayLike, *, groups: ArrayLike | None = None, **fit_params: Any) -> Self:
        """Train on one part of the records and calibrate on the other; with `prefit`, calibrate on all of them.

        Warns
        -----
        RetrainedWarning
            If the estimator is already fitted, and `prefit` is not set.

        Parameters
        ----------
        X
            Shape (n, features), of any type that the estimator accepts.
        y
            Shape (n,).
        groups
            With `group_names`: the group of each record, shape (n,). For groups that overlap: a data frame, or an array
            of shape (n, columns).
        **fit_params
            Arguments for the estimator's own `fit`, such as `sample_weight`, or `step__sample_weight` of a pipeline;
            arrays with one entry per record are divided like the records. Weights are for training: all records have
            the same weight in calibration. With scikit-learn's metadata routing, only arguments that the inner
            estimator requests, and `sample_weight` if this estimator requests it.
        """
        # A fitted estimator calibrates on all records.
        target = self._check(X, y, groups, reset=True)
        if self.prefit:
            require("estimator", self.estimator is not None, "must be a fitted estimator with prefit=True", got="None")
            require("fit_params", not fit_params, "must be left out with prefit=True: nothing is trained")
            self._adopt()
            return self._release(X, target, groups)

        # What is divided like the records: groups, and arguments of the training.
        self._warn_of_retraining()
        n = len(target)
        fit_params = checked_weights(fit_params, n)
        arguments = self._routed(fit_params)
        per_record = [value for value in fit_params.values() if has_entry_per_record(value, n)]
        arrays = [value for value in (groups, *per_record) if value is not None]
        calibrates = calibrating(self.calibration_size, self.random_state, n, X, target, *arrays)
        training = np.flatnonzero(~calibrates)
        calibration = np.flatnonzero(calibrates)
        require("X", len(training), "must contain records that train the model", got=f"none among n_samples={n}")

        # Train on some records, and calibrate on the others.
        arguments_of_training = {name: of_rows(stated, n, training) for name, stated in arguments.items()}
        self._train(rows_of(X, training), rows_of(target, training), arguments_of_training)
        calibration_groups = None if groups is None else rows_of(groups, calibration)
        return self._release(rows_of(X, calibration), target[calibration], calibration_groups)

    def calibrate(self, X: Any, y: ArrayLike, *, groups: ArrayLike | None = None) -> Self:
        """Calibrate again, on held-out records that did not train the model. Every call is a separate release.

        Warns
        -----
        SecondReleaseWarning
            If the estimator was calibrated before: on records that are used twice, the privacy losses add up.
        """
        if self.prefit and not hasattr(self, "n_releases_"):
            return self.fit(X, y, groups=groups)
        check_is_fitted(self)
        return self._release(X, self._check(X, y, groups, reset=False), groups)

    def renew(self, X: Any, y: ArrayLike, *, groups: ArrayLike | None = None) -> Self:
        """Renew the release with new held-out records: the same request, as `confide.recalibrate` does.

        Parameters
        ----------
        X, y, groups
            As in `calibrate`: records that did not train the model.
        """
        check_is_fitted(self)
        target = self._check(X, y, groups, reset=False)
        request = renewed(self.calibration_, about=self.about, fingerprint=self._fingerprint())
        return self._release(X, target, groups, request)

    def predict(self, X: Any) -> NDArray[Any]:
        """The point predictions of the trained estimator, shape (n,)."""
        self._check_new(X)
        return self._point(X)

    def _point(self, X: Any) -> NDArray[Any]:
        return np.asarray(self.estimator_.predict(X))

    def _train(self, X: Any, y: NDArray[Any], arguments: dict[str, dict[str, Any]]) -> None:
        self._take([clone(estimator).fit(X, y, **arguments[name]) for name, estimator in self._inner().items()])

    def _adopt(self) -> None:
        fitted = list(self._inner().values())
        for estimator in fitted:
            check_is_fitted(estimator)
        self._take(fitted)

    def _take(self, fitted: list[Any]) -> None:
        """Store fitted estimators: a tuple as such; of a mapping all, and the first until one is chosen."""
        self.estimator_: Any = tuple(fitted) if isinstance(self.estimator, tuple) else fitted[0]
        if isinstance(self.estimator, Mapping):
            self.estimators_ = dict(zip(self.estimator, fitted, strict=True))

    def _warn_of_retraining(self) -> None:
        """Warn if an estimator is already fitted, because its fitted state is not used."""
        for estimator in self._inner().values():
            if _is_fitted(estimator) and not _is_fitted(clone(estimator)):
                warnings.warn(
                    f"estimator was fitted already, and a copy of it is trained again on part of these records: pass "
                    f"prefit=True to calibrate the fitted {type(estimator).__name__} on all of them",
                    RetrainedWarning,
                    stacklevel=caller_stacklevel(),
                )

    def _inner(self) -> dict[str, Any]:
        """The estimators that are trained: the given one, or the default one."""
        if isinstance(self.estimator, Mapping):
            if not self.estimator or not all(isinstance(name, str) for name in self.estimator):
                raise InputError("estimator", "must map names to one estimator or more; names are str")
            return dict(self.estimator)
        return {"estimator": self._default() if self.estimator is None else self.estimator}

    def _routed(self, fit_params: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Arguments for the `fit` of each inner estimator: all, or, with metadata routing, those that it requests."""
        if not get_config()["enable_metadata_routing"]:
            return {name: dict(fit_params) for name in self._inner()}
        # Weights that this estimator requests itself are passed on; scikit-learn routes the others.
        requests_weights = self._get_metadata_request().fit.requests.get("sample_weight") not in (None, False)
        weights = {name: value for name, value in fit_params.items() if requests_weights and name == "sample_weight"}
        others = {name: value for name, value in fit_params.items() if name not in weights}
        requested = process_routing(self, "fit", **others)
        return {name: {**requested[name].fit, **weights} for name in self._inner()}

    def get_metadata_routing(self) -> MetadataRouter:
        """The requests of `fit` itself, `groups` and `sample_weight`, and those of the estimators that it trains.

        With `set_fit_request(sample_weight=True)` here, weights are passed on unchanged. Otherwise the estimator's own
        request determines whether they are passed on.
        """
        requests = self._get_metadata_request()
        if requests.fit.requests.get("sample_weight") is None:
            requests.fit.requests.pop("sample_weight", None)
        router = MetadataRouter(owner=self).add_self_request(requests)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return router if self.prefit else router.add(method_mapping=mapping, **self._inner())

    @property
    def _alpha(self) -> Any:
        """The level or levels that are requested: `alpha`, or one minus `confidence_level`."""
        if self.confidence_level is None:
            return 0.1 if self.alpha is None else self.alpha
        if self.alpha is not None:
            raise InputError("confidence_level", "must be left out if alpha is given: it is 1 - alpha", got="both")
        levels: Any = self.confidence_level
        if not is_several(levels):
            return 1 - exact_level("confidence_level", levels)
        return [1 - exact_level("confidence_level", level) for level in levels]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "calibration_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = next(iter(self._inner().values()))
        tags.input_tags = get_tags(inner).input_tags
        return tags

    def _release(self, X: Any, y: NDArray[Any], groups: ArrayLike | None, renewal: Request | None = None) -> Self:
        """Release thresholds from these records; first choose a model and a score, if there are several."""
        releases = getattr(self, "n_releases_", 0)
        if releases and renewal is None:
            _warn_of_further_release(releases + 1)

        # A choice uses some of the records; the others calibrate.
        dataset = self.dataset
        chosen = None
        offers = self._offers() if renewal is None else {}
        if len(offers) > 1:
            choice = self._choose(X, y, offers)
            dataset = choice.options.get("dataset")
            chosen = choice.chosen
            rest = np.flatnonzero(choice.rest)
            X = rows_of(X, rest)
            y = y[rest]
            groups = None if groups is None else rows_of(groups, rest)

        # Prepare the request, and release.
        request = self._request(chosen) if renewal is None else renewal
        payer = Payer(self.ledger, dataset, self.partition if request.disjoint else None, self.again)
        self.calibration_ = release(self._source(X, y, groups, request), request, payer)
        self.n_releases_ = releases + 1
        return self

    def _source(self, X: Any, y: NDArray[Any], groups: ArrayLike | None, request: Request) -> Source:
        return source_of({None: self._scores(X, y)}, groups=groups)

    def _offers(self) -> dict[str, _Offer]:
        models = self.estimators_ if isinstance(self.estimator, Mapping) else {"": self.estimator_}
        scores = [self.conformity_score] if isinstance(self.conformity_score, str) else self.conformity_score
        offers = (_Offer(name, model, score) for (name, model), score in product(models.items(), scores))
        return {offer.name: offer for offer in offers}

    def _use(self, offer: _Offer) -> None:
        self.estimator_ = offer.estimator
        self.conformity_score_ = offer.score

    def _choose(self, X: Any, y: NDArray[Any], offers: Mapping[str, _Offer]) -> Choice:
        """Choose a model and a score on a share of the records, privately, and use them from now on."""
        # One threshold at one level.
        alpha = self._alpha
        _, by = self._parts()
        if by is not None and self.ledger is not None:
            requirement = "must be left out with several models or scores and thresholds per group or class"
            raise InputError("ledger", requirement, remedy="Its cells are those of one division of the records")
        require("alpha", not is_several(alpha), "must be one level with several models or scores", got="several")

        # The scores and the sizes of every offer.
        scores = {}
        sizes = {}
        for name, offer in offers.items():
            self._use(offer)
            scores[name] = NamedScores.of(self._scores(X, y), offer.score)
            sizes[name] = self._sizes(X)

        # An error about the release that follows is raised before anything is chosen.
        names = tuple(offers)
        self._request(Chosen(names[0], names, exact_level("choice_share", self.choice_share), epsilon=1.0))
        choice = choose_score(
            scores, alpha, self.epsilon, sizes=sizes, largest_size=self.largest_size,
            choice_share=self.choice_share, unit=getattr(self, "unit", None),
            ledger=self.ledger, dataset=self.dataset, again=self.again,
        )  # fmt: skip
        self._use(offers[choice.name])
        return choice

    @property
    def _score_name(self) -> str:
        return self.conformity_score if isinstance(self.conformity_score, str) else self.conformity_score_

    def _request(self, chosen: Chosen | None) -> Request:
        alpha = self._alpha
        names, by = self._parts()
        if is_several(alpha):
            require("alpha", by is None, "must be one level with thresholds per group or class", got="several")
            by = "level"
        return Request(
            alpha=alpha, epsilon=self.epsilon, by=by, names=names, score=self._score_name,
            classes=self._public_classes(), candidates=self.candidates, unit=getattr(self, "unit", None),
            neighbors=self.neighbors, delta=self.delta, about=self.about, chosen=chosen,
            fingerprint=self._fingerprint(),
        )  # fmt: skip

    def _fingerprint(self) -> ModelFingerprint | None:
        return None if self.probe is None else ModelFingerprint.of(self._outputs(self.probe))

    def _compared(self, alpha: Level | None) -> Release:
        """The release of a level; raises an error if the model is no longer the calibrated one."""
        if (model := self._fingerprint()) is not None:
            self.calibration_.for_model(model)
        return self.calibration_.at(alpha)

    def _parts(self) -> tuple[tuple[Any, ...] | GroupColumns, By | None]:
        """The keys of the thresholds and what they are; by default a single threshold without a key."""
        if self.group_names is None:
            return (), None
        if isinstance(self.group_names, Mapping):
            return GroupColumns(self.group_names), "group"
        return tuple(self.group_names), "group"

    def _public_classes(self) -> tuple[str | int, ...] | int | None:
        return None

    def _check_new(self, X: Any) -> None:
        check_is_fitted(self)
        got = "one dimension. Reshape your data with X.reshape(1, -1)"
        require("X", getattr(X, "ndim", 2) != 1, "must be two-dimensional", got=got)
        if not isinstance(X, list | tuple) or len(X):  # [] has no columns to check
            validate_data(self, X, reset=False, skip_check_array=True)

    def _check(self, X: Any, y: ArrayLike, groups: ArrayLike | None, *, reset: bool) -> NDArray[Any]:
        # Complex numbers, in the words that scikit-learn's common tests ask for; its own error would show the values.
        if getattr(getattr(X, "dtype", None), "kind", "") == "c":
            raise InputError("X", "must hold real numbers", got=f"dtype {X.dtype}", remedy="Complex data not supported")

        # Shapes and names as in `fit`; the public records calibrate nothing.
        validate_data(self, X, reset=reset, skip_check_array=True)
        if self.probe is not None and self.probe is X:
            raise InputError("probe", "must be other, public records", got="the records that calibrate")

        target = checked_target(X, y, type(self).__name__)

        # Groups, if and only if they have thresholds.
        refuse_other_rows(X=X, groups=groups)
        if isinstance(groups, Mapping):
            must = "must be a data frame or an array, whose rows are split along with X; a mapping cannot be split"
            raise InputTypeError("groups", must)
        together = "groups and group_names must be given together: each record's group, and all groups"
        require("groups", (groups is None) == (self.group_names is None), together)
        return self._usable(target)

    def _usable(self, y: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError


def _warn_of_further_release(number: int) -> None:
    warnings.warn(
        f"this is release number {number} of this estimator: on records that were used before, the privacy losses "
        "add up",
        SecondReleaseWarning,
        stacklevel=caller_stacklevel(),
    )
