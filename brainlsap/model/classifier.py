"""LSAP and the baseline networks as scikit-learn classifiers."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import torch
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from brainlsap.arrays import check_groups
from brainlsap.class_prior import TRAINING, ClassPrior
from brainlsap.exceptions import ParameterError, check_at_least, check_choice
from brainlsap.graph import error_bound
from brainlsap.model.inputs import (
    PackedClassifier,
    check_and_unpack_scans,
    make_batch,
    use_threads,
)
from brainlsap.model.network import NETWORKS
from brainlsap.model.ridge import LSAPRidgeClassifier
from brainlsap.model.settings import (
    BY_LEFT_OUT_PEOPLE,
    EVIDENCE,
    RARE_SETTINGS,
    Settings,
    resolve_kernel_settings,
    resolve_settings,
)
from brainlsap.model.training import (
    Batch,
    NetworkChoice,
    TrainingRun,
    are_networks_futile,
    make_inner_splits,
    make_network_choice,
    mix_logits,
    restore_snapshots,
    select_usable_runs,
    train_validated_runs,
)

# Minimum training balanced accuracy, as a fraction of the way from chance to 1 (0.36
# for five classes).
_MIN_LEARNED_SHARE = 0.2
# Fractions of the training at which scales are reported.
_PATH_FRACTIONS = np.linspace(0, 1, 5)
# Initial scale if the evidence does not favour the connectome. Training is too short to
# reduce larger scales.
_SCALE_WITHOUT_CONNECTOME = 0.2
# Weight of the ridge's log-odds in the offset of the network's logits. With weight 1,
# early stopping ends training before the network learns anything.
_RIDGE_WEIGHT = 0.5


def _check_seed(random_state: object) -> None:
    """Raise unless a seed is a whole number or None."""
    if not isinstance(random_state, Integral | None):
        raise ParameterError(
            f"random_state must be a whole number or None; got {random_state!r}."
        )


class GraphClassifier(PackedClassifier):
    """Base class of LSAP and the baseline networks; see the subclasses."""

    class_prior: ClassPrior
    connectome: str | None
    ridge_: LSAPRidgeClassifier | None

    def settings(self) -> dict[str, Any]:
        """Return every setting of a fit by name, including those of the preset.

        Raises
        ------
        ParameterError
            If a setting cannot be used.
        """
        return asdict(self.resolve())

    def fit(
        self, X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None
    ) -> "GraphClassifier":
        """Train the networks.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            From :meth:`brainlsap.data.Cohort.to_array`, float32 or float64; NaN marks
            features that were not measured.
        y : array of shape (n_scans,)
            Class of every scan.
        groups : array of shape (n_scans,), optional
            Participant of every scan, so that what stops and weighs a network
            shares no participant with what it is trained on.

        Returns
        -------
        GraphClassifier
            The same object.

        Raises
        ------
        ParameterError
            If settings or arrays cannot be used, there is a single class, an ordinal
            head has no order of classes, or every network diverged.
        """
        leaves_people_out = self.resolve().leaves_people_out()
        held_out_name = "the early-stopping set" if leaves_people_out else None
        groups = check_groups(groups, len(X), held_out_name)
        return self.fit_from_ridge(None, X, y, groups)

    def make_ridge(self) -> LSAPRidgeClassifier | None:
        """Return the unfitted ridge regression that training starts from, if any."""
        network_settings = self.resolve()
        if network_settings.start != "ridge":
            return None
        return LSAPRidgeClassifier(
            "auto" if network_settings.scale_mode == "region" else "one",
            classes=getattr(self, "classes", None),
            max_scale=float(network_settings.max_scale or 0.0),
            threshold=network_settings.threshold,
            weights=network_settings.weights,
            connectome=network_settings.connectome,
            random_state=self.random_state,
        )

    def fit_from_ridge(
        self,
        ridge: LSAPRidgeClassifier | None,
        X: np.ndarray,
        y: np.ndarray,
        groups: np.ndarray,
    ) -> "GraphClassifier":
        """Train the networks from a ridge that was fitted to the same scans.

        It is one of :meth:`make_ridge`; where it is None, it is fitted here.
        """
        network_settings = self.resolve()
        check_at_least("n_threads", self.n_threads, 1)
        _check_seed(self.random_state)
        classes = getattr(self, "classes", None)
        class_codes = self._learn_class_codes(y, len(X), classes, network_settings.head)
        is_balanced = network_settings.class_weight == "balanced"
        self._learn_prior(y, self.class_prior, is_balanced=is_balanced)
        network_kind = NETWORKS.get(network_settings.network)
        uses_connectome = (
            network_kind is None or "connectome" not in network_kind.unused_settings
        )
        connectomes, features = self._learn_connectomes_and_features(
            X,
            groups,
            network_settings.preparation(),
            network_settings.standardize,
            warns_of_empty=uses_connectome and self.connectome is None,
        )
        self.settings_ = network_settings
        with use_threads(self.n_threads):
            batch = self._make_batch(connectomes, features)
            seed = self.random_state or 0
            self.ridge_ = None
            if ridge is None:
                ridge = self.make_ridge()
                if ridge is not None:
                    ridge.fit(X, y, groups)
            self.ridge_ = ridge
            if self.ridge_ is not None:
                _set_offset(batch, self.ridge_, self.ridge_.left_out_scores_)
            initial_scales = self._choose_initial_scales(network_settings)
            splits = make_inner_splits(class_codes, groups, network_settings, seed)
            ridge_logits = None
            stop_function = None
            if (
                network_settings.network_weight == BY_LEFT_OUT_PEOPLE
                and self.ridge_ is not None
            ):
                ridge_logits = self._compute_ridge_logits(
                    self.ridge_, self.ridge_.left_out_scores_
                )
                left_out_row_indices = np.concatenate(
                    [validation_row_indices for _, validation_row_indices in splits]
                )
                stop_function = partial(
                    are_networks_futile,
                    n_all_left_out_people=len(set(groups[left_out_row_indices])),
                    class_codes=class_codes,
                    groups=groups,
                    ridge_logits=ridge_logits,
                    network_settings=network_settings,
                )
            training_runs = train_validated_runs(
                batch,
                class_codes,
                splits,
                self.measured_,
                initial_scales,
                network_settings,
                seed,
                stop_function,
            )
            averaged_runs = select_usable_runs(training_runs)
            network_choice = None
            self.network_weight_ = 1.0
            if ridge_logits is not None:
                network_choice = make_network_choice(
                    averaged_runs, class_codes, groups, ridge_logits, network_settings
                )
                restore_snapshots(averaged_runs, network_choice.snapshot_index, batch)
                self.network_weight_ = network_choice.weight
            elif self.ridge_ is not None:
                self.network_weight_ = float(network_settings.network_weight)
            self.networks_ = [training_run.network for training_run in averaged_runs]
            self.history_ = [training_run.history for training_run in training_runs]
            self.fit_report_ = self._make_fit_report(training_runs, network_choice)
            if network_settings.network == "heat":
                self._store_scales(averaged_runs, initial_scales)
        for warning_text in self.fit_report_["warnings"]:
            warnings.warn(warning_text, UserWarning, stacklevel=3)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of every class, averaged over networks.

        Classes have the shares `class_prior_`.

        Parameters
        ----------
        X : array of shape (n_scans, n_rois, n_rois + n_features)
            Scans with the regions and features of the fit.

        Returns
        -------
        array of shape (n_scans, n_classes)
            In the order of `classes_`.

        Raises
        ------
        ParameterError
            If the number of regions or features differs from the fit.
        """
        check_is_fitted(self, "networks_")
        connectomes, features = check_and_unpack_scans(
            X, (self.n_rois_, self.n_features_)
        )
        with use_threads(self.n_threads), torch.no_grad():
            ridge_scores = None
            ridge_logits = np.zeros((len(X), len(self.stages_)))
            if self.ridge_ is not None:
                ridge_scores = self.ridge_.decision_scores(X)
                ridge_logits = self._compute_ridge_logits(self.ridge_, ridge_scores)
            if self.network_weight_ == 0:
                return self._order_class_probabilities(softmax(ridge_logits, axis=1))
            batch = self._make_batch(connectomes, features)
            if self.ridge_ is not None and ridge_scores is not None:
                _set_offset(batch, self.ridge_, ridge_scores)
            network_logits = np.stack(
                [network(batch).double().cpu().numpy() for network in self.networks_]
            )
        mixed_logits = mix_logits(ridge_logits, network_logits, self.network_weight_)
        return self._order_class_probabilities(
            softmax(mixed_logits, axis=2).mean(axis=0)
        )

    def _order_class_probabilities(self, stage_probabilities: np.ndarray) -> np.ndarray:
        """Return probabilities of stages in the order of `classes_`, by the prior."""
        return self._reweight_probabilities(
            stage_probabilities[:, self.stages_.argsort()]
        )

    def _make_batch(self, connectomes: np.ndarray, features: np.ndarray) -> Batch:
        return make_batch(
            connectomes,
            self.scaler_.apply(features),
            self.settings_,
            self.preparation_,
            torch.device(self.device),
        )

    def _compute_ridge_logits(
        self, ridge_classifier: LSAPRidgeClassifier, ridge_scores: np.ndarray
    ) -> np.ndarray:
        """Return the logits of the ridge for the class weights of the networks."""
        stage_prior = np.empty(len(self.stages_))
        stage_prior[self.stages_.argsort()] = self.learned_prior_
        return ridge_classifier.log_odds(ridge_scores) + np.log(stage_prior)

    def _choose_initial_scales(self, network_settings: Settings) -> np.ndarray:
        """Return the initial scale of every region."""
        initial_scales: Any = network_settings.initial_scale
        if self.ridge_ is not None and initial_scales == EVIDENCE:
            initial_scales = self.ridge_.scales_
            if self.ridge_.chosen_ == "none":
                initial_scales = _SCALE_WITHOUT_CONNECTOME
            # Leave room below the largest scale, at which training cuts off its steps.
            initial_scales = np.minimum(
                initial_scales, float(network_settings.max_scale or 0.0) / 2
            )
        return np.full(self.n_rois_, initial_scales, dtype=np.float64)

    def _make_fit_report(
        self, training_runs: list[TrainingRun], network_choice: NetworkChoice | None
    ) -> dict[str, Any]:
        """Return a summary of the fit that can be written as JSON."""
        best_history = min(
            training_runs, key=lambda training_run: training_run.best_loss
        ).history
        fault_texts = [
            training_run.fault_text
            for training_run in training_runs
            if training_run.fault_text
        ]
        fit_report = {
            "epochs": [training_run.best_epoch for training_run in training_runs],
            "losses": {
                "epoch": best_history.epoch,
                "training": np.round(best_history.train_loss, 5).tolist(),
                "validation": np.round(best_history.validation_loss, 5).tolist(),
            },
            "network_weight": self.network_weight_,
            "network_gain": network_choice.gain if network_choice else None,
            "network_gain_se": network_choice.standard_error
            if network_choice
            else None,
            "n_restarts": sum(
                training_run.n_restarts for training_run in training_runs
            ),
            "n_unhealthy": len(fault_texts),
            "failed": None,
            "warnings": [],
            "class_prior": self._share_by_class(),
            "settings": asdict(self.settings_),
        }
        if fault_texts:
            fit_report["warnings"] = [
                f"{len(fault_texts)} of {len(training_runs)} training starts "
                f"diverged or did not learn, also after restarts ({fault_texts[0]}). "
                "The model averages the other starts. Lower learning_rate or "
                "scale_step, or check the features."
            ]
        if len(fault_texts) == len(training_runs):
            fit_report["failed"] = (
                f"every training start failed, also with other seeds: {fault_texts[0]}"
            )
        return fit_report

    def _store_scales(
        self, averaged_runs: list[TrainingRun], initial_scales: np.ndarray
    ) -> None:
        """Store learned scales, their path during training, and the kernel's error."""
        network_settings = self.settings_
        heat_layers: list[Any] = [
            averaged_run.network.heat for averaged_run in averaged_runs
        ]
        self.scales_by_start_ = np.array(
            [heat_layer().detach().cpu().numpy() for heat_layer in heat_layers],
            dtype=np.float64,
        )
        self.scales_start_ = initial_scales
        self.scales_ = self.scales_by_start_.mean(0)
        scale_paths = [
            averaged_run.history.interpolate_scales(
                _PATH_FRACTIONS, averaged_run.best_epoch
            )
            for averaged_run in averaged_runs
        ]
        self.scale_path_ = np.mean(scale_paths, axis=0)
        self.scale_path_[0] = initial_scales
        self.scale_path_[-1] = self.scales_
        self.fit_report_["error_bound"] = error_bound(
            network_settings.kernel,
            float(self.scales_by_start_.max()),
            network_settings.degree,
            dtype=torch.float64,
        )
        n_projected = int(sum(heat_layer.n_projected for heat_layer in heat_layers))
        self.fit_report_["n_projected"] = n_projected
        if n_projected:
            self.fit_report_["warnings"].append(
                f"scales reached {network_settings.max_scale:.3g}, the largest scale "
                f"at which the {network_settings.kernel} kernel is accurate, and were "
                "kept there. Increase max_scale, or the degree, to allow larger scales."
            )


