"""Sentences for a paper: the headline, and methods generated from every setting."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from brainlsap.atlas import Atlas
from brainlsap.evaluation import Evaluation, chance_p, compare_models
from brainlsap.evaluation import ranking as ranks
from brainlsap.evaluation.leakage import N_PERMUTATIONS, check_title
from brainlsap.report import tables
from brainlsap.report.privacy import withhold_paths
from brainlsap.report.tables import p_text, reported_values, spread_text
from brainlsap.text import count, with_and

N_NAMED, N_FIRST = 3, 10
"""So many regions are named in the headline, and are the smallest of a network."""

LATE = 0.2
"""A best epoch in this last share of the epochs: more epochs may help."""

EARLY = 3
"""A network kept from one of so many first epochs is hardly more than its start."""

N_EXCHANGES = 2000
"""Of labels between people, for the p-value in the headline."""

MODEL_PHRASES = {
    "none": "no network",
    "one": "one scale",
    "regions": "a scale per region",
}
"""What ridges are called by what is learned of the network."""

# What changes no number, or stands in the templates' own sentences.
_DESIGN = "cv n_folds n_repeats random_state people_shared"
_PLACES_AND_SPEED = "folder subjects_dir derivatives out memory device n_threads n_jobs"
_ABOUT = "version brainlsap versions date verbose title overwrite people"
_SAID = "atlas feature label model models baselines steps asked options class_prior"
CONTROLS = {
    "features only": "without any connection",
    "edges only": "logistic regression on the connectome's weights",
    "shuffled edges": "weights moved to other pairs of regions",
    "frozen scales": "scales kept at their start",
    "one global scale": "one scale for all regions",
    "constant features": "a constant in place of features, and no ridge",
    "confounds only": "logistic regression on covariates, and on sum and density of "
    "the connectome",
}
"""What controls are: LSAP-C but for this, or another model."""
UNSAID = frozenset(f"{_DESIGN} {_PLACES_AND_SPEED} {_ABOUT} {_SAID}".split())


class Settings:
    """Settings in words, for templates: each by its own, the rest with their values."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.left = {
            key: as_text(value)
            for key, value in settings.items()
            if value not in (None, [], (), {}, "")
        }

    def __call__(self, key: str, text: str | Mapping[str, str]) -> str:
        """Return a setting in words, "" where it was not set."""
        if key not in self.left:
            return ""
        value = self.left.pop(key)
        if not isinstance(text, str):
            known = text.get("*", f"{key.replace('_', ' ')}: {{}}")
            text = text.get(value, known)
        return text.format(value)

    def rest(self, begin: str) -> str:
        """Return a sentence of all that had no words."""
        left = {key: one for key, one in self.left.items() if key not in UNSAID}
        told = [f"{key.replace('_', ' ')} = {one}" for key, one in left.items()]
        return f"{begin}: {'; '.join(told)}." if told else ""


def headline(evaluation: Evaluation) -> list[str]:
    """Return the first sentences of a report: who, how well, against what, and where.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    list of str
        The verdict on the best baseline is the Holm-corrected test of
        :func:`brainlsap.report.comparison_table`.
    """
    first, ranking = evaluation.models[0], evaluation.ranking
    atlas = evaluation.cohort.atlas
    means = tables.summary_of(evaluation, "balanced_accuracy")
    scores = {name: spread_text(*one) for name, one in means[["mean", "sd"]].T.items()}
    others = means.loc[[n for n in evaluation.baselines if n != first], "mean"].dropna()
    best = others.idxmax() if len(others) else None
    tests = compare_models(evaluation).set_index("model")
    regions, sure, direction = "", "", None
    if ranking is not None:
        known = ranking[ranking["p"] < 0.05] if "p" in ranking else ranking[:0]
        regions, sure = (_smallest(some, atlas) for some in (ranking, known))
        named = ranking if known.empty else known
        named = named.assign(rank=named["rank"].rank(method="min"))  # one is the first
        direction = tables.direction_table(evaluation, named, atlas, 1).iloc[0]
    return _paragraphs(
        "headline",
        evaluation,
        first=first,
        chance=chance_p(evaluation, first, N_EXCHANGES),
        pooled=tables.intervals(evaluation, first).loc["balanced_accuracy"],
        scores=scores,
        best=best,
        test=tests.loc[best].to_dict() if best in tests.index else None,
        regions=regions,
        sure=sure,
        direction=direction,
        n_lacking=tables.folds_lacking(evaluation),
    )


def _smallest(ranking: pd.DataFrame, atlas: Atlas | None) -> str:
    """Name the first measured regions of a ranking; "" of none."""
    ranked = ranking.dropna(subset="rank")
    some = ranked.nsmallest(N_NAMED, "rank")["region"]
    if (ranked["rank"] <= N_NAMED).sum() > 2 * N_NAMED:  # equals, in atlas' order
        return ""
    return with_and(tables.region_labels(list(some), atlas)) if len(some) else ""


