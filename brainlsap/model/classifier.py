"""LSAP behind scikit-learn's face."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from brainlsap._arrays import check_at_least
from brainlsap.graph import LearnedPreparation
from brainlsap.model.calibration import learn_temperature
from brainlsap.model.class_order import order_labels
from brainlsap.model.connectome_inputs import learn_preparation
from brainlsap.model.ensemble import TrainingTask, train_ensemble
from brainlsap.model.fit_report import fit_report, warn_of_limits
from brainlsap.model.inputs import (
    InputScaler,
    check_groups,
    check_packed,
    check_same_size,
    make_batch,
    summarize_connectomes,
    threads,
)
from brainlsap.model.network import GraphBatch
from brainlsap.model.packed_classifier import PackedClassifier
from brainlsap.model.settings import resolve_settings, settle_kernel
from brainlsap.model.training import usable_runs


class LSAPClassifier(PackedClassifier):
    r"""Classify scans by heat convolution with a learned range for every region.

    Each layer is :math:`\mathrm{ReLU}(\mathrm{std}(K(s) H) W + b)`; row p of the heat
    kernel K(s) has region p's own scale on that person's network, and a perceptron
    reads all regions. Scales take plain clipped steps and are kept where the kernel
    can be trusted. Several starts, each choosing its epoch on another slice of the
    training people, are averaged.

    A setting left at None is the preset's. "default" holds up on real data; "paper"
    is that of Sim et al. 2024: two layers of 16 units, dropout 0.5, weight decay
    5e-4, 2,000 epochs, binarised networks without edges under 10 streamlines,
    features of each scan minus their mean over their range.

    Parameters
    ----------
    kernel : {"chebyshev", "exact", "hermite", "laguerre"}, optional
        How the heat kernel is made.
    preset : {"default", "paper"}
    degree : int, optional
        Degree of the expansion. By default the lowest that keeps `tolerance` up to
        `max_scale` (paper: 20, 30 and 20 for C, H and L).
    tolerance : float, optional
        Largest error of the kernel (1e-4; its values reach 1). With a `degree`, the
        error at the start counts if that is larger.
    max_scale : float, optional
        Scales are kept at or below it, and below what kernel and degree are
        trusted at (default 10; 5 for Hermite).
    scale_mode : {"region", "global", "frozen"}, optional
        A scale for each region, one for all, or the start for ever.
    initial_scale : float or "auto", optional
        Where scales start (paper 2). "auto" tries 0.2, 1 and 2 on three slices and
        keeps the start of lowest validation loss.
    scale_step, scale_clip : float, optional
        Step size (the paper's beta_s), and the most that one step moves (0.1).
    scale_penalty : {"none", "barrier", "l1"}, optional
        The released code's barrier near 0, or the paper's l1 term read literally.
    penalty_weight : float, optional
        Its weight, the paper's alpha (1).
    n_layers : int, optional
        Heat convolutions; all share the scales (default 1, paper 2).
    hidden_units, readout_units : int, optional
        Units of each layer, and of the read-out.
    standardize : {"region", "scan"}, optional
        Each region over people, before and after diffusion; or each scan once.
    dropout, label_smoothing : float, optional
        Share of units dropped, and of each label spread over all classes, in training.
    learning_rate, weight_decay, readout_penalty : float, optional
        Of Adam; and the weight of the read-out's squared first-layer weights.
    linear_penalty : float or "auto", optional
        Of a linear path beside the read-out; 0 leaves it out, "auto" is 0.1 with
        start 0.2 and 0 otherwise.
    class_weight : {"balanced", "none"}, optional
    n_epochs, patience : int, optional
        Passes at the most, and without better validation loss (0: never stop early).
    validation_fraction : float, optional
        Share of the training people that each start watches.
    batch_size, n_starts : int, optional
        Scans a step (0: all); networks to average, each with its own seed.
    threshold : float, optional
        Edges below it are dropped, in the connectome's unit (paper 10).
    weights : {"weighted", "log", "binary"}, optional
    preparation : dict, optional
        Further options of :class:`brainlsap.graph.Preparation`, such as `consensus`;
        what they learn comes from the scans of the fit alone.
    normalization : {"symmetric", "random_walk"}, optional
        Rows of the symmetric kernel do not sum to 1, so it tells of degrees even where
        features do not; those of the random walk's do.
    inputs : {"features", "constant"}, optional
        "constant" puts 1 in the place of every feature.
    head : {"softmax", "ordinal"}, optional
        "ordinal" (CORN) asks of each stage whether a scan is beyond it.
    classes : sequence, optional
        All classes in order of stage, for the ordinal head; `cross_validate` fills in.
    calibration : {"none", "temperature"}, optional
        Divide logits by one number, learned on the slices that the starts watch.
    random_state : int, optional
        Seed; None counts as 0.
    device, n_threads : str, int
        "cpu" or "cuda"; CPU threads of one fit.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    scales_ : array of shape (n_rois,), the mean over starts
    scales_by_start_ : array of shape (n_starts, n_rois)
        Of the starts that are averaged: not of dead or diverged ones.
    scales_start_ : array of shape (n_rois,)
    temperature_ : float, 1 without calibration
    measured_ : bool array of shape (n_rois,), with a feature in training
    history_ : list of History, one a start
    fit_report_ : dict
        Error bound at the learned scales, epochs, restarts, settings and more.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(30, 5, 6))
    >>> y = np.where(np.arange(30) % 2, "AD", "CN")
    >>> X[y == "AD", 2, 5] += 3
    >>> model = LSAPClassifier(n_epochs=60, n_starts=2).fit(X, y, groups=np.arange(30))
    >>> model.predict(X[:2]).tolist(), model.scales_.shape
    (['CN', 'AD'], (5,))
    """

    def __init__(
        self,
        kernel: str | None = None,
        *,
        preset: str = "default",
        degree: int | None = None,
        tolerance: float | None = None,
        max_scale: float | None = None,
        scale_mode: str | None = None,
        initial_scale: float | str | None = None,
        scale_step: float | None = None,
        scale_clip: float | None = None,
        scale_penalty: str | None = None,
        penalty_weight: float | None = None,
        n_layers: int | None = None,
        hidden_units: int | None = None,
        readout_units: int | None = None,
        standardize: str | None = None,
        dropout: float | None = None,
        label_smoothing: float | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        readout_penalty: float | None = None,
        linear_penalty: float | str | None = None,
        class_weight: str | None = None,
        n_epochs: int | None = None,
        patience: int | None = None,
        validation_fraction: float | None = None,
        batch_size: int | None = None,
        n_starts: int | None = None,
        threshold: float | None = None,
        weights: str | None = None,
        preparation: dict[str, Any] | None = None,
        normalization: str | None = None,
        inputs: str | None = None,
        head: str | None = None,
        classes: Sequence | None = None,
        calibration: str | None = None,
        random_state: int | None = None,
        device: str = "cpu",
        n_threads: int = 1,
    ) -> None:
        self.kernel, self.preset = kernel, preset
        self.degree, self.tolerance, self.max_scale = degree, tolerance, max_scale
        self.scale_mode, self.initial_scale = scale_mode, initial_scale
        self.scale_step, self.scale_clip = scale_step, scale_clip
        self.scale_penalty, self.penalty_weight = scale_penalty, penalty_weight
        self.n_layers, self.hidden_units = n_layers, hidden_units
        self.readout_units, self.standardize = readout_units, standardize
        self.dropout, self.learning_rate = dropout, learning_rate
        self.weight_decay, self.readout_penalty = weight_decay, readout_penalty
        self.label_smoothing, self.linear_penalty = label_smoothing, linear_penalty
        self.class_weight, self.n_epochs = class_weight, n_epochs
        self.patience, self.validation_fraction = patience, validation_fraction
        self.batch_size, self.n_starts = batch_size, n_starts
        self.threshold, self.weights = threshold, weights
        self.preparation, self.normalization = preparation, normalization
        self.inputs, self.head, self.classes = inputs, head, classes
        self.calibration = calibration
        self.random_state, self.device, self.n_threads = random_state, device, n_threads

    def fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray | None = None,
        covariates: object = None,  # noqa: ARG002
    ) -> "LSAPClassifier":
        """Learn scales and weights.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            From :meth:`brainlsap.data.Cohort.to_array`; NaN marks features that
            were not measured.
        y : array of shape (n_scans,)
            Class of every scan.
        groups : array of shape (n_scans,), optional
            Participant of every scan, so that the slice that stops training early
            shares nobody with the rest.
        covariates : object, optional
            For steps ahead in a pipeline (metadata routing); not looked at here.

        Returns
        -------
        LSAPClassifier

        Raises
        ------
        ParameterError
            For settings or arrays that cannot be used, a single class, or if every
            start diverged.
        """
        settings = settle_kernel(resolve_settings(self.preset, self.get_params()))
        check_at_least("n_threads", self.n_threads, 1)
        connectomes, features = check_packed(X)
        order = self.classes, settings.head
        self.classes_, codes = order_labels(y, len(features), *order)
        groups = check_groups(groups, len(features), settings)
        self.scaler_ = InputScaler.learn(features, settings.standardize)
        self.measured_ = self.scaler_.measured
        self.n_rois_, self.n_features_ = features.shape[1:]
        self.settings_ = settings
        learned = learn_preparation(connectomes, features, groups, settings)
        self.preparation_ = learned.to_dict()
        with threads(self.n_threads):
            batch = self._batch(connectomes, features)
            people = codes, groups, self.measured_, len(self.classes_)
            self._train(TrainingTask(batch, *people, self.random_state or 0))
            self.fit_report_ |= summarize_connectomes(connectomes, learned)
        return self

    def _batch(self, connectomes: np.ndarray, features: np.ndarray) -> GraphBatch:
        learned = LearnedPreparation.from_dict(self.preparation_)
        scaled, device = self.scaler_.apply(features), torch.device(self.device)
        return make_batch(connectomes, scaled, self.settings_, device, learned=learned)

    def _train(self, task: TrainingTask) -> None:
        settings = self.settings_
        ensemble = train_ensemble(task, settings)
        used = usable_runs(ensemble.runs)
        self.networks_ = [run.network for run in used]
        self.history_ = [run.history for run in ensemble.runs]
        self.scales_by_start_ = np.stack(
            [net.heat().detach().cpu().numpy() for net in self.networks_]
        ).astype(np.float64)
        self.scales_ = self.scales_by_start_.mean(0)
        self.scales_start_ = np.full(self.n_rois_, ensemble.settings.initial_scale)
        self.fit_report_ = fit_report(ensemble, self.scales_by_start_)
        self.temperature_ = 1.0
        if settings.calibration == "temperature":
            self.temperature_ = learn_temperature(task, ensemble.runs, settings)
            self.fit_report_["temperature"] = self.temperature_
        warn_of_limits(self.fit_report_)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of every class, the mean over starts.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            With the regions and features of the fit.

        Returns
        -------
        array of shape (n_scans, n_classes)

        Raises
        ------
        ParameterError
            If regions or features are not as many as the model was fitted on.
        """
        check_is_fitted(self, "networks_")
        connectomes, features = check_packed(X)
        check_same_size(features, self.n_rois_, self.n_features_)
        with threads(self.n_threads), torch.no_grad():
            batch = self._batch(connectomes, features)
            each = [net(batch).double() / self.temperature_ for net in self.networks_]
            return torch.stack(each).softmax(2).mean(0).cpu().numpy()

    def settings(self) -> dict[str, Any]:
        """Return every setting of a fit, the preset's filled in."""
        return asdict(settle_kernel(resolve_settings(self.preset, self.get_params())))
