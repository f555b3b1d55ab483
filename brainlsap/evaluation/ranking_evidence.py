"""What was found out about a ranking beside the scales: refits, properties, reach."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from brainlsap.evaluation.fitting import plain
from brainlsap.evaluation.ranking_agreement import rank_correlation, rank_rows
from brainlsap.evaluation.ranking_confounds import rank_without
from brainlsap.evaluation.ranking_nulls import null_p_values
from brainlsap.evaluation.ranking_spread import start_spread
from brainlsap.exceptions import FileFormatError, ParameterError


@dataclass(frozen=True, eq=False)
class RankingEvidence:
    """What a ranking is held against; every part may be missing.

    Parameters
    ----------
    model : str
        The model whose scales are ranked.
    region_names : tuple of str
        Name of every region; the order of all arrays.
    properties : DataFrame, optional
        As of :func:`brainlsap.evaluation.region_properties`.
    rank_one : mapping of str to float
        Share of rank one of each model's mean kernel at its learned scales; see
        :func:`brainlsap.evaluation.rank_one_share`.
    starts : mapping of float to array of shape (n_folds, n_rois)
        Learned scales by start, on the same folds.
    permuted, untrained : array of shape (1 + n, n_rois), optional
        Scales of one fit to the true labels, and below it those of fits to permuted
        labels, or of networks before training.
    importance : array of shape (n_rois,), optional
        A second view: large where the model's answer hangs on the region.
    importance_kind : str
        What that is, for example "integrated gradients".
    connectome : array of shape (n_rois, n_rois), optional
        Mean over scans as they were read, before any preparation; six digits are
        kept, to be drawn.
    reach : mapping of str to array of shape (n_rois,)
        Rows of the mean kernel at the learned scales: what every region adds to the
        diffused value of these.

    Examples
    --------
    >>> evidence = RankingEvidence("LSAP-C", ("a", "b"), rank_one={"LSAP-C": 0.93})
    >>> RankingEvidence.from_record(evidence.to_record()).rank_one
    {'LSAP-C': 0.93}
    """

    model: str
    region_names: tuple[str, ...]
    properties: pd.DataFrame | None = None
    rank_one: Mapping[str, float] = field(default_factory=dict)
    starts: Mapping[float, np.ndarray] = field(default_factory=dict)
    permuted: np.ndarray | None = None
    untrained: np.ndarray | None = None
    importance: np.ndarray | None = None
    importance_kind: str = ""
    connectome: np.ndarray | None = None
    reach: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # rounded here, so that a report that is remade is the same to the last byte
        reach = {name: _brief(one) for name, one in self.reach.items()}
        object.__setattr__(self, "reach", reach)
        if self.connectome is not None:
            object.__setattr__(self, "connectome", _brief(self.connectome))
        n_rois = len(self.region_names)
        arrays = {"permuted": self.permuted, "untrained": self.untrained}
        arrays |= {f"start {start:g}": one for start, one in self.starts.items()}
        if self.importance is not None:
            arrays["importance"] = self.importance[None]
        arrays |= {f"reach of {name}": one[None] for name, one in self.reach.items()}
        arrays["connectome"] = self.connectome
        for name, one in arrays.items():
            if one is not None and np.shape(one)[1:] != (n_rois,):
                raise ParameterError(
                    f"{name} must have one column for each of {n_rois} regions, got "
                    f"shape {np.shape(one)}."
                )

    def to_record(self) -> dict[str, Any]:
        """Return everything as JSON takes it; no person is in it."""
        table = None if self.properties is None else self.properties.to_dict("list")
        return {
            "model": self.model,
            "region_names": list(self.region_names),
            "properties": plain(table),
            "rank_one": plain(dict(self.rank_one)),
            "starts": {f"{start:g}": plain(one) for start, one in self.starts.items()},
            "permuted": plain(self.permuted),
            "untrained": plain(self.untrained),
            "importance": plain(self.importance),
            "importance_kind": self.importance_kind,
            "connectome": plain(self.connectome),
            "reach": {name: plain(one) for name, one in self.reach.items()},
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "RankingEvidence":
        """Return what :meth:`to_record` has written.

        Parameters
        ----------
        record : mapping
            As read from JSON.

        Returns
        -------
        RankingEvidence

        Raises
        ------
        FileFormatError
            Where a part is missing.
        """
        try:
            table = record["properties"]
            return cls(
                model=record["model"],
                region_names=tuple(record["region_names"]),
                properties=None if table is None else pd.DataFrame(table),
                rank_one={name: _number(v) for name, v in record["rank_one"].items()},
                starts={float(s): _array(v) for s, v in record["starts"].items()},
                permuted=_optional(record["permuted"]),
                untrained=_optional(record["untrained"]),
                importance=_optional(record["importance"]),
                importance_kind=record["importance_kind"],
                connectome=_optional(record.get("connectome")),
                reach={k: _array(v) for k, v in record.get("reach", {}).items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileFormatError(
                f"the evidence of a ranking lacks or spoils a part ({error!r}); make "
                "it anew with `brainlsap rank`."
            ) from error


def add_evidence(ranking: pd.DataFrame, evidence: RankingEvidence) -> pd.DataFrame:
    """Return a ranking with what was found out about it, as further columns.

    Parameters
    ----------
    ranking : DataFrame
        As from :func:`brainlsap.evaluation.rank_regions`.
    evidence : RankingEvidence
        Of the same regions.

    Returns
    -------
    DataFrame
        With the columns of :func:`brainlsap.evaluation.start_spread` (several
        starts); p_value, p_family, p_centred, p_fdr (labels permuted; of
        :func:`brainlsap.evaluation.null_p_values`) and p_untrained (family-wise,
        against the untrained start); rank_adjusted (properties removed); importance
        and importance_rank (1 is the most important), as far as there is evidence.

    Raises
    ------
    ParameterError
        Where the regions differ.

    Examples
    --------
    See :func:`brainlsap.evaluation.rank_regions`.
    """
    if list(ranking["region"]) != list(evidence.region_names):
        raise ParameterError(
            "evidence must be of the regions of the ranking, in the same order."
        )
    known = ranking["measured"].to_numpy(dtype=bool)
    parts = [ranking.reset_index(drop=True)]
    if len(evidence.starts) > 1:
        parts.append(start_spread(evidence.starts, known))
    if evidence.permuted is not None:
        found = null_p_values(evidence.permuted[0], evidence.permuted[1:], known)
        parts.append(found[["p_value", "p_family", "p_centred", "p_fdr"]])
    if evidence.untrained is not None:
        found = null_p_values(evidence.untrained[0], evidence.untrained[1:], known)
        parts.append(found["p_family"].rename("p_untrained"))
    if evidence.properties is not None:
        parts.append(rank_without(ranking, evidence.properties)[["rank_adjusted"]])
    if evidence.importance is not None:
        shown = np.where(known, evidence.importance, np.nan)
        ranks = rank_rows(-shown[None], "min")[0]
        parts.append(pd.DataFrame({"importance": shown, "importance_rank": ranks}))
    return pd.concat(parts, axis=1)


def untrained_agreement(evidence: RankingEvidence) -> float:
    """Return how far networks before training have the ranking already.

    Parameters
    ----------
    evidence : RankingEvidence
        With `untrained`.

    Returns
    -------
    float
        Spearman correlation of the trained scales with the mean of the untrained;
        NaN without them.

    Examples
    --------
    >>> scales = np.array([[0.1, 0.5, 0.9], [0.9, 0.95, 1.0], [0.9, 0.95, 1.0]])
    >>> untrained_agreement(RankingEvidence("x", tuple("abc"), untrained=scales))
    1.0
    """
    if evidence.untrained is None:
        return float("nan")
    return rank_correlation(evidence.untrained[0], evidence.untrained[1:].mean(axis=0))


def _array(value: Any) -> np.ndarray:
    return np.array(value, dtype=float)  # None, which stands for NaN, becomes NaN


def _optional(value: Any) -> np.ndarray | None:
    return None if value is None else _array(value)


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _brief(values: np.ndarray) -> np.ndarray:
    """Round to six digits, which are more than a picture shows."""
    given = np.asarray(values, dtype=float)
    size = np.abs(given, where=given != 0, out=np.ones_like(given))
    unit = 10.0 ** (5 - np.floor(np.log10(size)))
    return np.round(given * unit) / unit
