"""Turn packed scans into inputs of a network; learn the scaling on training scans."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from joblib import hash as joblib_hash
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import threadpool_limits

from brainlsap.arrays import (
    PackedScans,
    SelectedRows,
    as_number_array,
    check_connectomes,
    check_features,
    fill_masked_values,
    unpack_connectomes_and_features,
)
from brainlsap.class_prior import ClassPriorMixin
from brainlsap.exceptions import ParameterError
from brainlsap.graph import Preparation
from brainlsap.graph.spectral import (
    ChebyshevSeries,
    GraphBatch,
    iter_rows_and_polynomials,
)
from brainlsap.model.network import (
    GRAPHS_AT_ONCE,
    NETWORKS,
    SPECTRUM_CACHE,
    DenseGraphs,
)
from brainlsap.model.settings import Settings
from brainlsap.text import count_text, option_name, option_text

# Clip standardised features here: their squares must fit in float32.
_MAX_Z_SCORE = 1e6


class PackedClassifier(ClassPriorMixin, ClassifierMixin, BaseEstimator):
    """Base class of classifiers of packed scans."""

    # Cross-validation hands it `PackedScans` in place of the packed array.
    reads_packed_scans: ClassVar = True
    # With metadata routing, searches, pipelines and scores pass groups to `fit`.
    __metadata_request__fit: ClassVar = {"groups": True}

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most probable class of scans under the class weights of the fit.

        With balanced weights, this rule maximises balanced accuracy. It does not
        depend on `class_prior`, so for a rare class `predict_proba` can give a higher
        probability to another class.
        """
        # Compute this first: it raises NotFittedError if the model is not fitted.
        class_probabilities = self.predict_proba(X)
        return self.classes_[self.choose_class_indices(class_probabilities)]

    def _learn_class_codes(
        self,
        y: np.ndarray,
        n_scans: int,
        classes: Sequence | None,
        head_name: str = "softmax",
    ) -> np.ndarray:
        """Learn the classes in their order; return the code of every scan.

        The codes are those of :func:`order_classes_and_codes`.
        `classes_` is sorted, because scores of scikit-learn expect the columns of
        probabilities in this order.
        """
        self.stages_, class_codes = order_classes_and_codes(
            y, n_scans, classes, head_name
        )
        self.classes_ = np.sort(self.stages_)
        return class_codes

    def _learn_connectomes_and_features(
        self,
        X: np.ndarray,
        groups: np.ndarray,
        connectome_preparation: Preparation,
        scaling_mode: str,
        *,
        warns_of_empty: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn how to prepare scans; return their connectomes and features.

        With `warns_of_empty`, warn if every connectome is empty.
        """
        connectomes, features = check_and_unpack_scans(X)
        if warns_of_empty and _are_all_empty(connectomes):
            warnings.warn(
                "All connectomes are empty. Give connectome='covariance' to estimate "
                "one from the features, or connectome='own' to fit without "
                "connections.",
                UserWarning,
                stacklevel=5,
            )
        self.n_rois_, self.n_features_ = features.shape[1:]
        self.scaler_ = InputScaler.learn(features, scaling_mode)
        self.measured_ = self.scaler_.measured
        self.shared_connectome_ = None
        if are_equal_connectomes(connectomes):
            self.shared_connectome_ = np.array(connectomes[0])
        threshold = connectome_preparation.threshold
        max_weight = 0.0
        if threshold:
            max_weight = max(
                float(
                    np.triu(
                        connectomes[block_start : block_start + GRAPHS_AT_ONCE], 1
                    ).max()
                )
                for block_start in range(0, len(connectomes), GRAPHS_AT_ONCE)
            )
        if connectome_preparation.connectome == "own" and 0 < max_weight < threshold:
            raise ParameterError(
                f"{option_name('threshold')} {threshold:g} leaves no connection; the "
                f"largest weight of a connection is {max_weight:g}. Choose a smaller "
                "threshold."
            )
        self.preparation_ = connectome_preparation.learn(features, groups)
        return connectomes, features


def _are_all_empty(connectomes: np.ndarray | SelectedRows) -> bool:
    """Return whether no connectome has a connection; the first with one ends it."""
    return not any(np.any(connectome) for connectome in connectomes)


def check_and_unpack_scans(
    X: np.ndarray | PackedScans, expected_shape: tuple[int, int] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return connectomes, and features in float64, of packed scans that can be used.

    Parameters
    ----------
    X : array of shape (n_scans, n_rois, n_rois + n_features)
    expected_shape : (n_rois, n_features), optional
        As in the fit.
    """
    X = as_number_array(X)
    has_checked_connectomes = isinstance(X, PackedScans)
    if X.ndim == 3 and X.dtype.kind != "f":
        X = X.astype(np.float64)
    connectomes, features = unpack_connectomes_and_features(X)
    if len(X) == 0:
        raise ParameterError("X contains no scan.")
    if expected_shape is not None and features.shape[1:] != expected_shape:
        raise ParameterError(
            f"X must have {count_text(expected_shape[0], 'region')} and "
            f"{count_text(expected_shape[1], 'feature')}, as in the fit; got "
            f"{count_text(features.shape[1], 'region')} and "
            f"{count_text(features.shape[2], 'feature')}."
        )
    if not has_checked_connectomes:
        check_connectomes(connectomes)
    features = np.array(features, dtype=np.float64)
    check_features(features)
    return connectomes, features


def order_classes_and_codes(
    y: np.ndarray,
    n_scans: int,
    classes: Sequence | None = None,
    head_name: str = "softmax",
) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes that occur, in order, and the code of every scan.

    Parameters
    ----------
    y : array of shape (n_scans,)
        Class of every scan.
    n_scans : int
    classes : sequence or None
        All classes in order of stage; None sorts them, as scikit-learn does.
    head_name : {"ordinal", "softmax"}
        With "ordinal", more than two classes must be given an order, or be numbers.
    """
    y = np.asarray(fill_masked_values(y))
    if y.shape != (n_scans,):
        raise ParameterError(
            f"y must have shape ({n_scans},), one label for each scan; got {y.shape}."
        )
    if (missing_label_mask := pd.isna(y)).any():
        raise ParameterError(
            f"y has no label for {count_text(missing_label_mask.sum(), 'scan')} (NaN, "
            "None or masked). Leave these scans out."
        )
    present_classes, class_codes = np.unique(y, return_inverse=True)
    if len(present_classes) < 2:
        classes_text = (
            ", ".join(repr(str(class_name)) for class_name in present_classes) or "none"
        )
        raise ParameterError(
            f"y must contain at least two classes; got only {classes_text}."
        )
    if classes is None:
        if (
            head_name == "ordinal"
            and len(present_classes) > 2
            and present_classes.dtype.kind not in "biuf"
        ):
            raise ParameterError(
                f"{option_text('head', 'ordinal')} requires the order of the "
                "classes, which is unknown for "
                f"{', '.join(map(str, present_classes))}. List all classes in order "
                f"of stage with {option_text('classes')}."
            )
        return present_classes, class_codes
    all_classes = list(classes)
    if len(set(all_classes)) < len(all_classes) or not set(present_classes) <= set(
        all_classes
    ):
        # cross_val_predict numbers sorted labels where it asks for probabilities
        raise ParameterError(
            f"classes must list every class of y once, in order; got {all_classes}, "
            f"but y contains {present_classes.tolist()}. Some functions of "
            "scikit-learn replace labels by numbers. For such functions, encode the "
            "labels as numbers first: y=pd.Categorical(labels, classes).codes, "
            "classes=range(n_classes)."
        )
    class_positions = np.array(
        [all_classes.index(class_name) for class_name in present_classes]
    )
    return present_classes[
        class_positions.argsort()
    ], class_positions.argsort().argsort()[class_codes]


@dataclass(frozen=True, eq=False)
class InputScaler:
    """Standardise the features of every region; unmeasured values become 0.

    `region`: minus the mean, over the standard deviation, of that region over the
    training scans; a region that does not vary gives 0, and z-scores are clipped at
    a million. `scan` (the paper): within each scan and kind of
    measure, minus the mean over regions, over their range; this erases global atrophy.

    Attributes
    ----------
    mode : {"region", "scan"}
    mean, deviation : arrays of shape (n_rois, n_features)
        Of the training scans.
    measured : bool array of shape (n_rois,)
        Regions with a value in any training scan.
    """

    mode: str
    mean: np.ndarray
    deviation: np.ndarray
    measured: np.ndarray

    @classmethod
    def learn(cls, features: np.ndarray, scaling_mode: str = "region") -> "InputScaler":
        """Learn from features of shape (n_scans, n_rois, n_features)."""
        measured_value_mask = ~np.isnan(features)
        if not measured_value_mask.any():
            raise ParameterError(
                "the features are NaN in every region of every scan. Give measured "
                "values."
            )
        feature_measured_counts = np.maximum(measured_value_mask.sum(0), 1)
        feature_means = (
            np.where(measured_value_mask, features, 0.0).sum(0)
            / feature_measured_counts
        )
        centred_features = np.where(measured_value_mask, features - feature_means, 0.0)
        feature_sds = np.sqrt(
            (centred_features**2).sum(axis=0) / feature_measured_counts
        )
        # rounding alone gives a constant region a spread of about 1e-16 of its mean
        constant_feature_mask = feature_sds <= 1e-9 * np.abs(feature_means) + 1e-300
        feature_sds = np.where(constant_feature_mask, np.inf, feature_sds)
        return cls(
            scaling_mode,
            feature_means,
            feature_sds,
            measured_value_mask.any(axis=(0, 2)),
        )

    def compute_z_scores(self, features: np.ndarray) -> np.ndarray:
        """Return the deviations from the training scans, in s.d., in either mode."""
        z_scores = np.nan_to_num((features - self.mean) / self.deviation, nan=0.0)
        return np.clip(z_scores, -_MAX_Z_SCORE, _MAX_Z_SCORE, out=z_scores)

    def apply(self, features: np.ndarray) -> np.ndarray:
        """Return scaled features of the same shape, without NaN."""
        if self.mode == "region":
            return self.compute_z_scores(features)
        measured_value_mask = ~np.isnan(features)
        scan_measured_counts = np.maximum(measured_value_mask.sum(1, keepdims=True), 1)
        scan_means = (
            np.where(measured_value_mask, features, 0.0).sum(1, keepdims=True)
            / scan_measured_counts
        )
        scan_maxima = np.where(measured_value_mask, features, -np.inf).max(
            1, keepdims=True
        )
        scan_minima = np.where(measured_value_mask, features, np.inf).min(
            1, keepdims=True
        )
        # a scan without values, or without range, gives 0
        scan_ranges = np.where(
            scan_maxima > scan_minima, scan_maxima - scan_minima, np.inf
        )
        return np.where(measured_value_mask, (features - scan_means) / scan_ranges, 0.0)


def are_equal_connectomes(connectomes: np.ndarray | SelectedRows) -> bool:
    """Return whether all connectomes are the same; the first that differs ends it."""
    if isinstance(connectomes, SelectedRows):
        return connectomes.are_rows_equal()
    first_connectome = connectomes[0]
    return connectomes.strides[0] == 0 or all(
        np.array_equal(connectome, first_connectome) for connectome in connectomes
    )


def make_batch(
    connectomes: np.ndarray | SelectedRows,
    scaled_features: np.ndarray,
    network_settings: Settings,
    connectome_preparation: Preparation,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
) -> GraphBatch | DenseGraphs:
    """Precompute layer one, and decompose the graphs where further layers need them.

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
    scaled_features : array of shape (n_scans, n_rois, n_features)
        From :class:`InputScaler`.
    network_settings : Settings
        With the degree settled.
    connectome_preparation : Preparation
        Learned from the training scans.
    device : torch.device
    dtype : torch.dtype
    """
    has_shared_connectome = (
        connectome_preparation.network is not None or are_equal_connectomes(connectomes)
    )
    unique_connectomes = connectomes[:1] if has_shared_connectome else connectomes
    if network_settings.inputs == "constant":
        scaled_features = np.ones_like(scaled_features)
    X = torch.from_numpy(scaled_features).to(device, dtype)
    if network_settings.network == "heat":
        kernel_arguments = (
            network_settings.kernel,
            network_settings.degree,
            float(network_settings.max_scale or 0.0),
        )
        chebyshev_series = ChebyshevSeries(*kernel_arguments, dtype, device)
        if network_settings.n_layers == 1:
            signal_terms = _compute_signal_terms(
                connectomes,
                scaled_features,
                connectome_preparation,
                chebyshev_series,
                has_shared_connectome=has_shared_connectome,
            )
            return GraphBatch.from_terms(chebyshev_series, signal_terms.to(device))
        spectrum_blocks = SPECTRUM_CACHE.iter_spectra(
            unique_connectomes, connectome_preparation, dtype
        )
        return GraphBatch(
            chebyshev_series,
            spectrum_blocks,
            X,
            stores_graphs=network_settings.n_layers > 1,
        )
    network_kind = NETWORKS[network_settings.network]
    if network_kind.make_graphs is None:
        return DenseGraphs(X, ())
    initial_scale = float(network_settings.initial_scale)
    matrix_batches = [
        network_kind.make_graphs(
            connectome_preparation.apply(
                unique_connectomes[batch_start : batch_start + GRAPHS_AT_ONCE]
            ),
            initial_scale,
        )
        for batch_start in range(0, len(unique_connectomes), GRAPHS_AT_ONCE)
    ]
    graph_matrices = (
        torch.cat(matrix_blocks) for matrix_blocks in zip(*matrix_batches, strict=True)
    )
    return DenseGraphs(
        X, tuple(graph_matrix.to(device, dtype) for graph_matrix in graph_matrices)
    )


@threadpool_limits.wrap(limits=1)
def _compute_signal_terms(
    connectomes: np.ndarray | SelectedRows,
    signals: np.ndarray,
    connectome_preparation: Preparation,
    chebyshev_series: ChebyshevSeries,
    *,
    has_shared_connectome: bool,
) -> torch.Tensor:
    """Return the terms T_n(L - I) x of signals: all that one layer needs of graphs.

    Those that a ridge stored for the same signals are taken over.
    """
    if isinstance(connectomes, SelectedRows) and connectomes.keeps_polynomials:
        signal_key, stored_polynomials = connectomes.polynomials
        if (
            stored_polynomials is not None
            and signal_key == make_signal_key(signals, connectome_preparation)
            and len(stored_polynomials) > chebyshev_series.order
            and chebyshev_series.dtype == torch.float32
        ):
            connectomes.polynomials = ("", None)
            return torch.from_numpy(stored_polynomials[: chebyshev_series.order + 1])
    signal_terms = torch.empty(
        chebyshev_series.order + 1, *signals.shape, dtype=chebyshev_series.dtype
    )
    for scan_slice, polynomials in iter_rows_and_polynomials(
        connectomes,
        signals,
        connectome_preparation,
        chebyshev_series.order,
        has_shared_connectome=has_shared_connectome,
    ):
        signal_terms[:, scan_slice] = torch.from_numpy(polynomials)
    return signal_terms


def make_signal_key(signals: np.ndarray, connectome_preparation: Preparation) -> str:
    """Return a key of signals and of the preparation of their connectomes."""
    return str(joblib_hash((signals, vars(connectome_preparation))))


@contextmanager
def use_threads(n_threads: int) -> Iterator[None]:
    """Use so many CPU threads inside, and as many as before afterwards."""
    n_threads_before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads_before)