def _set_offset(
    batch: Any, ridge_classifier: LSAPRidgeClassifier, ridge_scores: np.ndarray
) -> None:
    """Add the weighted log-odds of the ridge to the logits of the networks."""
    logits = _RIDGE_WEIGHT * ridge_classifier.log_odds(ridge_scores)
    batch.offset = torch.from_numpy(logits).to(batch.signal)


@dataclass(eq=False, repr=False)
class LSAPClassifier(GraphClassifier):
    r"""Classify scans by heat convolution with a learned scale for every region.

    Each layer is :math:`\mathrm{ReLU}(\mathrm{std}(K(s) H) W + b)`. Row p of the heat
    kernel K(s) uses the scale of region p on the connectome of the scan. A perceptron
    then reads all regions. Scales are updated by clipped gradient steps and kept in the
    range in which the kernel is accurate. The prediction averages several networks,
    each of which leaves other participants out. Networks that start from a ridge
    regression have a weight in the prediction only if they improve that of these
    participants: in small cohorts LSAP mostly predicts what the ridge does.

    A setting that is None is taken from the preset. "default" works well on real data.
    "paper" is that of Sim et al. 2024: two layers of 16 units, dropout 0.5, weight
    decay 5e-4, 2,000 epochs, binarised connectomes without edges below 10 streamlines,
    and features of each scan minus their mean, divided by their range.

    Parameters
    ----------
    kernel : {"chebyshev", "exact", "hermite", "laguerre"}, optional
        Expansion of the heat kernel, or its exact form.
    preset : {"default", "paper"}
    scale_mode : {"region", "global", "frozen"}, optional
        Learn a scale for each region, or one for all, or keep the initial scales.
    start : {"ridge", "constant"}, optional
        Start of the training. With "ridge", the default, :class:`LSAPRidgeClassifier`
        is fitted to the same scans first, and the networks add their logits to half of
        its logits (during training, to those of a fit without the participant). Ridge
        and networks are then mixed; see `network_weight`. With "constant", the networks
        are trained alone, with equal initial scales. The paper's preset and constant
        inputs always use "constant".
    initial_scale : float or "evidence", optional
        Initial scales. The default with the ridge is "evidence": its scales, or 0.2 if
        the data are not at least 20 times as probable with diffusion along the
        connectome as without. The default without the ridge is 1 (paper 2).
    max_scale : float, optional
        Largest scale; it may be lowered to where kernel and degree are accurate
        (default 10; 5 for Hermite).
    n_layers : int, optional
        Number of heat convolutions, which share the scales (default 1, paper 2).
    head : {"softmax", "ordinal"}, optional
        Output layer. "ordinal" (CORN) predicts, for each stage, whether a scan is
        beyond it.
    classes : sequence, optional
        All classes in order of stage. The ordinal head needs them, unless classes are
        numbers. `cross_validate` fills in the order of a cohort if it is known.
    class_weight : {"balanced", "none"}, optional
        Whether rare classes have a larger weight in the loss.
    n_epochs : int, optional
        Maximum number of epochs.
    n_starts : int, optional
        Number of networks to average, each with its own seed. Fewer are trained where
        the first gain so little over the ridge that their weight will be 0; see
        `network_weight`.
    threshold : float, optional
        Edges with a smaller weight, in the unit of the connectome, are dropped
        (paper 10).
    weights : {"weighted", "log", "binary"}, optional
        Transformation of the remaining edge weights.
    connectome : {"own", "covariance"}, optional
        Use the connectome of each scan, or one for all: the covariance of features over
        the training participants (:func:`brainlsap.graph.covariance_connectome`). The
        default is "own", and in cross-validation of a study without connectomes
        "covariance". Fits with the default warn if all connectomes are empty.
    class_prior : {"training", "balanced"} or dict of class to share
        Class shares that `predict_proba` assumes: those of the training scans,
        equal ones, or your own. `predict` does not depend on it.
    random_state : int, optional
        Seed; None counts as 0.
    device : str
        "cpu", or "cuda" for a graphics card.
    n_threads : int
        Number of CPU threads of one fit.
    options : dict, optional
        Rarer settings by name:

        - `degree`: degree of the expansion; by default the lowest that keeps
          `tolerance` up to `max_scale` (paper: 20, 30 and 20 for C, H and L).
        - `tolerance`: largest error of the kernel, whose values are at most 1 (1e-4).
          With a given `degree`, the error at the initial scale counts if it is larger.
        - `scale_step`, `scale_clip`: step size of scales (the paper's beta_s), and the
          largest change of a scale in one step (0.1).
        - `scale_penalty`: "none"; "barrier", which keeps scales from 0 as in the code
          of the paper; or "l1", the penalty as the paper states it.
        - `penalty_weight`: weight of this penalty, the paper's alpha (1).
        - `hidden_units`: units of each layer (8, paper 16).
        - `readout_units`: units of the perceptron (16).
        - `standardize`: "region", over scans, before and after diffusion; or "scan",
          within each scan.
        - `dropout`: share of units dropped in training.
        - `learning_rate`, `weight_decay`: parameters of Adam.
        - `readout_penalty`: weight of squared first-layer weights of the perceptron.
        - `patience`: epochs without a lower validation loss after which training stops
          (0: never stop early).
        - `validation_fraction`: share of the training participants in each
          early-stopping set.
        - `batch_size`: number of scans in one step. With 0, the default, an epoch is
          one step on all scans, or on 2,048 of them, others in every step, if there
          are more; a validation set has at most as many.
        - `inputs`: "features", or "constant" to replace each of them by 1.
        - `network_weight`: weight w, 0 to 1, of the networks beside the ridge in the
          prediction: logits are (1 - w) times those of the ridge and w times those of
          a network. The default, "left-out", chooses w and the epoch on the
          participants that each network leaves out; w is 0 unless their cross-entropy
          falls by more than two standard errors. Training ends after fewer than
          `n_starts` networks if the gain of the first is not significant and, by its
          standard error, would not reach three over the participants whom all networks
          leave out. Without such participants (fewer than 20, or a class with one) w
          is 0.

        :meth:`set_params` accepts these names, too, so that searches can vary them.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Sorted classes; `stages_` has them in order of stage.
    class_prior_, training_shares_ : arrays of shape (n_classes,)
        Class shares that `predict_proba` assumes, and those of the training scans,
        in the order of `classes_`.
    network_weight_ : float
        Weight of the networks in the prediction; 1 without a ridge. If it is 0, the
        prediction is that of `ridge_`, and the networks and their scales have no part
        in it.
    scales_ : array of shape (n_rois,)
        Learned scales of the networks, averaged over them, whatever their weight; those
        of the ridge are `ridge_.scales_`.
    scales_by_start_ : array of shape (n_starts, n_rois)
        Learned scales of each averaged network, without those that failed or were not
        trained.
    scales_start_ : array of shape (n_rois,)
        Initial scales.
    ridge_ : LSAPRidgeClassifier or None
        Ridge regression that training started from; its logits are part of every
        prediction, and all of it if `network_weight_` is 0.
    scale_path_ : array of shape (5, n_rois)
        Scales after 0, 1/4, 1/2, 3/4 and all of the training (up to the chosen epoch),
        averaged over networks.
    measured_ : bool array of shape (n_rois,)
        Regions with a feature in training.
    shared_connectome_ : array of shape (n_rois, n_rois) or None
        The connectome, if all training scans had the same.
    history_ : list of History
        Losses and scales of each network during training.
    fit_report_ : dict
        Error bound at the learned scales, epochs, restarts, settings, warnings and
        more, as JSON allows. `network_gain` is how much the networks at their best
        weight lower the cross-entropy of left-out participants (nats a participant),
        `network_gain_se` its standard error. `failed` is None, or the reason why every
        network failed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(30, 5, 6))
    >>> X[..., :-1] += X[..., :-1].transpose(0, 2, 1)  # connectomes are symmetric
    >>> y = np.where(np.arange(30) % 2, "AD", "CN")
    >>> X[y == "AD", 2, 5] += 3
    >>> model = LSAPClassifier(n_epochs=60, n_starts=2).fit(X, y, groups=np.arange(30))
    >>> model.predict(X[:2]).tolist(), model.scales_.shape
    (['CN', 'AD'], (5,))
    """

    kernel: str | None = None
    _: KW_ONLY
    preset: str = "default"
    scale_mode: str | None = None
    start: str | None = None
    initial_scale: float | str | None = None
    max_scale: float | None = None
    n_layers: int | None = None
    head: str | None = None
    classes: Sequence | None = None
    class_weight: str | None = None
    n_epochs: int | None = None
    n_starts: int | None = None
    threshold: float | None = None
    weights: str | None = None
    connectome: str | None = None
    class_prior: ClassPrior = TRAINING
    random_state: int | None = None
    device: str = "cpu"
    n_threads: int = 1
    options: dict[str, object] | None = None

    def set_params(self, **params: object) -> "LSAPClassifier":
        """Set parameters, and settings in `options` by their own names."""
        value_by_rare_setting = {
            setting_name: params.pop(setting_name)
            for setting_name in RARE_SETTINGS
            if setting_name in params
        }
        super().set_params(**params)
        if value_by_rare_setting:
            self.options = {**(self.options or {}), **value_by_rare_setting}
        return self

    def resolve(self) -> Settings:
        """Check the parameters and return every setting of a fit."""
        value_by_rare_setting = self.options or {}
        for setting_name in value_by_rare_setting:
            check_choice("option", setting_name, RARE_SETTINGS)
        value_by_setting = self.get_params(deep=False) | value_by_rare_setting
        return resolve_kernel_settings(resolve_settings(self.preset, value_by_setting))


