"""All that a report shows, gathered before anything is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from brainlsap.data import Atlas
from brainlsap.evaluation import (
    Evaluation,
    RankingEvidence,
    add_evidence,
    rank_regions,
    ranking_verdict,
)
from brainlsap.exceptions import BrainlsapError
from brainlsap.report.audit_tables import NOT_BY_PERSON
from brainlsap.report.common_regions import mean_scales
from brainlsap.report.illustrations import (
    SCALE_LABEL,
    Picture,
    draw_calibration,
    draw_maps,
    draw_ranking,
    draw_scores,
    known_values,
)
from brainlsap.report.interactive import interactive_html
from brainlsap.report.methods import methods_text
from brainlsap.report.network_pictures import draw_network
from brainlsap.report.page_tables import page_tables
from brainlsap.report.privacy import withholder
from brainlsap.report.ranking_words import ranking_words
from brainlsap.report.record import fit_warnings, made_with, run_record
from brainlsap.report.stored import StoredResults
from brainlsap.report.training_pictures import draw_training
from brainlsap.report.words import default_title, headline


@dataclass(frozen=True, eq=False)
class Contents:
    """All that a report shows, before it is written."""

    evaluation: Evaluation
    atlas: Atlas
    title: str
    headline: tuple[str, ...]
    ranking: pd.DataFrame | None
    about_ranking: tuple[str, ...]
    truth: pd.DataFrame | None
    evidence: RankingEvidence | None
    notes: tuple[str, ...]
    brain: str | None
    pictures: dict[str, tuple[Picture, ...]]
    gaps: tuple[str, ...]
    tables: dict[str, pd.DataFrame]
    record: dict[str, Any]
    warnings: dict[str, list[str]]
    methods: tuple[str, ...]
    identified: bool


def gather_contents(
    results: StoredResults,
    ranking: pd.DataFrame | None = None,
    surface_maps: Mapping[str, Any] | None = None,
    *,
    with_identifiers: bool = False,
) -> Contents:
    """Draw every figure and make every table and sentence of a report.

    Parameters
    ----------
    results : StoredResults
        What the report is made of.
    ranking : DataFrame, optional
        By default made here, where a model has scales.
    surface_maps : mapping, optional
        Maps to draw on the brain, by default the mean scales of every model.
    with_identifiers : bool
        Whether names of people stay in notes and warnings.

    Returns
    -------
    Contents
    """
    evaluation, atlas = results.evaluation, results.atlas
    withhold = str if with_identifiers else withholder(evaluation)
    ranking = _complete_ranking(results, ranking)
    maps = mean_scales(evaluation) if surface_maps is None else surface_maps
    pictures, gaps = _pictures(results, ranking, maps)
    made = results.made_with or made_with()
    # the day of the run is nobody's, and is told
    record = run_record(evaluation, withhold, made) | {"date": made["date"]}
    verdict = None if ranking is None else ranking_verdict(ranking)
    mark = f" ({NOT_BY_PERSON})" if evaluation.people_shared else ""
    notes = (*evaluation.cohort.notes, *results.cohort_notes)
    return Contents(
        evaluation=evaluation,
        atlas=atlas,
        title=f"{results.title or default_title(evaluation)}{mark}",
        # A ranking that is no better than chance must not be met further down.
        headline=(*([verdict] if verdict else []), *headline(evaluation)),
        ranking=ranking,
        about_ranking=_about_ranking(results, ranking),
        truth=results.truth,
        evidence=results.evidence,
        notes=tuple(dict.fromkeys(withhold(note) for note in notes)),
        brain=_turning_brain(maps, atlas),
        pictures=pictures,
        gaps=gaps,
        tables=page_tables(results, ranking, withhold, with_identifiers),
        record=record,
        warnings=fit_warnings(evaluation, withhold),
        methods=methods_text(
            evaluation, record["versions"]["brainlsap"], results.evidence
        ),
        identified=with_identifiers,
    )


def _complete_ranking(
    results: StoredResults, ranking: pd.DataFrame | None
) -> pd.DataFrame | None:
    """Return the ranking with answer key and evidence, or None without scales."""
    evaluation, truth, evidence = results.evaluation, results.truth, results.evidence
    if ranking is None:
        if all(one.scales() is None for one in evaluation.results.values()):
            return None
        model = None if evidence is None else evidence.model
        ranking = rank_regions(evaluation, model=model, truth=truth)
    elif truth is not None and "seed" not in ranking:
        seeds = truth.loc[truth["seed"].astype(bool), "region"]
        ranking = ranking.assign(seed=ranking["region"].isin(seeds))
    if evidence is None or "rank_adjusted" in ranking or "p_family" in ranking:
        return ranking
    return add_evidence(ranking, evidence)


def _turning_brain(maps: Mapping[str, Any], atlas: Atlas) -> str | None:
    """Return the page of a brain to turn and point at, or None without surfaces."""
    drawn = {name: one for name, one in maps.items() if known_values(one).size}
    if not drawn:
        return None
    try:
        return interactive_html(
            drawn, atlas, title="Heat scale by region", colorbar_label=SCALE_LABEL
        )
    except BrainlsapError:  # the static drawing says why
        return None


def _about_ranking(
    results: StoredResults, ranking: pd.DataFrame | None
) -> tuple[str, ...]:
    if ranking is None:
        return ()
    found = (one.scales() for one in results.evaluation.results.values())
    scales = next((one for one in found if one is not None), None)
    return ranking_words(ranking, scales, results.truth, results.evidence)


def _pictures(
    results: StoredResults,
    ranking: pd.DataFrame | None,
    maps: Mapping[str, Any],
) -> tuple[dict[str, tuple[Picture, ...]], tuple[str, ...]]:
    evaluation, atlas = results.evaluation, results.atlas
    scores, confusion = draw_scores(evaluation)
    pictures: dict[str, tuple[Picture, ...]] = {
        "scores": (scores,),
        "confusion": (confusion,),
        "calibration": (draw_calibration(evaluation),),
        "ranking": (),
    }
    pictures["surfaces"], gaps = draw_maps(maps, atlas)
    if ranking is not None and ranking["measured"].any():
        pictures["ranking"] = draw_ranking(ranking, atlas)
    pictures["training"], more = draw_training(evaluation, atlas)
    pictures["network"], yet_more = draw_network(results.evidence, atlas)
    return pictures, (*gaps, *more, *yet_more)