def methods_text(evaluation: Evaluation) -> list[str]:
    """Return paragraphs of methods and results, ready to paste into a manuscript.

    Every option of :func:`brainlsap.load_cohort`, :func:`brainlsap.run_study` and
    :class:`brainlsap.LSAPClassifier` that changes a number is told, as the records of
    the evaluation have it; what has no sentence is listed with its value.

    Parameters
    ----------
    evaluation : Evaluation
        Models on the same folds.

    Returns
    -------
    list of str
        Participants and data, models, evaluation, regions, results.
    """
    cohort, settings = evaluation.cohort, evaluation.settings
    people = tables.sort_by_visit(cohort.table).drop_duplicates("participant")
    ages = tables.covariate(people, "age")
    # what was found counts before what was asked: an array may be of all scans
    reading = dict(cohort.provenance)
    reading = withhold_paths((reading.pop("asked", None) or {}) | reading)
    if not {"thickness", "area"} & set(cohort.feature_names):
        reading.pop("subcortex", None)
    others = evaluation.fits.query("role != 'model'")["model"].unique()
    return _paragraphs(
        "methods",
        evaluation,
        features=tables.feature_text(cohort),
        age=None if ages is None else spread_text(ages.mean(), ages.std(), 1),
        n_ageless=0 if ages is None else ages.isna().sum(),
        reading=Settings(reading),
        lsap=_network_settings(evaluation),
        ridges=_ridges(evaluation),
        study=Settings((settings.get("steps") or {}) | settings),
        others=with_and(others) if 0 < len(others) < len(evaluation.models) else "",
        scores=tables.score_table(evaluation, ["balanced_accuracy", "auc"]).iloc[:, :3],
    )


def chosen_text(evaluation: Evaluation) -> str:
    """Return which ridge was chosen in how many folds, by each model that chooses."""
    told = []
    for name, fits in evaluation.fits.groupby("model", sort=False):
        chosen = (
            pd.Series(reported_values(fits, "chosen")).map(MODEL_PHRASES).value_counts()
        )
        if json.loads(fits["settings"].iloc[0]).get("ladder") == "auto":
            folds = [f"{one} in {count(n, 'fold')}" for one, n in chosen.items()]
            told.append(f"{name} chose {with_and(folds)}.")
    return " ".join(told)


PRIORS = {
    "training": "the class shares of the training scans",
    "balanced": "equal shares of all classes",
}
"""What probabilities assume, by `class_prior`."""


def prior_text(evaluation: Evaluation) -> str:
    """Return which class shares probabilities assume; empty where no model has any."""
    models_by_prior: dict[str, list[str]] = {}
    for model, prior in evaluation.class_priors().items():
        if isinstance(prior, Mapping):
            shares = (f"{share:.3g} {name}" for name, share in prior.items())
            words = f"class shares of {with_and(shares)}"
        else:
            words = PRIORS[prior]
        models_by_prior.setdefault(words, []).append(model)
    if not models_by_prior:
        return ""
    parts = [f"{with_and(names)}: {words}" for words, names in models_by_prior.items()]
    if len(parts) == 1:
        (words,) = models_by_prior
        parts = [words]
    without = set(evaluation.models) - set(evaluation.class_priors())
    forest = ""
    if "random forest" in without:
        forest = " Those of the random forest are shares of its trees' votes."
    return f"Probabilities assume {'; '.join(parts)}.{forest}"


def training_text(evaluation: Evaluation) -> str:
    """Say how far training moved the scales of networks, and where they began."""
    begun, told = evaluation.scales.query("share == 0"), []
    for name, scales in begun.groupby("model", sort=False):
        ranked = ranks.rank_regions(evaluation, str(name))
        first = ranked.nsmallest(N_FIRST, "rank")["moved"]
        n_values = scales.groupby(["repeat", "fold"])["scale"].nunique()
        told.append(
            f"{ranked['moved'].mean():.0%} of {name} ({first.mean():.0%} of its "
            f"{len(first)} smallest), which began at one value for all regions in "
            f"{(n_values == 1).sum()} of {count(len(n_values), 'fold')}"
        )
    return bool(told) * (
        "Heat scales (means over starts) that training moved by more than 5% of their "
        "first values: "
        f"{'; '.join(told)}. Where all began at one value, the map is what training "
        "did; elsewhere scales began as the most probable ones of a ridge in the same "
        "fold (not posterior means, which the map of the ridge itself has), and the "
        "map is the more that of the start, the fewer were moved."
    )


