"""LSAP without a neural network: ridge regression on diffused features.

Scales and all other parameters are learned by their evidence
(:mod:`brainlsap.model.evidence`), the model is chosen among three nested ones
(:mod:`brainlsap.model.evidence`), and scales are averaged over their posterior
(:mod:`brainlsap.model.scale_sampler`).
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import pandas as pd
from joblib import hash as joblib_hash
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from brainlsap.arrays import PackedScans, check_groups
from brainlsap.class_prior import TRAINING, ClassPrior
from brainlsap.exceptions import check_at_least, check_choice
from brainlsap.graph import Preparation
from brainlsap.model.evidence import (
    MIN_LOG_BAYES_FACTOR,
    NESTED_MODELS,
    LogEvidence,
    ScaleFit,
    class_targets,
    diffusion_terms,
    fit_scales_by_nested_model,
    refit_scales,
    term_basis,
)
from brainlsap.model.inputs import (
    PackedClassifier,
    check_and_unpack_scans,
    order_classes_and_codes,
)
from brainlsap.model.scale_sampler import sample_scales


@dataclass(eq=False, repr=False)
class LSAPRidgeClassifier(PackedClassifier):
    r"""Classify scans by ridge regression with scales learned by their evidence.

    LSAP without a neural network: every region's features are diffused at its own
    scale and enter a linear model of the stage. Noise, prior, common scale, the
    scale of every region and their spread maximise the marginal likelihood; the model
    is exact, needs seconds, and gives an interval for every scale. A person counts
    once, whatever their number of visits, and every class the same.

    Three models are nested: no connectome, one scale for all regions, a scale for every
    region. A richer model is accepted only if the data are at least 20 times as
    probable under it as under the last accepted one, which at first has no network. A
    model richer than "none" means that averaging along the connectome predicts better.
    It does not mean that these connections matter: where classes differ in many
    regions, averages over connectomes drawn at random predict better, too. See
    :func:`brainlsap.evaluation.connectome_gain`.

    Parameters
    ----------
    scales : {"auto", "none", "one", "regions"}
        Number of learned scales: none (no diffusion), one, or one for each region;
        "auto" takes the richest of these nested models that the evidence accepts.
    classes : sequence, optional
        All classes in order of stage: the target is then the class number.
        Without it every class is a target, also where labels are numbers: those of
        scikit-learn's stacking or calibration are in alphabetical order.
    max_scale : float
        Largest scale; scales are dimensionless.
    n_draws : int
        Draws from the posterior of the scales of the richest model, over which
        `scales_` are averaged; 0 takes the most probable scales, and intervals by
        curvature.
    threshold : float
        Edges below it are dropped, in the connectome's unit.
    weights : {"weighted", "log", "binary"}
        Weights of the remaining edges.
    connectome : {"own", "covariance"}, optional
        As of :class:`LSAPClassifier`.
    class_prior : {"training", "balanced"} or dict of class to share
        Class shares that `predict_proba` assumes: those of the training scans,
        equal ones, or your own. `predict` does not depend on it.
    random_state : int, optional
        Seed of the draws; None counts as 0.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Sorted; `stages_` has them in order of stage.
    class_prior_, training_shares_ : arrays of shape (n_classes,)
        Class shares that `predict_proba` assumes, and those of the training scans,
        in the order of `classes_`.
    chosen_ : {"none", "one", "regions"}
    evidence_ : dict of str to float
        Log evidence of every nested model, in nats.
    scales_ : array of shape (n_rois,)
        Of the chosen model; 0 without the connectome.
    scales_interval_ : array of shape (n_rois, 2)
        95 % interval of every scale.
    measured_ : bool array of shape (n_rois,)
        Regions with a feature in training.
    left_out_scores_ : array of shape (n_scans, n_targets)
        Prediction of every training scan by a fit without that person, in closed
        form; probabilities are calibrated on these.
    fit_report_ : dict
        `chosen`, `evidence`, `common_scale`, `spread` of log scales, `ridge`,
        `ordered`, `class_prior`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(40, 5, 6))
    >>> X[..., :-1] += X[..., :-1].transpose(0, 2, 1)  # connectomes are symmetric
    >>> y = np.where(np.arange(40) % 2, "AD", "CN")
    >>> X[y == "AD", 2, 5] += 3
    >>> model = LSAPRidgeClassifier().fit(X, y, groups=np.arange(40))
    >>> model.predict(X[:2]).tolist(), model.chosen_
    (['CN', 'AD'], 'none')
    """

    scales: str = "auto"
    _: KW_ONLY
    classes: Sequence | None = None
    max_scale: float = 10.0
    n_draws: int = 30
    threshold: float = 0.0
    weights: str = "weighted"
    connectome: str | None = None
    class_prior: ClassPrior = TRAINING
    random_state: int | None = None

    def fit(
        self, X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None
    ) -> "LSAPRidgeClassifier":
        """Learn from packed scans (n_scans, n_rois, n_rois + n_features).

        `groups` is the participant of every scan; without it each scan is one.
        """
        return self.fit_with([], X, y, groups)

    # one BLAS thread: the same bytes whatever their number
    @threadpool_limits.wrap(limits=1)
    def fit_with(
        self,
        other_classifiers: Sequence["LSAPRidgeClassifier"],
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray | None = None,
    ) -> "LSAPRidgeClassifier":
        """Fit this and others that differ in `scales` only; nested models fit once."""
        classifiers = (self, *other_classifiers)
        for classifier in classifiers:
            check_choice("scales", classifier.scales, ("auto", *NESTED_MODELS))
        check_at_least("n_draws", self.n_draws, 0)
        check_at_least("max_scale", self.max_scale, 0.1)
        class_codes = self._learn_class_codes(y, len(X), self.classes)
        participant_ids = check_groups(groups, len(X), "the left-out scores")
        self._learn_prior(y, self.class_prior, is_balanced=True)
        uses_connectome = any(classifier.scales != "none" for classifier in classifiers)
        term_scan_column_array, B = self._learn_terms_and_basis(
            X,
            participant_ids,
            warns_of_empty=uses_connectome and self.connectome is None,
        )
        is_ordered = self.classes is not None
        scan_targets = class_targets(class_codes, is_ordered)
        person_codes = np.unique(participant_ids, return_inverse=True)[1]
        scan_weights = _compute_scan_weights(class_codes, person_codes)
        evidence_function = LogEvidence(
            term_scan_column_array, scan_targets, scan_weights, self.n_features_, B
        )
        richest_model_index = max(
            NESTED_MODELS.index(_name_richest_model(classifier.scales))
            for classifier in classifiers
        )
        scale_fit_by_model = fit_scales_by_nested_model(
            evidence_function, NESTED_MODELS[richest_model_index], self.max_scale
        )
        value_by_attribute, has_drawn_scales = vars(self).copy(), False
        for classifier in classifiers:
            classifier.__dict__.update(
                value_by_attribute | {"scales": classifier.scales}
            )
            n_models = NESTED_MODELS.index(_name_richest_model(classifier.scales)) + 1
            classifier.evidence_ = {
                model_name: scale_fit_by_model[model_name].log_evidence
                for model_name in NESTED_MODELS[:n_models]
            }
            classifier.chosen_ = classifier.scales
            if classifier.scales == "auto":
                classifier.chosen_ = _choose_model_name(classifier.evidence_)
            if (
                classifier.chosen_ == "regions"
                and self.n_draws
                and not has_drawn_scales
            ):
                rng = np.random.default_rng(self.random_state or 0)
                scale_fit_by_model["regions"] = sample_scales(
                    evidence_function,
                    scale_fit_by_model["regions"],
                    self.n_draws,
                    self.max_scale,
                    rng,
                )
                has_drawn_scales = True
            scale_fit = scale_fit_by_model[classifier.chosen_]
            classifier.scales_ = scale_fit.scales
            classifier.scales_interval_ = scale_fit.interval
            classifier.fit_report_ = {
                "chosen": classifier.chosen_,
                "evidence": classifier.evidence_,
                "common_scale": float(np.exp(scale_fit.log_common)),
                "spread": scale_fit.spread,
                "ridge": scale_fit.ridge,
                "ordered": is_ordered,
                "class_prior": self._share_by_class(),
            }
            left_out_scores, classifier.coefficients_, classifier.intercept_ = (
                _fit_left_out_scores_and_coefs(
                    evidence_function, scale_fit, person_codes
                )
            )
            classifier.left_out_scores_ = left_out_scores
            classifier.means_, classifier.precision_ = _fit_class_means_and_precision(
                left_out_scores, scan_targets, class_codes, scan_weights
            )
        return self

    def _learn_terms_and_basis(
        self, X: np.ndarray, participant_ids: np.ndarray, *, warns_of_empty: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Learn how scans are prepared; return their terms, and the basis of these."""
        connectome_preparation = Preparation(
            self.threshold, self.weights, self.connectome or "own"
        )
        connectomes, features = self._learn_connectomes_and_features(
            X,
            participant_ids,
            connectome_preparation,
            "region",
            warns_of_empty=warns_of_empty,
        )
        term_scan_column_array = self._compute_scan_terms(X, connectomes, features)
        return term_scan_column_array, term_basis(self.max_scale)

    def _compute_packed_scan_terms(self, X: np.ndarray | PackedScans) -> np.ndarray:
        """Return the terms of packed scans."""
        connectomes, features = check_and_unpack_scans(
            X, (self.n_rois_, self.n_features_)
        )
        return self._compute_scan_terms(X, connectomes, features)

    def _compute_scan_terms(
        self,
        X: np.ndarray | PackedScans,
        connectomes: np.ndarray,
        features: np.ndarray,
    ) -> np.ndarray:
        """Return the terms of checked scans; packed scans of a cohort may keep them."""
        packed_scans = X if isinstance(X, PackedScans) and X.keeps_terms else None
        terms_key = ""
        if packed_scans is not None:
            preparation_settings = vars(self.preparation_)
            terms_key = joblib_hash(
                (vars(self.scaler_), preparation_settings, self.max_scale)
            )
            if packed_scans.terms[0] == terms_key:
                return packed_scans.terms[1]
        scaled_features = self.scaler_.apply(features)
        B = term_basis(self.max_scale)
        term_scan_column_array = diffusion_terms(
            connectomes, scaled_features, self.preparation_, B
        )
        if packed_scans is not None:
            packed_scans.terms = terms_key, term_scan_column_array
        return term_scan_column_array

    @threadpool_limits.wrap(limits=1)
    def refit_scales(
        self,
        X: np.ndarray | PackedScans,
        y: np.ndarray,
        groups: np.ndarray,
        selected_scan_mask: np.ndarray,
    ) -> np.ndarray:
        """Return the most probable scales of some of the scans of the fit.

        Preparation, standardisation of features, nested model and spread of log scales
        stay those of the fit. Its ridge and its common scale are the start, and all
        regions start at the common scale.

        Parameters
        ----------
        X, y, groups
            Of the fit.
        selected_scan_mask : bool array of shape (n_scans,)

        Returns
        -------
        array of shape (n_rois,)
        """
        check_is_fitted(self, "coefficients_")
        if self.chosen_ == "none":
            return np.zeros(self.n_rois_)
        n_selected_scans = int(selected_scan_mask.sum())
        class_codes = order_classes_and_codes(
            y[selected_scan_mask], n_selected_scans, self.classes
        )[1]
        person_codes = np.unique(groups[selected_scan_mask], return_inverse=True)[1]
        evidence_function = LogEvidence(
            self._compute_packed_scan_terms(X)[:, selected_scan_mask],
            class_targets(class_codes, self.classes is not None),
            _compute_scan_weights(class_codes, person_codes),
            self.n_features_,
            term_basis(self.max_scale),
        )
        return refit_scales(
            evidence_function,
            spread=self.fit_report_["spread"],
            initial_ridge=self.fit_report_["ridge"],
            initial_scale=self.fit_report_["common_scale"],
            max_scale=self.max_scale,
        )

    @threadpool_limits.wrap(limits=1)
    def decision_scores(self, X: np.ndarray) -> np.ndarray:
        """Return the predicted targets, shape (n_scans, n_targets).

        With ordered classes or two, one column: the expected class number.
        """
        check_is_fitted(self, "coefficients_")
        term_scan_column_array = self._compute_packed_scan_terms(X)
        target_scores = np.tensordot(
            term_scan_column_array, self.coefficients_, ((0, 2), (0, 1))
        )
        return target_scores + self.intercept_

    @threadpool_limits.wrap(limits=1)
    def region_contributions(self, X: np.ndarray) -> np.ndarray:
        """Return the contributions of every region to the predicted targets.

        The model is linear: over regions, contributions sum to
        :meth:`decision_scores` minus `intercept_`. That of a region is of its diffused
        features. A scan with the mean features of the training has contributions of 0.

        Returns
        -------
        array of shape (n_scans, n_rois, n_targets)
        """
        check_is_fitted(self, "coefficients_")
        term_scan_column_array = self._compute_packed_scan_terms(X)
        column_contributions = np.einsum(
            "tsc,tck->sck", term_scan_column_array, self.coefficients_
        )
        contribution_shape = (
            len(column_contributions),
            self.n_rois_,
            self.n_features_,
            column_contributions.shape[2],
        )
        return column_contributions.reshape(contribution_shape).sum(axis=2)

    def log_odds(self, scores: np.ndarray) -> np.ndarray:
        """Return log-probabilities of equally common classes, up to a constant.

        `scores` (n_scans, n_targets) are of :meth:`decision_scores`, or the
        left-out ones of the training scans; the result is (n_scans, n_classes), classes
        in order of stage.
        """
        score_deviations = scores[:, None] - self.means_
        return (
            -np.einsum(
                "nck,kl,ncl->nc", score_deviations, self.precision_, score_deviations
            )
            / 2
        )

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of every class in `classes_`, a row a scan.

        Classes have the shares `class_prior_`.
        """
        balanced_probabilities = softmax(self.log_odds(self.decision_scores(X)), axis=1)
        return self._reweight_probabilities(
            balanced_probabilities[:, self.stages_.argsort()]
        )


def _compute_scan_weights(
    class_codes: np.ndarray, person_codes: np.ndarray
) -> np.ndarray:
    """Return weights with which every person counts once, and every class the same."""
    person_visit_counts = np.bincount(person_codes)
    visit_weights = 1 / person_visit_counts[person_codes]
    class_weight_sums = np.bincount(class_codes, visit_weights)
    scan_weights = 1 / (
        person_visit_counts[person_codes] * class_weight_sums[class_codes]
    )
    return scan_weights * (len(person_visit_counts) / scan_weights.sum())


def _name_richest_model(scale_choice: str) -> str:
    """Return the richest nested model that a choice of models needs."""
    return NESTED_MODELS[-1] if scale_choice == "auto" else scale_choice


def _choose_model_name(log_evidence_by_model: dict[str, float]) -> str:
    """Return the richest nested model that the evidence accepts."""
    accepted_model_name, *richer_model_names = NESTED_MODELS
    for model_name in richer_model_names:
        if (
            log_evidence_by_model[model_name]
            > log_evidence_by_model[accepted_model_name] + MIN_LOG_BAYES_FACTOR
        ):
            accepted_model_name = model_name
    return accepted_model_name


def _fit_left_out_scores_and_coefs(
    evidence_function: LogEvidence, scale_fit: ScaleFit, person_codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return left-out scores of every scan, coefficients of terms, and intercept.

    Those of a person g are t_g - (I - H_gg)^-1 (t - H t)_g with the hat matrix H of the
    fit, which includes the intercept. Rows are multiplied by root weights.
    """
    Z, _, inverse_sd = evidence_function.standardized_columns_and_slopes(
        scale_fit.scales
    )
    M_inverse = np.linalg.inv(Z.T @ Z + scale_fit.ridge * np.eye(Z.shape[1]))
    smoother = Z @ M_inverse
    w = smoother.T @ evidence_function.t
    root_weights = np.sqrt(evidence_function.weights)[:, None]
    residuals = evidence_function.t - Z @ w
    # Of a person with one scan, the block of the hat matrix is its diagonal entry.
    leverages = (smoother * Z).sum(
        axis=1
    ) + evidence_function.weights / evidence_function.n_people
    left_out_residuals = residuals / (1 - leverages[:, None])
    single_scan_mask = np.bincount(person_codes)[person_codes] == 1
    multi_scan_indices = np.flatnonzero(~single_scan_mask)
    multi_scan_person_series = pd.Series(person_codes[multi_scan_indices])
    for person_positions in multi_scan_person_series.groupby(
        multi_scan_person_series
    ).indices.values():
        person_scan_indices = multi_scan_indices[person_positions]
        intercept_hat = (
            root_weights[person_scan_indices]
            @ root_weights[person_scan_indices].T
            / evidence_function.n_people
        )
        hat_block = (
            smoother[person_scan_indices] @ Z[person_scan_indices].T + intercept_hat
        )
        left_out_residuals[person_scan_indices] = np.linalg.solve(
            np.eye(len(person_scan_indices)) - hat_block, residuals[person_scan_indices]
        )
    left_out_scores = (
        evidence_function.t - left_out_residuals
    ) / root_weights + evidence_function.target_means
    g, _ = evidence_function.column_coefs_and_slopes(scale_fit.scales)
    coefficients = (g * inverse_sd)[:, :, None] * w
    column_means = np.tensordot(
        evidence_function.term_means, coefficients, ((0, 1), (0, 1))
    )
    return left_out_scores, coefficients, evidence_function.target_means - column_means


