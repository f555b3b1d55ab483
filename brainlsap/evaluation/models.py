"""Every model that is compared, by name: LSAP, baselines, and controls."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.decomposition import KernelPCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.metaestimators import available_if

from brainlsap.arrays import (
    EditFunction,
    PackedScans,
    as_number_array,
    check_groups,
    pack_scans,
    unpack_connectomes_and_features,
)
from brainlsap.class_prior import BALANCED, TRAINING, ClassPrior, ClassPriorMixin
from brainlsap.data.covariates import (
    IS_CATEGORICAL,
    KEY_COLUMNS,
    find_acquisition_kind,
    is_categorical_covariate,
)
from brainlsap.evaluation.confounds import (
    MOST_GROUPS,
    build_covariate_design,
    check_column_values,
    find_covariate_column,
    learn_coding_by_covariate,
)
from brainlsap.evaluation.splits import Split, make_splits
from brainlsap.exceptions import ParameterError, check_choice
from brainlsap.options import OPTIONS
from brainlsap.text import option_text

# Powers of ten among which C is tuned.
EXPONENTS_OF_C = {"logistic": range(-4, 2), "svm": range(-5, 1)}

# Tolerance of fits that are compared to choose C.
_TUNING_TOLERANCE = 1e-3

N_SELECTED = (5, 20, 80)
"""Numbers of features from which the baseline "selected features" chooses."""


def read_features(X: np.ndarray) -> np.ndarray:
    """Return the features alone, for models without connectomes.

    Parameters
    ----------
    X : array of shape (n_scans, n_rois, n_rois + n_features)
        The packed array of :meth:`.Cohort.to_array`.

    Returns
    -------
    array of shape (n_scans, n_rois * n_features)
        NaN where not measured.
    """
    features = np.array(
        unpack_connectomes_and_features(as_number_array(X))[1], dtype=np.float64
    )
    return features.reshape(len(features), -1)


def _unpack_connectomes_features_and_pairs(X: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return connectomes, features, and the two regions of each edge."""
    W, features = unpack_connectomes_and_features(np.asarray(as_number_array(X)))
    return W, features, *np.triu_indices(W.shape[1], 1)


def read_edges(X: np.ndarray) -> np.ndarray:
    """Return log(1 + w) of all edges of the packed array."""
    W, _, row_indices, column_indices = _unpack_connectomes_features_and_pairs(X)
    edge_sums = [
        A[row_indices, column_indices].astype(float) + A[column_indices, row_indices]
        for A in W
    ]
    return np.log1p(np.array(edge_sums) / 2)


def read_global_means(
    X: np.ndarray,
    hemispheres: Sequence[str] | None = None,
    structures: Sequence[str] | None = None,
) -> np.ndarray:
    """Return means and totals of each feature over the brain and each hemisphere.

    Cortex and subcortex are kept apart, because they may hold different measures
    (thickness and volume).

    Parameters
    ----------
    X : array of shape (n_scans, n_rois, n_rois + n_features)
        The packed array of :meth:`.Cohort.to_array`.
    hemispheres : sequence of {"L", "R", "M"}, optional
        Of every region, from the atlas; without it only the brain has means.
    structures : sequence of str, optional
        Of every region, from the atlas; all but "subcortex" count as cortex.

    Returns
    -------
    array of shape (n_scans, n_groups * 2 * n_features)
        For each group of regions the means, then the totals, over the regions that are
        measured in the scan; NaN where none is.
    """
    features = np.array(
        unpack_connectomes_and_features(as_number_array(X))[1], dtype=np.float64
    )
    n_rois = features.shape[1]
    subcortex_region_mask = np.zeros(n_rois, dtype=bool)
    if structures is not None:
        subcortex_region_mask = np.asarray(structures) == "subcortex"
    side_letters = (
        np.full(n_rois, "M") if hemispheres is None else np.asarray(hemispheres)
    )
    if not len(subcortex_region_mask) == len(side_letters) == n_rois:
        raise ParameterError(
            f"hemispheres and structures must have {n_rois} entries, one for each "
            f"region; got {len(side_letters)} and {len(subcortex_region_mask)} entries."
        )
    measured_value_mask = ~np.isnan(features)
    zero_filled_features = np.where(measured_value_mask, features, 0.0)
    column_blocks = []
    for structure_region_mask in (~subcortex_region_mask, subcortex_region_mask):
        for side_region_mask in (
            np.full(n_rois, True),
            side_letters == "L",
            side_letters == "R",
        ):
            group_region_mask = structure_region_mask & side_region_mask
            if group_region_mask.any():
                scan_measured_counts = measured_value_mask[:, group_region_mask].sum(
                    axis=1
                )
                group_totals = zero_filled_features[:, group_region_mask].sum(axis=1)
                group_totals = np.where(scan_measured_counts > 0, group_totals, np.nan)
                column_blocks += [
                    group_totals / np.maximum(scan_measured_counts, 1),
                    group_totals,
                ]
    return np.hstack(column_blocks)


