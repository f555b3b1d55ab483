"""Sentences for a paper: the headline, and methods generated from every setting."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.evaluation import Evaluation
from brainlsap.report.tables import (
    covariate,
    mean_scores,
    p_text,
    spread_text,
    test_against_first,
)

__all__ = ["headline", "methods_text"]

ALPHA = 0.05

Phrase = str | Mapping[Any, str] | Callable[[Any], str]

FEATURES = {
    "thickness": "cortical thickness",
    "volume": "grey-matter volume",
    "area": "cortical surface area",
    "strength": "strength of the connectome (sum of a region's weights)",
    "fdg": "FDG-PET SUVR",
    "amyloid": "amyloid-PET SUVR",
    "tau": "tau-PET SUVR",
}

MODEL_SENTENCES: tuple[tuple[str, dict[str, Phrase]], ...] = (
    (
        "{model} used ",
        {
            "kernel": {
                "exact": "the exact heat kernel, from eigenvectors",
                "chebyshev": "a Chebyshev expansion of the heat kernel",
                "hermite": "a Hermite expansion of the heat kernel",
                "laguerre": "a Laguerre expansion of the heat kernel",
            },
            "degree": "degree {}",
            "tolerance": "an error of the kernel of at most {:g}",
            "normalization": {
                "symmetric": "the symmetrically normalised Laplacian",
                "random_walk": "the random-walk normalised Laplacian",
            },
            "inputs": {"features": "", "constant": "a constant in place of features"},
            "n_layers": "{} convolution layer(s)",
            "hidden_units": "{} hidden units a layer",
            "readout_units": "a read-out of {} units",
            "head": {
                "softmax": "a softmax over the classes",
                "ordinal": "an ordinal head (CORN; Shi et al., 2023)",
            },
            "linear_penalty": lambda value: (
                f"a linear path with penalty {_number(value)}" if value else ""
            ),
            "dropout": "dropout of {:g}",
            "standardize": {
                "region": "inputs standardised by region over the training scans",
                "scan": "inputs standardised within each scan",
            },
        },
    ),
    (
        "Scales: ",
        {
            "scale_mode": {
                "region": "one learned for each region",
                "global": "one learned for all regions",
                "frozen": "fixed, not learned",
            },
            "initial_scale": lambda value: (
                "started where the loss on inner validation people was lowest (0.2, "
                "1 or 2)"
                if value == "auto"
                else f"started at {_number(value)}"
            ),
            "max_scale": "kept at or below {:g}",
            "scale_step": "gradient steps of size {:g}",
            "scale_clip": "each step clipped at {:g}",
            "scale_penalty": {
                "none": "",
                "barrier": "a barrier that keeps them positive",
                "l1": "an l1 penalty",
            },
            "penalty_weight": "penalty weight {:g}",
        },
    ),
    (
        "Training: ",
        {
            "preset": {"default": "", "paper": "the settings of Sim et al. (2024)"},
            "learning_rate": "Adam with learning rate {:g}",
            "weight_decay": "weight decay {:g}",
            "readout_penalty": "squared weights of the read-out penalised by {:g}",
            "label_smoothing": "labels smoothed by {:g}",
            "class_weight": {
                "balanced": "classes weighted to count alike",
                "none": "all scans weighted alike",
            },
            "n_epochs": "at most {} epochs",
            "patience": lambda value: (
                f"stopped after {value} epochs without a lower validation loss"
                if value
                else "no early stopping"
            ),
            "validation_fraction": "{:.0%} of the training people for validation",
            "batch_size": lambda value: (
                f"batches of {value} scans" if value else "all scans in each step"
            ),
            "n_starts": "{} network(s) from different seeds averaged",
            "random_state": "model seed {}",
            "calibration": {
                "none": "",
                "temperature": "probabilities calibrated by one temperature learned "
                "on validation people",
            },
            "tune": "settings tuned by inner folds of the training people (search "
            "space: {})",
        },
    ),
    (
        "Connectomes: ",
        {
            "threshold": lambda value: (
                f"links below {_number(value)} removed" if value else ""
            ),
            "threshold_unit": {
                "weight": "",
                "share": "the threshold being a share of the sum of weights",
                "density": "the threshold being a density of links",
            },
            "weights": {
                "weighted": "weights as measured",
                "log": "weights replaced by log(1 + weight)",
                "binary": "links set to 1",
            },
            "symmetrize": {
                "mean": "",
                "max": "the larger of both directions",
                "refuse": "asymmetric connectomes refused",
            },
            "volumes": "weights divided by the mean volume of both regions",
            "consensus": lambda value: (
                f"links kept that at least {value:.0%} of the training people have"
                if value
                else ""
            ),
            "group_density": "a group mask of density {:g} from the training people",
            "isolated": {
                "keep": "",
                "strongest": "regions without links given back their strongest link",
                "mean": "regions without links given the mean of the training people",
                "refuse": "regions without links refused",
            },
            "connectome": {
                "own": "",
                "mean": "the mean of the training people for everybody",
                "covariance": "covariance of features over the training people",
            },
        },
    ),
)
"""How a setting of an LSAP model reads, by sentence; settings at None are left out.