def networks_kept(evaluation: Evaluation, when: str) -> str:
    """Return the networks that most folds kept from the first epochs ("early").

    Or "late": those that most folds were still teaching at the last epoch; or
    "unchecked": those that most folds trained without people for validation.
    """
    told = []
    for name, fits in evaluation.fits.dropna(subset="epochs").groupby("model"):
        settings = pd.DataFrame(reported_values(fits, "settings"))
        if "n_epochs" in settings:
            losses = [(json.loads(one) or {}).get("losses") for one in fits["report"]]
            blind = np.array(
                [{*(x or {}).get("validation", "")} == {None} for x in losses]
            )
            waits = settings.get("patience", pd.Series(0)).clip(lower=1)
            best, most = fits["epochs"].to_numpy() + 1, settings["n_epochs"]
            late = ~blind & (best + waits >= most) & (best > (1 - LATE) * most)
            early = ~blind & (best <= EARLY)
            n = {"unchecked": blind, "late": late, "early": early}[when].sum()
            if 2 * n > len(fits):
                epochs = count(settings["n_epochs"].iloc[0], "epoch")
                told.append(f"{name} ({epochs}; in {n} of {count(len(fits), 'fold')})")
    return with_and(told) if told else ""


def _network_settings(evaluation: Evaluation) -> list[tuple[str, Settings, str]]:
    """Return name, settings unlike those of the first, and its name, of networks.

    The first of LSAP, or of other networks.
    """
    from brainlsap.graph import kernel_title
    from brainlsap.model import NETWORKS

    found: list[tuple[str, Settings, str]] = []
    firsts: dict[bool, tuple[str, dict[str, Any]]] = {}
    own = evaluation.fits[evaluation.fits["role"] != "control"]
    for name, fits in own.groupby("model", sort=False):
        settings = _model_settings(fits)
        if "kernel" not in settings:
            continue
        network = settings.get("network", "heat")
        if network != "heat":  # what it was not asked for is of heat kernels
            asked = {*_flat(json.loads(fits["settings"].iloc[0])), "head"}
            asked -= {"n_layers"} | NETWORKS[network].unused_settings
            kept = {k: v for k, v in settings.items() if k in asked}
            settings = {"layers": settings["n_layers"], **kept}
        if "kernel" in settings:
            settings["kernel"] = kernel_title(settings["kernel"])
        like, first = firsts.get(network == "heat", ("", {}))
        told = {k: v for k, v in settings.items() if first.get(k) != v}
        found.append((str(name), Settings(told), like))
        firsts.setdefault(network == "heat", (str(name), settings))
    return found


def _ridges(evaluation: Evaluation) -> tuple[dict[str, str], bool, Settings]:
    """Return ridges by what they learn, whether classes are a number, and settings."""
    names, settings, ordered = dict[str, str](), dict[str, Any](), False
    for name, fits in evaluation.fits.groupby("model", sort=False):
        own = _model_settings(fits)
        if "ladder" in own:
            names[own.pop("ladder")] = str(name)
            ordered = any(reported_values(fits, "ordered"))
            settings |= own
    settings.pop("classes", None)
    return names, ordered, Settings(settings)


def _model_settings(fits: pd.DataFrame) -> dict[str, Any]:
    """Return the settings that were asked for, those chosen in fits filled in."""
    asked = _flat(json.loads(fits["settings"].iloc[0]))
    of_fits = [_flat(one) for one in reported_values(fits, "settings")]
    for one in (asked, *of_fits):
        if (one.get("patience") or 0) >= (one.get("n_epochs") or float("inf")):
            one["patience"] = 0
    keys = (key for one in of_fits for key in one if key != "random_state")
    for key in dict.fromkeys(keys):
        values = sorted({as_text(one.get(key)) for one in of_fits})
        if len(values) > 1:
            asked[key] = f"{' or '.join(values)} (chosen in each training fold)"
        elif asked.get(key) is None:
            asked[key] = of_fits[0][key]
    if asked.get("scale_penalty") == "none":
        asked.pop("penalty_weight", None)
    return asked


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    flat = dict(settings)
    return flat | (flat.pop("options", None) or {})


def _paragraphs(name: str, evaluation: Evaluation, **values: Any) -> list[str]:
    """Fill a template, and part its paragraphs."""
    text = TEMPLATES.get_template(f"{name}.txt.j2").render(
        **values,
        evaluation=evaluation,
        cohort=evaluation.cohort,
        settings=evaluation.settings,
    )
    paragraphs = (" ".join(one.split()) for one in text.split("\n---\n"))
    return [one for one in paragraphs if one]


def as_text(value: Any) -> str:
    """Return a value as a sentence has it: short numbers, lists with commas."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {as_text(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return with_and(map(as_text, value))
    return " ".join(str(value).split())


TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=select_autoescape(["html.j2"]),
    undefined=StrictUndefined,
)
"""The page, and the texts on it."""
TEMPLATES.filters |= {"check_title": check_title, "count": count, "p": p_text}
TEMPLATES.globals |= {"controls": CONTROLS}
TEMPLATES.globals |= {"linear_controls": ("edges only", "confounds only")}
TEMPLATES.globals |= {"chosen": chosen_text, "networks_kept": networks_kept}
TEMPLATES.globals |= {"prior_text": prior_text}
TEMPLATES.globals |= {"ranks": ranks, "made": tables, "n_exchanges": N_EXCHANGES}
TEMPLATES.globals |= {"n_audited": N_PERMUTATIONS}