def compute_input_f_values(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return F of the difference between classes in every input; 0 if constant."""
    varying_input_mask = np.ptp(X, axis=0) > 0
    F = np.zeros(X.shape[1])
    if varying_input_mask.any():
        with np.errstate(divide="ignore"):  # classes may not vary within
            F[varying_input_mask], _ = f_classif(X[:, varying_input_mask], y)
    return F


def _compute_mean_recall(
    test_class_codes: np.ndarray, predicted_codes: np.ndarray
) -> float:
    """Return the balanced accuracy, for one call of many.

    scikit-learn's function takes as long as a fit of few scans.
    """
    class_recalls = [
        np.mean(predicted_codes[test_class_codes == class_code] == class_code)
        for class_code in np.unique(test_class_codes)
    ]
    return float(np.mean(class_recalls))


def learn_coding_by_covariate_column(
    covariate_table: pd.DataFrame, y: np.ndarray
) -> dict[str, Any]:
    """Learn to code every column but keys, renamed labels and free text."""
    covariate_names = []
    for covariate_name, covariate_series in covariate_table.items():
        is_copy_of_label = _is_renamed_label(covariate_series, y)
        observed_series = covariate_series.dropna()
        # Text of many kinds is names or dates, but sites may be many.
        is_site_like = IS_CATEGORICAL.get(find_acquisition_kind(covariate_name), False)
        n_distinct_values = observed_series.nunique()
        max_distinct_values = max(
            MOST_GROUPS, len(observed_series) / (2 if is_site_like else 4)
        )
        if is_categorical_covariate(str(covariate_name), observed_series):
            is_usable = 1 < n_distinct_values <= max_distinct_values
        else:
            is_usable = len(observed_series) > 0
        if is_usable and not is_copy_of_label and covariate_name not in KEY_COLUMNS:
            covariate_names.append(str(covariate_name))
    return learn_coding_by_covariate(covariate_names, covariate_table)


def make_standardizer(input_kind: str = "features") -> Pipeline:
    """Return steps that centre and scale; values that were not measured become 0.

    Edges are rotated onto the span of the training scans. There are far more edges than
    scans, and a linear model with a squared penalty never leaves that span.
    """
    if input_kind == "edges":
        kernel_pca = KernelPCA(eigen_solver="dense", remove_zero_eig=True)
        return make_pipeline(StandardScaler(), kernel_pca)
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())


def choose_covariate_columns(
    table: pd.DataFrame, names: str | Sequence[str] | None = None
) -> tuple[str, ...]:
    """Return the columns that the models with covariates read.

    Parameters
    ----------
    table : DataFrame
        Of a cohort, or of training scans.
    names : str or sequence of str, optional
        Columns, or kinds such as "education"; by default age and sex, where the table
        has them with two values or more and they are not the label.

    Returns
    -------
    tuple of str
        Columns of the table.

    Raises
    ------
    ParameterError
        If a column is unknown, neither numbers nor groups, or the label itself.
    """
    if names is None:
        column_by_kind: dict[str, str] = {}
        for column_name in table.columns.drop(list(KEY_COLUMNS), errors="ignore"):
            covariate_kind, covariate_series = (
                find_acquisition_kind(column_name),
                table[column_name],
            )
            is_usable = covariate_series.nunique() > 1 and not _is_renamed_label(
                covariate_series, table["label"]
            )
            is_age = covariate_kind == "age" and not is_categorical_covariate(
                column_name, covariate_series
            )
            is_sex = (
                covariate_kind == "sex" and covariate_series.nunique() <= MOST_GROUPS
            )
            if is_usable and (is_age or is_sex):
                column_by_kind.setdefault(covariate_kind, str(column_name))
        return tuple(
            column_by_kind[covariate_kind]
            for covariate_kind in ("age", "sex")
            if covariate_kind in column_by_kind
        )
    names = [names] if isinstance(names, str) else list(names)
    covariate_column_names = tuple(
        dict.fromkeys(
            find_covariate_column(table, covariate_name) for covariate_name in names
        )
    )
    for column_name in covariate_column_names:
        if _is_renamed_label(table[column_name], table["label"]):
            raise ParameterError(
                f"{option_text('covariates')} names {column_name}, which is a copy of "
                "the label. Leave this covariate out."
            )
        check_column_values(table, column_name)
    return covariate_column_names


def _is_renamed_label(
    covariate_series: pd.Series, class_labels: pd.Series | np.ndarray
) -> bool:
    """Return whether each value goes with one label, and each label with one value."""
    value_label_table = pd.DataFrame(
        {"value": covariate_series.astype(str).to_numpy(), "label": class_labels}
    )
    return bool(
        (value_label_table.nunique() == len(value_label_table.drop_duplicates())).all()
    )


class LinearLoss(NamedTuple):
    """A loss of scores (n_outputs, n_scans) and classes.

    Attributes
    ----------
    compute : callable
        `(scores, is_class, weights) -> (loss, slopes)`: the sum over scans, and its
        derivatives in the scores.
    curvature : float
        Typical second derivative in a score.
    """

    compute: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[float, np.ndarray]]
    curvature: float


def _compute_softmax_loss_and_slope(
    decision_scores: np.ndarray, class_indicators: np.ndarray, scan_weights: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the cross-entropy of several classes."""
    shifted_scores = decision_scores - decision_scores.max(axis=0)
    probabilities = np.exp(shifted_scores)
    exp_sums = probabilities.sum(axis=0)
    scan_losses = np.log(exp_sums) - (shifted_scores * class_indicators).sum(axis=0)
    probabilities /= exp_sums
    return float(scan_weights @ scan_losses), (
        probabilities - class_indicators
    ) * scan_weights


def _compute_logistic_loss_and_slope(
    decision_scores: np.ndarray, class_indicators: np.ndarray, scan_weights: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the cross-entropy of two classes; the score is that of the second."""
    class_signs = 2.0 * class_indicators - 1.0
    margins = class_signs * decision_scores
    return -float(scan_weights @ log_expit(margins)[0]), -class_signs * expit(
        -margins
    ) * scan_weights


def _compute_squared_hinge_loss_and_slope(
    decision_scores: np.ndarray, class_indicators: np.ndarray, scan_weights: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the squared hinge of each class against the rest."""
    class_signs = 2.0 * class_indicators - 1.0
    margin_gaps = np.maximum(1 - class_signs * decision_scores, 0.0)
    return float(
        (scan_weights * margin_gaps**2).sum()
    ), -2 * class_signs * margin_gaps * scan_weights


def fit_coefs_and_intercepts(
    model_kind: str,
    X: np.ndarray,
    class_codes: np.ndarray,
    penalties: Sequence[float],
    class_weight: str | None = None,
    tolerance: float = 1e-5,
) -> list[tuple[np.ndarray, np.ndarray]]:
    r"""Fit a linear model at several penalties, each from the one before.

    The objectives are those of scikit-learn's `LogisticRegression` and `LinearSVC`,
    :math:`\tfrac{1}{2} |W|^2 + C \sum_i u_i \, loss(x_i W^\top + b)`. Their curvature
    is near :math:`I + C h X^\top U X`, with the loss's own curvature h. L-BFGS steps in
    coordinates in which this is the identity, so that correlated inputs need no more
    steps than others. The eigenvectors of :math:`X^\top U X` serve for all penalties.

    Parameters
    ----------
    model_kind : {"logistic", "svm"}
    X : array of shape (n_scans, n_inputs)
        Centred and scaled.
    class_codes : int array of shape (n_scans,)
        From 0 to the number of classes minus 1; none is missing.
    penalties : sequence of float
        C, in increasing order.
    class_weight : {None, "balanced"}
    tolerance : float
        Largest slope at the end, in standard deviations of the likelihood.

    Returns
    -------
    list of (coefficients, intercepts)
        For each C, of shapes (n_outputs, n_inputs) and (n_outputs,): an output per
        class, or that of the second of two.
    """
    n_scans = len(X)
    class_counts = np.bincount(class_codes)
    n_classes = len(class_counts)
    class_weights = np.ones(n_classes)
    if class_weight == "balanced":
        class_weights = n_scans / (n_classes * class_counts)
    scan_weights = class_weights[class_codes]
    # Numbers: truth values would be converted in every product.
    class_indicators = (class_codes == np.arange(n_classes)[:, None]).astype(float)
    if n_classes == 2:
        class_indicators = class_indicators[1:]
    if model_kind == "svm":
        # The intercept is penalised: a further input of ones. Only a class's own scans
        # have its weight, not the rest.
        linear_loss = LinearLoss(_compute_squared_hinge_loss_and_slope, 1.0)
        design_matrix = np.column_stack([X, np.ones(n_scans)])
        scan_metric_weights = np.ones(n_scans)
        if n_classes > 2:
            scan_weights = np.where(class_indicators, class_weights[:, None], 1.0)
    else:
        linear_loss = LinearLoss(_compute_softmax_loss_and_slope, 1 / n_classes)
        if n_classes == 2:
            linear_loss = LinearLoss(_compute_logistic_loss_and_slope, 0.25)
        scan_metric_weights = scan_weights
        input_means = scan_weights @ X / scan_weights.sum()
        design_matrix = X - input_means
    eigenvalues, V = _decompose_gram_matrix(
        design_matrix * np.sqrt(scan_metric_weights)[:, None]
    )
    rotated_design = design_matrix @ V
    penalty_weights = np.ones(len(eigenvalues))
    if (
        model_kind != "svm"
    ):  # the intercept: independent of the inputs, which are centred
        rotated_design = np.column_stack([rotated_design, np.ones(n_scans)])
        eigenvalues = np.append(eigenvalues, scan_weights.sum())
        penalty_weights = np.append(penalty_weights, 0.0)
    W = np.zeros((len(class_indicators), len(eigenvalues)))
    # A product with a copy takes half as long as one with a transposed view.
    transposed_design = np.ascontiguousarray(rotated_design.T)
    coefficient_intercept_pairs = []
    for C in penalties:
        step_scales = 1 / np.sqrt(
            penalty_weights + C * linear_loss.curvature * eigenvalues
        )

        def objective(
            x: np.ndarray, C: float = C, step_scales: np.ndarray = step_scales
        ) -> tuple[float, np.ndarray]:
            W = x.reshape(len(class_indicators), -1) * step_scales
            loss_sum, score_gradient = linear_loss.compute(
                W @ transposed_design, class_indicators, scan_weights
            )
            penalized_W = W * penalty_weights
            loss_gradient = (transposed_design @ score_gradient.T).T
            gradient = (C * loss_gradient + penalized_W) * step_scales
            return C * loss_sum + (penalized_W**2).sum() / 2, gradient.ravel()

        value_by_solver_option = {
            "gtol": tolerance * np.sqrt(C),
            "ftol": 1e-13,
            "maxiter": 2000,
        }
        start_coefficients = (W / step_scales).ravel()
        minimization_result = minimize(
            objective,
            start_coefficients,
            jac=True,
            method="L-BFGS-B",
            options=value_by_solver_option,
        )
        W = minimization_result.x.reshape(W.shape) * step_scales
        if model_kind == "svm":
            coefficients = W @ V.T
            coefficient_intercept_pairs.append(
                (coefficients[:, :-1], coefficients[:, -1])
            )
        else:
            coefficients = W[:, :-1] @ V.T
            coefficient_intercept_pairs.append(
                (coefficients, W[:, -1] - coefficients @ input_means)
            )
    return coefficient_intercept_pairs


def _decompose_gram_matrix(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues and eigenvectors of X'X, those of the span of the rows."""
    n_rows, n_columns = X.shape
    if n_rows >= n_columns:
        eigenvalues, V = np.linalg.eigh(X.T @ X)
        return np.maximum(eigenvalues, 0.0), V
    eigenvalues, left_eigenvectors = np.linalg.eigh(X @ X.T)
    positive_eigenvalue_mask = eigenvalues > 1e-12 * max(eigenvalues[-1], 1e-300)
    eigenvalues = eigenvalues[positive_eigenvalue_mask]
    return eigenvalues, X.T @ (
        left_eigenvectors[:, positive_eigenvalue_mask] / np.sqrt(eigenvalues)
    )


class _CurvatureFitMixin:
    """Fits a linear model of scikit-learn by :func:`fit_coefs_and_intercepts`."""

    kind: str
    C: float
    class_weight: str | None

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Fit coefficients and intercepts to centred and scaled inputs."""
        self.classes_, class_codes = np.unique(y, return_inverse=True)
        coefficient_intercept_pairs = fit_coefs_and_intercepts(
            self.kind, X, class_codes, [self.C], self.class_weight
        )
        self.coef_, self.intercept_ = coefficient_intercept_pairs[0]
        self.n_features_in_ = X.shape[1]
        return self


class _LogisticRegression(_CurvatureFitMixin, LogisticRegression):
    """scikit-learn's logistic regression, but for its fit."""

    kind = "logistic"


class _LinearSVC(_CurvatureFitMixin, LinearSVC):
    """scikit-learn's linear support vector machine, but for its fit."""

    kind = "svm"


class _TuningChoice(NamedTuple):
    """Settings of a linear model, and their mean score over the inner folds."""

    score: float
    C: float
    class_weight: str | None
    n_selected: int | None

    @property
    def sort_key(self) -> tuple:
        """Sort by score, then by the smallest C, no weights and the fewest inputs."""
        n_selected = self.n_selected or 0
        is_unweighted = self.class_weight is None
        return round(self.score, 9), -self.C, is_unweighted, -n_selected


@dataclass(eq=False, repr=False)
class TunedLinearClassifier(ClassPriorMixin, ClassifierMixin, BaseEstimator):
    """Linear classifier of standardised regional features, edges or covariates.

    `C` and `class_weight` (none or balanced) are tuned by balanced accuracy over
    stratified inner folds that keep people whole; standardisation is learned inside
    each. Between equals the smallest `C` wins, then no weights. Where a class has
    fewer than two people C = 0.01 with balanced weights is taken. The SVM gives
    decision values and no probabilities.

    Parameters
    ----------
    kind : {"logistic", "svm"}
        Multinomial logistic regression, or one linear SVM per class (one against the
        rest, squared hinge), both with a squared penalty.
    n_inner_folds : int
        Inner folds; fewer where a class has fewer people.
    random_state : int
        Seed of the inner folds.
    reads : {"features", "edges", "covariates"}
        Regional features; log(1 + w) of the connectome's edges; or everything that no
        region is needed for: `covariates` (without keys and renamed labels), total edge
        weight and density.
    class_prior : {"training", "balanced"} or dict of class to share, optional
        As of :class:`brainlsap.LSAPClassifier`: what probabilities assume, whichever
        class weights were chosen (:func:`make_models` sets "training"). By default
        probabilities are those of the chosen weights.
    n_selected : sequence of int, optional
        If given, only the inputs that differ most between the classes of the training
        scans (largest F) are used; how many of these numbers of inputs is tuned with
        `C`. Between equals the smallest number wins.

    Attributes
    ----------
    classes_ : array of str
    class_prior_ : array of shape (n_classes,)
    fit_report_ : dict
        C, class_weight, n_selected and inner_balanced_accuracy that were chosen;
        covariates read.
    """

    # Cross-validation hands it `PackedScans` in place of the packed array.
    reads_packed_scans: ClassVar = True
    __metadata_request__fit: ClassVar = {"groups": True}

    kind: str = "logistic"
    n_inner_folds: int = 3
    random_state: int = 0
    reads: str = "features"
    class_prior: ClassPrior | None = None
    n_selected: Sequence[int] | None = None

    def fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray | None = None,
        covariates: pd.DataFrame | None = None,
    ) -> "TunedLinearClassifier":
        """Tune on inner folds of X (packed), then fit on all scans."""
        if self.reads == "covariates":
            self.design_ = learn_coding_by_covariate_column(covariates, y)
        y, input_matrix = np.asarray(y).astype(str), self._read_inputs(X, covariates)
        # With one shared connectome the edges are constant: no span to rotate onto.
        input_kind = self.reads if np.ptp(input_matrix, axis=0).any() else "nothing"
        linear_model = _LinearSVC() if self.kind == "svm" else _LogisticRegression()
        seed = self.random_state
        groups = check_groups(groups, len(y), "the inner folds that choose C")
        person_id_series = pd.Series(groups.astype(str))
        n_folds = min(self.n_inner_folds, person_id_series.groupby(y).nunique().min())
        splits = make_splits(y, person_id_series, n_folds, seed) if n_folds > 1 else ()
        tuning_choice = self._choose_tuning(input_matrix, y, splits, input_kind)
        linear_model.set_params(
            C=tuning_choice.C, class_weight=tuning_choice.class_weight
        )
        pipeline_steps = [make_standardizer(input_kind), linear_model]
        if tuning_choice.n_selected:
            pipeline_steps.insert(
                1, SelectKBest(compute_input_f_values, k=tuning_choice.n_selected)
            )
        self.model_ = make_pipeline(*pipeline_steps).fit(input_matrix, y)
        self.classes_ = self.model_.classes_
        has_balanced_weights = tuning_choice.class_weight == "balanced"
        class_prior = self.class_prior
        if class_prior is None:
            class_prior = BALANCED if has_balanced_weights else TRAINING
        self._learn_prior(y, class_prior, is_balanced=has_balanced_weights)
        self.fit_report_ = {
            "C": tuning_choice.C,
            "class_weight": tuning_choice.class_weight or "none",
            "n_selected": tuning_choice.n_selected,
            "covariates": [*getattr(self, "design_", ())],
            "inner_balanced_accuracy": tuning_choice.score,
        }
        return self

    def _choose_tuning(
        self,
        input_matrix: np.ndarray,
        y: np.ndarray,
        splits: Sequence[Split],
        input_kind: str,
    ) -> _TuningChoice:
        """Return the settings of the best inner balanced accuracy."""
        n_inputs_options: list[int | None] = [None]
        if self.n_selected:
            n_inputs_options = [
                *sorted({min(k, input_matrix.shape[1]) for k in self.n_selected})
            ]
        class_codes = np.unique(y, return_inverse=True)[1]
        penalties = [10.0**exponent for exponent in EXPONENTS_OF_C[self.kind]]
        inner_scores_by_settings_key: dict[
            tuple[float, str | None, int | None], list[float]
        ] = {}
        for train_index, test_index in splits:
            present_class_codes, train_class_codes = np.unique(
                class_codes[train_index], return_inverse=True
            )
            test_class_codes = class_codes[test_index]
            input_scaler = make_standardizer(input_kind).fit(input_matrix[train_index])
            X_train = input_scaler.transform(input_matrix[train_index])
            X_test = input_scaler.transform(input_matrix[test_index])
            input_order = np.arange(X_train.shape[1])
            if self.n_selected:
                F = compute_input_f_values(X_train, train_class_codes)
                input_order = np.argsort(-F, kind="stable")
            for n_inputs, class_weight in product(n_inputs_options, (None, "balanced")):
                input_indices = input_order[:n_inputs]
                coefficient_intercept_pairs = fit_coefs_and_intercepts(
                    self.kind,
                    X_train[:, input_indices],
                    train_class_codes,
                    penalties,
                    class_weight,
                    _TUNING_TOLERANCE,
                )
                for C, (coefficients, intercepts) in zip(
                    penalties, coefficient_intercept_pairs, strict=True
                ):
                    decision_scores = (
                        X_test[:, input_indices] @ coefficients.T + intercepts
                    )
                    if decision_scores.shape[1] == 1:  # of the second of two classes
                        decision_scores = np.column_stack(
                            [-decision_scores, decision_scores]
                        )
                    predicted_codes = present_class_codes[
                        decision_scores.argmax(axis=1)
                    ]
                    test_score = _compute_mean_recall(test_class_codes, predicted_codes)
                    inner_scores_by_settings_key.setdefault(
                        (C, class_weight, n_inputs), []
                    ).append(test_score)
        if not inner_scores_by_settings_key:
            return _TuningChoice(float("nan"), 0.01, "balanced", n_inputs_options[0])
        tuning_choices = [
            _TuningChoice(float(np.mean(inner_scores)), *settings_key)
            for settings_key, inner_scores in inner_scores_by_settings_key.items()
        ]
        return max(tuning_choices, key=lambda tuning_choice: tuning_choice.sort_key)

    @available_if(lambda self: self.kind == "logistic")
    def predict_proba(
        self, X: np.ndarray, covariates: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return probabilities (n_scans, n_classes) at the shares `class_prior_`."""
        class_probabilities = self.model_.predict_proba(
            self._read_inputs(X, covariates)
        )
        return self._reweight_probabilities(class_probabilities)

    @available_if(lambda self: self.kind == "svm")
    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return decision values: (n_scans, n_classes), or (n_scans,) for two."""
        return self.model_.decision_function(self._read_inputs(X))

    def predict(
        self, X: np.ndarray, covariates: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return the likeliest class of every scan, by the class weights of the fit."""
        return self.model_.predict(self._read_inputs(X, covariates))

    def _read_inputs(
        self, X: np.ndarray, covariate_table: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return the inputs of the model from packed scans, (n_scans, n_inputs)."""
        if self.reads != "covariates":
            return read_edges(X) if self.reads == "edges" else read_features(X)
        W, _, row_indices, column_indices = _unpack_connectomes_features_and_pairs(X)
        edge_weights = W[:, row_indices, column_indices].astype(float)
        total_edge_weights, edge_densities = (
            edge_weights.sum(axis=1),
            (edge_weights > 0).mean(axis=1),
        )
        covariate_design = build_covariate_design(self.design_, covariate_table)
        return np.column_stack([total_edge_weights, edge_densities, covariate_design])


@dataclass(eq=False, repr=False)
class GlobalMeansClassifier(TunedLinearClassifier):
    """Logistic regression on the means and totals of :func:`read_global_means`.

    No region is known to it. What a model of regions adds is what it has over this.

    Parameters
    ----------
    hemispheres, structures : sequence of str, optional
        Of every region; :func:`cross_validate` takes them from the cohort's atlas.
    """

    hemispheres: Sequence[str] | None = None
    structures: Sequence[str] | None = None

    def _read_inputs(
        self,
        X: np.ndarray,
        covariate_table: pd.DataFrame | None = None,  # noqa: ARG002
    ) -> np.ndarray:
        """Return means and totals of packed scans, (n_scans, n_inputs)."""
        return read_global_means(X, self.hemispheres, self.structures)


@dataclass(eq=False, repr=False)
class CovariateClassifier(ClassPriorMixin, ClassifierMixin, BaseEstimator):
    """Logistic regression on covariates, with or without the score of a brain model.

    The classes have no order here, and numbers enter with their squares, so that a
    covariate that is smallest or largest in the middle classes also predicts.

    The score of the brain is a further column beside the covariates. For a training
    scan it is predicted by a fit without that person (in closed form), so that it is
    as reliable as that of a test scan. A negative weight of this score is replaced by
    0: without signal, left-out scores are reversed (Breiman 1996, Machine Learning
    24:49, "Stacked regressions").

    Parameters
    ----------
    linear_classifier : TunedLinearClassifier
        A logistic regression; reads the columns.
    brain : LSAPRidgeClassifier, optional
        Reads packed scans.
    covariate_names : sequence of str, optional
        As of :func:`choose_covariate_columns`. A missing value is the mean of the
        training scans.

    Attributes
    ----------
    classes_ : array of str
    brain_ : LSAPRidgeClassifier or None
        None without `brain`, or where its score has no weight.
    fit_report_ : dict
        That of the logistic regression; covariates, and reads_brain: whether the score
        of the brain has a weight.
    """

    reads_packed_scans: ClassVar = True

    linear_classifier: Any
    brain: Any = None
    covariate_names: Sequence[str] | None = None

    def fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray | None = None,
        covariates: pd.DataFrame | None = None,
    ) -> "CovariateClassifier":
        """Learn from packed scans and the table of the same scans."""
        return self.fit_from_ridge(None, X, y, groups, covariates)

    def make_ridge(self) -> Any:
        """Return the unfitted model of brains, if there is one."""
        return None if self.brain is None else clone(self.brain)

    def fit_from_ridge(
        self,
        ridge_classifier: Any,
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray | None,
        covariates: pd.DataFrame | None,
    ) -> "CovariateClassifier":
        """Learn beside a model of brains that was fitted to the same scans.

        It is one of :meth:`make_ridge`; where it is None, it is fitted here.
        """
        from brainlsap.model.prediction_sets import rebalance_scores

        groups = check_groups(groups, len(y), "the left-out scores")
        covariate_names = self.covariate_names
        if covariate_names is None:
            covariate_names = choose_covariate_columns(covariates)
        self.design_ = learn_coding_by_covariate(covariate_names, covariates)
        covariate_design = self._build_design_with_squares(covariates)
        brain_classifier = (
            self.make_ridge() if ridge_classifier is None else ridge_classifier
        )
        self.brain_ = brain_classifier
        if brain_classifier is not None:
            if ridge_classifier is None:
                brain_classifier.fit(X, y, groups)
            class_codes = pd.Index(brain_classifier.stages_).get_indexer(np.asarray(y))
            person_codes = pd.factorize(np.asarray(groups))[0]
            left_out_brain_scores = rebalance_scores(
                brain_classifier.left_out_scores_, class_codes, person_codes
            )
            self._fit_columns(
                np.hstack([covariate_design, left_out_brain_scores]), y, groups
            )
            if self._sum_brain_score_weights(left_out_brain_scores.shape[1]) <= 0:
                self.brain_ = None
        if self.brain_ is None:
            self._fit_columns(covariate_design, y, groups)
        fitted_classifier = self.linear_classifier_
        self.classes_ = fitted_classifier.classes_
        self.class_prior_ = fitted_classifier.class_prior_
        self.learned_prior_ = fitted_classifier.learned_prior_
        self.training_shares_ = fitted_classifier.training_shares_
        self.fit_report_ = fitted_classifier.fit_report_ | {
            "covariates": [*self.design_],
            "reads_brain": self.brain_ is not None,
        }
        return self

    def _fit_columns(
        self, input_matrix: np.ndarray, y: np.ndarray, groups: np.ndarray
    ) -> None:
        """Fit the logistic regression to columns."""
        self.linear_classifier_ = clone(self.linear_classifier).fit(
            _pack_covariate_columns(input_matrix), y, groups
        )

    def _build_design_with_squares(self, covariates: pd.DataFrame) -> np.ndarray:
        """Return the columns of covariates, and the squares of those of numbers."""
        covariate_design = build_covariate_design(self.design_, covariates)
        number_coding_by_covariate = {
            covariate_name: covariate_coding
            for covariate_name, covariate_coding in self.design_.items()
            if isinstance(covariate_coding, float)
        }
        if not number_coding_by_covariate:
            return covariate_design
        number_design = build_covariate_design(number_coding_by_covariate, covariates)
        return np.hstack([covariate_design, number_design**2])

    def _sum_brain_score_weights(self, n_brain_columns: int) -> float:
        """Return by how much the scores of the brain favour the classes they stand for.

        One score rises with the stage; several scores belong to one class each.
        """
        logistic_regression = self.linear_classifier_.model_[-1]
        score_weights = logistic_regression.coef_[:, -n_brain_columns:]
        if len(score_weights) == 1:  # of the second of two classes
            score_weights = np.vstack([-score_weights, score_weights])
        class_stages = pd.Index(self.brain_.stages_).get_indexer(
            self.linear_classifier_.classes_
        )
        if n_brain_columns == 1:
            return float((class_stages - class_stages.mean()) @ score_weights[:, 0])
        return float(score_weights[np.arange(len(class_stages)), class_stages].sum())

    def predict_proba(
        self, X: np.ndarray, covariates: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return probabilities (n_scans, n_classes) at the shares `class_prior_`."""
        return self.linear_classifier_.predict_proba(self._pack_columns(X, covariates))

    def predict(
        self, X: np.ndarray, covariates: pd.DataFrame | None = None
    ) -> np.ndarray:
        """Return the likeliest class of every scan, by the class weights of the fit."""
        return self.linear_classifier_.predict(self._pack_columns(X, covariates))

    def _pack_columns(
        self, X: np.ndarray, covariates: pd.DataFrame | None
    ) -> np.ndarray:
        """Return the columns that the logistic regression reads, packed as scans."""
        input_matrix = self._build_design_with_squares(covariates)
        if self.brain_ is not None:
            input_matrix = np.hstack([input_matrix, self.brain_.decision_scores(X)])
        return _pack_covariate_columns(input_matrix)


def _pack_covariate_columns(input_matrix: np.ndarray) -> np.ndarray:
    """Return columns (n_scans, n_columns) packed as regions without connections."""
    if not input_matrix.shape[1]:
        input_matrix = np.zeros((len(input_matrix), 1))
    n_scans, n_columns = input_matrix.shape
    return pack_scans(
        np.zeros((n_scans, n_columns, n_columns)), input_matrix[:, :, None]
    )


def shuffle_edges(X: Any, random_state: int) -> Any:
    """Move the edges of all packed networks to the same randomly drawn pairs.

    Every network keeps its weights.
    """
    X = as_number_array(X)
    n_rois = X.shape[1]
    row_indices, column_indices = np.triu_indices(n_rois, 1)
    n_edges = len(row_indices)
    edge_order = np.random.default_rng(random_state).permutation(n_edges)
    # positions in a flat connectome, and the edge of each of its entries
    upper_positions = (row_indices * n_rois + column_indices)[edge_order]
    lower_positions = (column_indices * n_rois + row_indices)[edge_order]
    edge_numbers = np.zeros((n_rois, n_rois), dtype=np.intp)
    edge_numbers[row_indices, column_indices] = np.arange(n_edges)
    edge_numbers[column_indices, row_indices] = np.arange(n_edges)
    diagonal_indices = np.arange(n_rois)
    # All positions are valid: without their check, `take` needs half of the time.
    take_options: dict[str, Any] = {"axis": -1, "mode": "clip"}

    def shuffle_connectomes(W: np.ndarray) -> np.ndarray:
        flat_connectomes = W.reshape(*W.shape[:-2], -1)
        upper_weights = flat_connectomes.take(upper_positions, **take_options)
        lower_weights = flat_connectomes.take(lower_positions, **take_options)
        edge_weights = (upper_weights + lower_weights) / 2
        shuffled_connectomes = edge_weights.take(edge_numbers, **take_options)
        shuffled_connectomes[..., diagonal_indices, diagonal_indices] = 0
        return shuffled_connectomes

    return _edit_connectomes(X, shuffle_connectomes)


def remove_edges(X: Any, random_state: int = 0) -> Any:  # noqa: ARG001
    """Return packed scans without any edge."""
    return _edit_connectomes(as_number_array(X), np.zeros_like)


def _edit_connectomes(X: Any, edit_function: EditFunction) -> Any:
    """Return packed scans with edited connectomes; those of a cohort are not copied."""
    if isinstance(X, PackedScans):
        return X.edit_connectomes(edit_function)
    W, features = unpack_connectomes_and_features(X)
    return pack_scans(edit_function(W), features)


def reads_packed_scans(model: Any) -> bool:
    """Return whether a model takes packed scans of a cohort instead of an array."""
    if hasattr(model, "steps"):
        return all(reads_packed_scans(step) for _, step in model.steps)
    if isinstance(model, FunctionTransformer):
        return model.func in (shuffle_edges, remove_edges)
    return getattr(model, "reads_packed_scans", isinstance(model, DummyClassifier))


ModelSettings = dict[str, Any]
Factory = Callable[[int, ModelSettings], BaseEstimator]


class ModelEntry(NamedTuple):
    """A model of studies: its constructor, its role, and its description.

    Attributes
    ----------
    make : callable
        `(seed, settings) -> classifier`.
    role : {"model", "baseline", "control"}
    phrase : str
        Of a control, for reports: how it differs from LSAP-C, or what it is.
    is_variant : bool or None
        Of a control: whether it is otherwise identical to LSAP-C.
    sentence : str
        Of a baseline, for the methods of reports: how it was fitted.
    probability_sentence : str
        Of a model without `class_prior`, for reports: what its probabilities are.
    """

    make: Factory
    role: str
    phrase: str = ""
    is_variant: bool | None = None
    sentence: str = ""
    probability_sentence: str = ""

    def check(self, model_name: str) -> None:
        """Raise where the role is unknown, or a control is not described."""
        check_choice("role", self.role, ROLES)
        if self.role == "control" and (not self.phrase or self.is_variant is None):
            raise ParameterError(
                f"the control {model_name!r} requires phrase=, which describes "
                "the model in reports, and is_variant=, which states whether the model "
                "is otherwise identical to LSAP-C."
            )


ROLES = ("model", "baseline", "control")
"""Roles, in the order in which models stand in tables."""

# Settings of LSAP that ridges and other networks share.
_RIDGE_SETTINGS = ("threshold", "weights", "connectome", "max_scale", "class_prior")
_NETWORK_SETTINGS = (
    "n_epochs",
    "n_starts",
    "threshold",
    "weights",
    "connectome",
    "class_prior",
)


def _make_classifier_factory(
    class_name: str,
    variant_name: str,
    setting_names: Sequence[str] | None = None,
    **fixed_settings: Any,
) -> Factory:
    """Return a function that makes a classifier of `brainlsap.model`.

    Of the settings only those in `setting_names` are used, or all where it is None.
    """

    def make_model(seed: int, model_settings: ModelSettings) -> BaseEstimator:
        import brainlsap.model

        if setting_names is not None:
            value_by_setting = model_settings | (model_settings.get("options") or {})
            model_settings = {
                setting_name: value_by_setting[setting_name]
                for setting_name in setting_names
                if value_by_setting.get(setting_name) is not None
            }
        classifier_class = getattr(brainlsap.model, class_name)
        model = classifier_class(variant_name, random_state=seed)
        try:
            return model.set_params(**(model_settings | fixed_settings))
        except ValueError as error:  # scikit-learn's, of an unknown parameter
            raise ParameterError(
                f"{error}{_make_flag_arguments_text(model_settings)} Choose models "
                f"with {option_text('models')}."
            ) from error

    return make_model


def _make_flag_arguments_text(setting_names: Iterable[str]) -> str:
    """Return the arguments of run_study whose flags have these names."""
    argument_by_flag = {
        flag_key: option.name
        for option in OPTIONS
        if option.recipient == "study"
        for flag_key in option.keys[1:]
    }
    argument_texts = [
        f"--{setting_name.replace('_', '-')} of the command line is "
        f"{argument_by_flag[setting_name]}= of run_study"
        for setting_name in setting_names
        if setting_name in argument_by_flag
    ]
    return f" {'; '.join(argument_texts)}." if argument_texts else ""


def _make_lsap_factory(kernel: str = "chebyshev", **fixed_settings: Any) -> Factory:
    return _make_classifier_factory("LSAPClassifier", kernel, **fixed_settings)


def _make_ridge_factory(scale_choice: str) -> Factory:
    return _make_classifier_factory(
        "LSAPRidgeClassifier", scale_choice, _RIDGE_SETTINGS
    )


def _make_network_factory(network_name: str) -> Factory:
    make_network = _make_classifier_factory(
        "NetworkClassifier", network_name, _NETWORK_SETTINGS
    )
    return lambda seed, settings: make_network(seed, {"n_starts": 4} | settings)


def _make_linear_factory(
    classifier_class: type[TunedLinearClassifier] = TunedLinearClassifier,
    **fixed_settings: Any,
) -> Factory:
    def make_model(seed: int, model_settings: dict[str, Any]) -> TunedLinearClassifier:
        class_prior = model_settings.get("class_prior") or TRAINING
        return classifier_class(
            random_state=seed, class_prior=class_prior, **fixed_settings
        )

    return make_model


def _make_forest(seed: int, _: ModelSettings) -> Pipeline:
    forest_classifier = RandomForestClassifier(
        300, class_weight="balanced", random_state=seed
    )
    return make_pipeline(
        FunctionTransformer(read_features), make_standardizer(), forest_classifier
    )


def _make_edited_edges_factory(
    edit_edges_function: Callable[..., np.ndarray], make_classifier: Factory
) -> Factory:
    """Return a function that makes a classifier of edited connectomes."""

    def make_model(seed: int, model_settings: ModelSettings) -> Pipeline:
        edge_transformer = FunctionTransformer(
            edit_edges_function, kw_args={"random_state": seed}
        )
        # "own": without connectomes, none may be made of the features.
        classifier = make_classifier(seed, model_settings | {"connectome": "own"})
        return make_pipeline(edge_transformer, classifier)

    return make_model


def _make_covariates_factory(*, reads_brain: bool) -> Factory:
    """Return a function that makes a model of covariates, with or without LSAP-R."""

    def make_model(seed: int, model_settings: ModelSettings) -> CovariateClassifier:
        linear_classifier = _make_linear_factory()(seed, model_settings)
        brain_classifier = (
            _make_ridge_factory("auto")(seed, model_settings) if reads_brain else None
        )
        return CovariateClassifier(linear_classifier, brain_classifier)

    return make_model


class ModelRegistry(MutableMapping[str, ModelEntry]):
    """Models by name, in the order of :data:`ROLES`.

    Networks to compare with are the entries of :data:`brainlsap.model.NETWORKS`, by
    their titles. They are read when asked for: importing them takes seconds.
    """

    def __init__(self, entry_by_model: dict[str, ModelEntry]) -> None:
        for model_name, model_entry in entry_by_model.items():
            model_entry.check(model_name)
        self._entries = entry_by_model

    def _make_entry_by_name(self) -> dict[str, ModelEntry]:
        from brainlsap.model import NETWORKS

        network_entry_by_title = {
            network_kind.title: ModelEntry(
                _make_network_factory(model_name), "baseline"
            )
            for model_name, network_kind in NETWORKS.items()
        }
        model_names = [
            *self._entries,
            *(network_kind.title for network_kind in NETWORKS.values()),
        ]
        n_uses_by_key = Counter(
            _normalize_model_name(model_name) for model_name in model_names
        )
        if repeated_names := [
            model_name
            for model_name in model_names
            if n_uses_by_key[_normalize_model_name(model_name)] > 1
        ]:
            raise ParameterError(
                f"models must have different names; got {' and '.join(repeated_names)}."
                " Rename an entry of MODELS or a title in NETWORKS."
            )
        entry_by_name = self._entries | network_entry_by_title
        return dict(
            sorted(
                entry_by_name.items(),
                key=lambda name_and_entry: ROLES.index(name_and_entry[1].role),
            )
        )

    def __getitem__(self, model_name: str) -> ModelEntry:
        """Return an entry."""
        if model_name in self._entries:
            return self._entries[model_name]
        return self._make_entry_by_name()[model_name]

    def __setitem__(self, model_name: str, model_entry: ModelEntry) -> None:
        """Add a model; raise where its entry is incomplete."""
        model_entry.check(model_name)
        self._entries[model_name] = model_entry

    def __delitem__(self, model_name: str) -> None:
        """Remove a model that is no network."""
        del self._entries[model_name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._make_entry_by_name())

    def __len__(self) -> int:
        """Return the number of models."""
        return len(self._make_entry_by_name())


RANDOM_CONNECTOME_RIDGE = "LSAP-R with shuffled edges"
"""The control that shows whether LSAP-R predicts as well with a random connectome."""

MODELS = ModelRegistry(
    {
        "LSAP-C": ModelEntry(_make_lsap_factory("chebyshev"), "model"),
        "LSAP-H": ModelEntry(_make_lsap_factory("hermite"), "model"),
        "LSAP-L": ModelEntry(_make_lsap_factory("laguerre"), "model"),
        "Exact": ModelEntry(_make_lsap_factory("exact"), "model"),
        "LSAP-R": ModelEntry(_make_ridge_factory("auto"), "model"),
        "majority class": ModelEntry(
            lambda *_: DummyClassifier(strategy="prior"), "baseline"
        ),
        "global means": ModelEntry(
            _make_linear_factory(GlobalMeansClassifier),
            "baseline",
            sentence='The model "global means" was a logistic regression on the mean '
            "and the sum of each feature over the measured regions of the whole brain, "
            "of the left and of the right hemisphere, computed separately for cortex "
            "and subcortex.",
        ),
        "selected features": ModelEntry(
            _make_linear_factory(n_selected=N_SELECTED), "baseline"
        ),
        "logistic regression": ModelEntry(
            _make_linear_factory(kind="logistic"), "baseline"
        ),
        "linear SVM": ModelEntry(_make_linear_factory(kind="svm"), "baseline"),
        "ridge without connectome": ModelEntry(_make_ridge_factory("none"), "baseline"),
        "ridge with one scale": ModelEntry(_make_ridge_factory("one"), "baseline"),
        "ridge with a scale per region": ModelEntry(
            _make_ridge_factory("regions"), "baseline"
        ),
        "random forest": ModelEntry(
            _make_forest,
            "baseline",
            sentence="The random forest had 300 trees and weighted all classes "
            "equally.",
            probability_sentence="The probabilities of the random forest are the "
            "shares of the votes of its trees.",
        ),
        "covariates": ModelEntry(
            _make_covariates_factory(reads_brain=False), "baseline"
        ),
        "LSAP-R with covariates": ModelEntry(
            _make_covariates_factory(reads_brain=True), "baseline"
        ),
        "features only": ModelEntry(
            _make_edited_edges_factory(remove_edges, _make_lsap_factory()),
            "control",
            "without any connection",
            is_variant=True,
        ),
        "edges only": ModelEntry(
            _make_linear_factory(reads="edges"),
            "control",
            "a logistic regression on the connectome's weights",
            is_variant=False,
        ),
        "shuffled edges": ModelEntry(
            _make_edited_edges_factory(shuffle_edges, _make_lsap_factory()),
            "control",
            "weights moved to other pairs of regions",
            is_variant=True,
        ),
        RANDOM_CONNECTOME_RIDGE: ModelEntry(
            _make_edited_edges_factory(shuffle_edges, _make_ridge_factory("auto")),
            "control",
            "LSAP-R with weights moved to other pairs of regions, which are drawn at "
            "random and the same in all scans",
            is_variant=False,
        ),
        "frozen scales": ModelEntry(
            _make_lsap_factory(scale_mode="frozen"),
            "control",
            "scales kept at their initial values",
            is_variant=True,
        ),
        "one global scale": ModelEntry(
            _make_lsap_factory(scale_mode="global"),
            "control",
            "one scale for all regions",
            is_variant=True,
        ),
        "constant features": ModelEntry(
            _make_lsap_factory(inputs="constant"),
            "control",
            "a constant replaces the features, and no ridge is added",
            is_variant=True,
        ),
        "confounds only": ModelEntry(
            _make_linear_factory(reads="covariates"),
            "control",
            "a logistic regression on covariates and on the sum and density of the "
            "connectome",
            is_variant=False,
        ),
    }
)
"""Every model, baseline and control by name.

Add an entry for a new model. A network to compare with is an entry of
:data:`brainlsap.model.NETWORKS`.
"""

NESTED_RIDGES = (
    "ridge without connectome",
    "ridge with one scale",
    "ridge with a scale per region",
)
"""Ridges, each with more scales than the one before; "LSAP-R" chooses among them."""


ADDED_VALUE_MODELS = ("covariates", "LSAP-R", "LSAP-R with covariates")
"""Models of covariates, of brain data and of both, from which gains are computed."""


def baseline_sentences(model_names: Sequence[str]) -> list[str]:
    """Return the sentences of those models that are baselines with a sentence."""
    return [
        MODELS[model_name].sentence
        for model_name in model_names
        if model_name in MODELS and MODELS[model_name].sentence
    ]


def control_phrases(*, is_variant: bool | None = None) -> dict[str, str]:
    """Return phrases of controls by name: all, variants of LSAP-C, or the others."""
    return {
        model_name: model_entry.phrase
        for model_name, model_entry in MODELS.items()
        if model_entry.role == "control"
        and is_variant in (None, model_entry.is_variant)
    }


BASELINES = (
    "majority class",
    "global means",
    "selected features",
    "logistic regression",
    "linear SVM",
    "LSAP-R",
    *NESTED_RIDGES,
    RANDOM_CONNECTOME_RIDGE,
)
"""Models that every study runs beside its own.

Without connectomes, the control of random connectomes is left out.
"""

GROUP_NAMES = ("all", "models", "controls", "baselines", "default")
"""Names that stand for several models."""


def list_model_names(group_name: str) -> tuple[str, ...]:
    """Return the names of the models in one of :data:`GROUP_NAMES`."""
    if group_name == "baselines":
        return BASELINES
    if group_name == "default":
        return "LSAP-C", *BASELINES
    control_names = tuple(
        model_name
        for model_name, model_entry in MODELS.items()
        if model_entry.role == "control"
    )
    if group_name == "controls":
        return "LSAP-C", *control_names
    if group_name == "models":
        return tuple(
            model_name for model_name in MODELS if model_name not in control_names
        )
    return tuple(MODELS)


def make_models(
    names: str | Sequence[str] = "default",
    *,
    preset: str = "default",
    random_state: int = 0,
    **model_settings: object,
) -> dict[str, tuple[BaseEstimator, str]]:
    """Return unfitted models with their roles, by name, for :func:`cross_validate`.

    Parameters
    ----------
    names : str or sequence of str
        Of :data:`MODELS`, or "all", "models", "controls", "baselines", "default"; case,
        blanks and hyphens do not matter.
    preset : {"default", "paper"}
        Of the LSAP models.
    random_state : int
        Seed of every model.
    **settings
        Further settings of LSAP; the other networks take n_epochs, n_starts and, as
        ridges do, what prepares a connectome; class_prior goes to all of them and to
        linear models.

    Returns
    -------
    dict of str to (classifier, role)
        In the order of :data:`MODELS`; role is "model", "baseline" or "control".
        If several kernels start from a ridge, all get the largest scale that each
        of them is trusted at (LSAP-H: 5), unless `max_scale` is given: so they start
        alike, and only the kernel differs.

    Raises
    ------
    ParameterError
        For an unknown name; the message lists all.

    Examples
    --------
    >>> {
    ...     name: role
    ...     for name, (_, role) in make_models(["lsap-c", "linear-svm"]).items()
    ... }
    {'LSAP-C': 'model', 'linear SVM': 'baseline'}
    """
    model_names_by_key: dict[str, tuple[str, ...]] = {
        _normalize_model_name(model_name): (model_name,) for model_name in MODELS
    }
    model_names_by_key |= {
        _normalize_model_name(group_name): list_model_names(group_name)
        for group_name in GROUP_NAMES
    }
    names = [names] if isinstance(names, str) else list(names)
    if unknown_names := [
        model_name
        for model_name in names
        if _normalize_model_name(model_name) not in model_names_by_key
    ]:
        raise ParameterError(
            f"models must be {', '.join(map(repr, GROUP_NAMES))}, or names from "
            f"{', '.join(map(repr, MODELS))}; got {unknown_names[0]!r}. To use your "
            "own classifiers, pass a dict of classifiers by name."
        )
    if "kernel" in model_settings:
        raise ParameterError(
            f"{option_text('models')} chooses the kernel: LSAP-L, for example, has the "
            f"kernel 'laguerre'. Leave {option_text('kernel')} out; got "
            f"{model_settings['kernel']!r}."
        )
    selected_name_set = {
        member_name
        for model_name in names
        for member_name in model_names_by_key[_normalize_model_name(model_name)]
    }
    model_settings = {"preset": preset, **model_settings}
    models_by_name = {
        model_name: (model_entry.make(random_state, model_settings), model_entry.role)
        for model_name, model_entry in MODELS.items()
        if model_name in selected_name_set
    }
    _set_common_max_scale([model for model, _ in models_by_name.values()])
    return models_by_name


def _set_common_max_scale(classifiers_or_pipelines: Sequence[BaseEstimator]) -> None:
    """Give networks of several kernels the same `max_scale`, so that they start alike.

    A network starts at the scales of the ridge, at most at half of the largest scale
    that its kernel is trusted at. Kernels differ in it, and so would what they learn.
    """
    classifiers = [
        model[-1] if isinstance(model, Pipeline) else model
        for model in classifiers_or_pipelines
    ]
    lsap_classifiers = [model for model in classifiers if hasattr(model, "scale_mode")]
    if len({model.kernel for model in lsap_classifiers}) < 2:
        return
    lsap_settings_list = [model.resolve() for model in lsap_classifiers]
    if any(
        lsap_settings.start != "ridge" and lsap_settings.inputs != "constant"
        for lsap_settings in lsap_settings_list
    ):
        return
    classifier_max_scales = [
        float(lsap_settings.max_scale) for lsap_settings in lsap_settings_list
    ]
    if len(set(classifier_max_scales)) > 1:
        for model in lsap_classifiers:
            model.set_params(max_scale=min(classifier_max_scales))


def _normalize_model_name(model_name: object) -> str:
    return str(model_name).lower().replace(" ", "").replace("-", "").replace("_", "")