A text takes the value by format; a mapping has a text for each choice; "" says nothing.
"""

COHORT_PHRASES: dict[str, Phrase] = {
    "simulated": "Data were simulated ({}).",
    "connectome": {
        "one per scan": "",
        "none": "No connectome was read.",
        None: "",
    },
    "scans": {
        "all": "All visits were used.",
        "baseline": "Of every participant the baseline visit was used.",
    },
    "classes": lambda value: (
        f"Classes were restricted to, and ordered as, {_listed(value)}."
        if value
        else ""
    ),
    "subcortex": {
        "absent": "Measures of the cortical surface have no value in the subcortex.",
        "mean": "In the subcortex, the mean of the scan's cortex stood for measures of "
        "the cortical surface.",
        "volume": "In the subcortex, volume stood for measures of the cortical "
        "surface.",
    },
    "symmetrize": lambda value: (
        f"Asymmetric connectomes were made symmetric ({value})." if value else ""
    ),
    "measure": "Of connectome files with several matrices, {} was used.",
    "labels": "Rows of connectomes were named by a given list ({}).",
    "row_order": "Rows of connectomes were taken to be in the order of {}.",
    "frames": lambda value: (
        f"PET frames from {value[0]:g} to {value[1]:g} s were averaged."
        if value
        else ""
    ),
    "reference": "The reference region of PET was {}.",
    "features_table": "Features were taken from {}.",
    "pattern": "Files were chosen by the pattern {}.",
    "derivatives": "Derivatives were read from {}.",
    "subjects_dir": "FreeSurfer's results were read from {}.",
    "merged_classes": lambda value: (
        "Classes were merged: "
        + _listed(f"{' + '.join(old)} to {new}" for new, old in value.items())
        + "; scans of other classes were left out."
        if value
        else ""
    ),
    "n_people": "{} people were simulated.",
    "effect": "Simulated effect: {}.",
    "spread": "Simulated spread along the network: {}.",
    "noise": "Simulated noise: {}.",
    "conversion": "Simulated rate of conversion: {}.",
    "case": "Simulated case: {}.",
    "random_state": "Seed of the simulation: {}.",
}
"""How an option of `load_cohort`, `merge_classes` or a simulation reads."""

STUDY_PHRASES: dict[str, Phrase] = {
    "leave_out": "Each value of {} was the test fold once.",
    "harmonize": "Differences between the values of {} were removed from the features "
    "by ComBat (Johnson et al., 2007), fitted on the training scans of each fold.",
    "regress_out": lambda value: (
        f"Linear effects of {_listed(value)} on the features were removed, with "
        "coefficients from the training scans of each fold."
        if value
        else ""
    ),
    "handle_unknown": {
        "keep": "",
        "error": "Test scans of a site without training scans were refused.",
    },
    "n_permutations": lambda value: (
        f"Scales were compared with those of {value} fits to labels permuted between "
        "participants, in the same folds and with the same steps; one-sided p-values "
        "were corrected over regions by the distribution of the smallest relative "
        "scale (family-wise)."
        if value
        else ""
    ),
    "fast": {
        False: "",
        True: "Models were fitted with one start and fewer epochs than usual.",
    },
}
"""How a setting of the study reads, beside those with sentences of their own."""

STUDY_SENTENCES = frozenset(
    {"cv", "n_folds", "n_repeats", "random_state", "people_shared", "stratified"}
)
"""Settings of the study that :func:`methods_text` has whole sentences for."""

UNSAID = frozenset(
    {
        # where things are, how fast, how many processes
        *("folder", "out", "n_jobs", "verbose", "memory", "device", "n_threads"),
        *("progress", "title", "with_identifiers", "version", "brainlsap"),
        # said by sentences of their own
        *("atlas", "feature", "label", "models", "baselines", "steps", "asked"),
        *("options", "preparation", "differences"),
    }
)
"""Keys of records that change no number, or are said elsewhere."""


def headline(evaluation: Evaluation) -> list[str]:
    """Return the first sentences of a report: who, how well, and against what.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    list of str
        The verdict on the best baseline is the Holm-corrected test of
        :func:`comparison_table`, over people.
    """
    cohort, first = evaluation.cohort, evaluation.models[0]
    sentences = list(evaluation.settings.get("differences", ()))
    if evaluation.settings.get("people_shared"):
        sentences.append(
            "People have scans in training and in test folds: a model can know the "
            "answer by knowing the person, and these scores say nothing of new people."
        )
    means = mean_scores(evaluation)["balanced_accuracy"]
    if first not in means.index or not np.isfinite(means[first]["mean"]):
        return [*sentences, f"{first} failed to train and has no score."]
    sentences.append(
        f"{first} separates {len(cohort.classes)} classes of {cohort.label_name} "
        f"({', '.join(cohort.classes)}) with a balanced accuracy of "
        f"{spread_text(*means[first])} (mean ± s.d. over {_fold_count(evaluation)}; "
        f"chance is {1 / len(cohort.classes):.3f}), in "
        f"{count(cohort.n_scans, 'scan')} of {count(cohort.n_participants, 'person')}."
    )
    return sentences