def _fit_class_means_and_precision(
    left_out_scores: np.ndarray,
    scan_targets: np.ndarray,
    class_codes: np.ndarray,
    scan_weights: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean score of every class, and their common precision.

    A normal density around each mean gives the probabilities of equally common
    classes: the classes are weighted alike throughout.
    """
    class_weight_matrix = scan_weights[:, None] * (
        class_codes[:, None] == np.unique(class_codes)
    )
    class_weight_sums = class_weight_matrix.sum(axis=0)[:, None]
    class_means = class_weight_matrix.T @ left_out_scores / class_weight_sums
    # Without signal, left-out class means are in reverse order. Fall back to the order
    # of the targets with a negligible separation: probabilities stay near the prior.
    grand_mean = class_means.mean(axis=0)
    class_directions = class_weight_matrix.T @ scan_targets / class_weight_sums
    class_directions -= class_directions.mean(axis=0)
    if (class_directions * (class_means - grand_mean)).sum() <= 0:
        class_means = grand_mean + 1e-3 * class_directions
    score_deviations = left_out_scores - class_means[class_codes]
    covariance = (
        (scan_weights[:, None] * score_deviations).T
        @ score_deviations
        / scan_weights.sum()
    )
    return class_means, np.linalg.pinv(covariance, hermitian=True)