@dataclass(eq=False, repr=False)
class NetworkClassifier(GraphClassifier):
    """Classify scans by a network from the literature, as a baseline for LSAP.

    All networks are treated as LSAP: features are standardised over the training scans
    before and after each graph layer, and read-out, restarts and early stopping on
    held-out participants are the same. They differ in how they use the connectome.
    Defaults are those of the paper (two layers of 16 units, Adam with 0.01 and weight
    decay 5e-4), except for the dropout of LSAP: with the paper's 0.5, GDC learned
    nothing. If no network can learn the training scans, `fit_report_["failed"]` says
    why, and the score is that of a failed fit.

    Parameters
    ----------
    network : {"mlp", "gcn", "gat", "gdc", "graphheat", "adc"}
        A perceptron on features alone (MLP); graph convolution (GCN); attention (GAT);
        convolution on graphs rewired by PageRank (GDC); one fixed heat kernel
        (GraphHeat); a learned heat radius for each layer and channel (ADC). See
        :data:`NETWORKS`.
    hidden_units, n_layers : int
        Number of units in each layer and in the read-out, and number of graph layers.
    dropout : float
        Share of units dropped in training.
    learning_rate, weight_decay : float
        Parameters of Adam.
    scale : float
        Heat scale of `graphheat`.
    n_epochs, patience : int
        Maximum number of epochs, and of epochs without a lower validation loss (0:
        never stop early).
    batch_size : int
        Number of scans in one step (0: all).
    validation_fraction : float
        Share of the training participants in each early-stopping set.
    n_starts : int
        Number of networks to average, each with another early-stopping set.
    class_weight : {"balanced", "none"}
        Whether rare classes have a larger weight in the loss.
    threshold : float
        Edges with a smaller weight, in the unit of the connectome, are dropped.
    weights : {"weighted", "log", "binary"}
        Transformation of the remaining edge weights.
    connectome : {"own", "covariance"}, optional
        As in :class:`LSAPClassifier`.
    class_prior : {"training", "balanced"} or dict of class to share
        Class shares that `predict_proba` assumes: those of the training scans,
        equal ones, or your own. `predict` does not depend on it.
    random_state : int, optional
        Seed; None counts as 0.
    device : str
        "cpu" or "cuda".
    n_threads : int
        CPU threads of one fit.

    Attributes
    ----------
    classes_, class_prior_, training_shares_ : see :class:`LSAPClassifier`
    measured_, shared_connectome_, history_ : see :class:`LSAPClassifier`
    fit_report_ : dict
        Epochs, losses, restarts, number of parameters, settings; `failed` is None, or
        the reason why every network failed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.gamma(1.0, size=(40, 5, 6))
    >>> X[..., :-1] += X[..., :-1].transpose(0, 2, 1)  # connectomes are symmetric
    >>> y = np.where(np.arange(40) % 2, "AD", "CN")
    >>> X[y == "AD", 2, 5] += 5
    >>> model = NetworkClassifier("gcn", dropout=0.1, random_state=0)
    >>> model.fit(X, y, groups=np.arange(40)).predict(X[:2]).tolist()
    ['CN', 'AD']
    """

    network: str = "mlp"
    _: KW_ONLY
    hidden_units: int = 16
    n_layers: int = 2
    dropout: float = 0.3
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    scale: float = 2.0
    n_epochs: int = 200
    patience: int = 20
    batch_size: int = 64
    validation_fraction: float = 0.2
    n_starts: int = 1
    class_weight: str = "balanced"
    threshold: float = 0.0
    weights: str = "weighted"
    connectome: str | None = None
    class_prior: ClassPrior = TRAINING
    random_state: int | None = None
    device: str = "cpu"
    n_threads: int = 1

    def resolve(self) -> Settings:
        """Check the parameters and return every setting of a fit."""
        check_choice("network", self.network, NETWORKS)
        check_at_least("scale", self.scale, 0.0)
        value_by_setting = self.get_params(deep=False) | {
            "start": "constant",
            "initial_scale": float(self.scale),
            "readout_units": self.hidden_units,
            "readout_penalty": 0.0,
            "least_learned": _MIN_LEARNED_SHARE,
        }
        return resolve_settings("default", value_by_setting)
