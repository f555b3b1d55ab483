"""Say what a study's folder holds, and how else it could be read."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from brainlsap.data.cohort import Cohort
from brainlsap.data.connectomes import FORMATS
from brainlsap.data.features import FeatureSources, Source
from brainlsap.data.find_files import Scan
from brainlsap.data.load import (
    NO_CONNECTOME,
    STRENGTH,
    WHERE,
    count_people,
    load_cohort,
    open_study,
)
from brainlsap.data.participants import ScanList, order_classes, people_files
from brainlsap.data.tables import COVARIATES, TABLE_SUFFIXES
from brainlsap.exceptions import BrainlsapError, CohortError, FileFormatError

Options = dict[str, Any]
_Share = Callable[[ScanList, FeatureSources], float]
# Features that are looked for beside those that were asked for.
_FEATURES = ("thickness", "volume", "area", "fdg", "amyloid", "tau")
_USUAL_LABELS = ("diagnosis", "dx", "dx_bl", "stage", "group", "label")
# Classes of people that studies adjust for.
_NO_LABELS = {*COVARIATES, "handedness", "race"} - {"sex"}
_MOST_CLASSES = 6
_MOST_SUGGESTIONS = 3


@dataclass(frozen=True, eq=False)
class CohortCheck:
    """What a folder holds, before anything is computed with it.

    Parameters
    ----------
    folder : Path
        That was looked at.
    found : tuple of str
        People, scans, labels and files, counted.
    notes : tuple of str
        What was read by name or order, mirrored, filled or left out, with counts.
    faults : tuple of str
        Everything that keeps the cohort from being loaded; what many scans share is
        said once.
    cohort : Cohort or None
        None where there are faults.
    """

    folder: Path
    found: tuple[str, ...]
    notes: tuple[str, ...]
    faults: tuple[str, ...]
    cohort: Cohort | None = None

    @property
    def is_sound(self) -> bool:
        """Whether the cohort can be loaded."""
        return not self.faults

    def text(self) -> str:
        """Return everything as lines of text."""
        lines = [str(self.folder)]
        dropped = [note for note in self.notes if "left out" in note]
        for title, entries in (
            ("Found", self.found),
            ("Mapped", [note for note in self.notes if note not in dropped]),
            ("Dropped", dropped),
            ("Faults", self.faults),
        ):
            if entries:
                lines += [f"{title}:", *(f"  {entry}" for entry in entries)]
        if self.is_sound:
            lines.append("No faults: the cohort can be loaded.")
        return "\n".join(lines) + "\n"

    __repr__ = text


def check_cohort(folder: str | Path | Cohort, *args: Any, **how: Any) -> CohortCheck:
    """Read a cohort's folder as :func:`load_cohort` does; list faults, raise none.

    Parameters
    ----------
    folder : str, Path or Cohort
        The cohort's folder. A cohort, as :meth:`Cohort.from_arrays` makes one, has been
        checked by then, and what it holds is listed; which of its scans are unusual
        says :func:`quality_table`, what leaks :func:`brainlsap.evaluation.audit`.
    *args, **how : see :func:`load_cohort`
        Its other arguments.

    Returns
    -------
    CohortCheck

    Raises
    ------
    ParameterError
        Where an argument cannot be used.
    """
    cohort, facts = folder, getattr(folder, "provenance", {"folder": folder})
    where = Path(facts.get("folder", "cohort"))
    try:
        if not isinstance(cohort, Cohort):
            cohort = load_cohort(where, *args, **how)
    except (CohortError, FileFormatError) as error:
        # where the list of people cannot be used, nothing else can be said
        found, notes = getattr(error, "found", ()), getattr(error, "notes", ())
        faults = getattr(error, "faults", ()) or (str(error),)
        return CohortCheck(where, tuple(found), notes, faults)
    found = count_people(cohort.table, cohort.label_name, cohort.classes)
    own = cohort.provenance.get("connectome", "one per scan") == "one per scan"
    for name in (*(["connectome"] if own else []), *cohort.feature_names):
        found.append(f"{name}: {cohort.n_scans} of {cohort.n_scans} scans")
    return CohortCheck(where, tuple(found), cohort.notes, (), cohort)


def suggest_options(  # noqa: C901 (step by step)
    check: CohortCheck, options: Mapping[str, Any]
) -> list[Options]:
    """Return changes of options by which more of a study, or any, can be read.

    Parameters
    ----------
    check : CohortCheck
        Of the study.
    options : mapping
        The arguments of :func:`load_cohort` that it was checked with.

    Returns
    -------
    list of dict
        Each was tried. Where the study can be loaded: its other features, and its
        other labels. Where it cannot: labels, patterns of connectomes, folders,
        tables, features or an atlas with which it can, or with which it has fewer
        faults.
    """
    folder, asked = check.folder, dict(options)
    features = asked.get("feature") or "thickness"
    features = [features] if isinstance(features, str) else list(features)
    where = {name: asked[name] for name in ("atlas", *WHERE) if name in asked}
    anybody: Options = {"label": None, "classes": None}
    opened: dict[str, tuple[ScanList, FeatureSources] | None] = {}
    change: Options = {}
    bar = tqdm(desc="looking for other files", unit="", delay=2, disable=None)

    def share(way: Options, of: _Share, base: Options = anybody) -> float:
        """Return how much is found with one more change."""
        how = where | change | base | way
        if repr(how) not in opened:
            bar.update()
            opened[repr(how)] = None
            with suppress(BrainlsapError):
                opened[repr(how)] = open_study(folder, **how)
        study = opened[repr(how)]
        return of(*study) if study else 0.0

    def adopt(
        ways: Iterable[Options], of: _Share, base: Options = anybody, least: float = 0
    ) -> float:
        """Take over the first change by which most is found; return how much."""
        best, chosen = 0.0, Options()
        for way in ways:
            found = share(way, of, base)
            if found > best and found >= least:
                best, chosen = found, way
            if best == 1:
                break
        change.update(chosen)
        return best

    inside = sorted(folder.glob("[!.]*"))
    around = [*inside, *sorted(folder.resolve().parent.glob("[!.]*"))]
    # folders of people are no data sets of their own
    around = [p for p in around if p.is_dir() and p.name[:4] != "sub-"]
    tables = [{"features_table": p.name} for p in inside if p.suffix in TABLE_SUFFIXES]
    folders: list[Options] = [{}]
    folders += [{"subjects_dir": str(p)} for p in around if any(p.glob("*/stats"))]
    # what lists people of its own is another study, whose ids may be the same
    around = [p for p in around if p == folder.resolve() or not people_files(p)]
    data_sets = [p for p in around if p != folder.resolve() and any(p.glob("sub-*"))]
    folders += [{"derivatives": [str(p)]} for p in data_sets]
    # of several tables of people that with the label, or with a usual one
    label = str(asked.get("label", "diagnosis"))
    for name in (None, label, *_USUAL_LABELS):
        anybody["label"] = name
        if share({}, lambda *_: 1.0):
            break
    else:
        return []
    listed, _ = open_study(folder, **where | anybody)
    labels = _label_options(listed.table, label)
    if name not in (None, label):
        labels.insert(0, {"label": listed.label})
    labels = [one for one in labels if share(one, _is_labelled, {})]
    if check.is_sound:
        more = [
            name
            for name in _FEATURES
            # volumes may stand below the cortex already
            if name not in (*features, asked.get("subcortex"))
            and adopt(folders, _located(name), least=1)
        ]
        change |= {"feature": [*features, *more]}
        # the connectomes are known to be sound
        known = {} if STRENGTH in features else {"connectome": NO_CONNECTOME}
        is_more = more and check_cohort(folder, **asked | change | known).is_sound
        usual = [one for one in labels if one["label"].lower() in _USUAL_LABELS]
        return [*[change] * bool(is_more), *usual[:_MOST_SUGGESTIONS]]

    is_there = adopt([*folders, *tables], _located(*features, named="feature" in asked))
    wanted = () if is_there else (*_FEATURES, "suvr")  # of a tracer that is not said
    others = [name for name in wanted if adopt(folders, _located(name))]
    connectomes: list[Options] = [{}]
    if "connectome" not in asked:
        n_found = share({}, _with_connectome)
        ways = [{"pattern": one} for one in _patterns(folder, listed.scans)]
        connectomes += [one for one in ways if share(one, _with_connectome) > n_found]
        # one file of many is not for everybody
        if not (n_found or any("{" in one.get("pattern", "") for one in connectomes)):
            files = (p.name for p in inside if p.suffix in FORMATS)
            connectomes += [{"connectome": name} for name in (*files, NO_CONNECTOME)]
    with suppress(BrainlsapError):
        found = open_study(folder, **where | change)[0].table
        n_people = found.groupby("label")["participant"].nunique()
        classes, _ = order_classes(n_people.index[n_people > 1])
        labels.insert(0, {"classes": list(classes)})
    adopt([{}, *labels], _is_labelled, {})
    if others:
        change["feature"] = others[:1]
    fewest, best = _n_left(check), list[Options]()
    for way in connectomes:
        bar.update()
        if best and way == {"connectome": NO_CONNECTOME}:
            break  # rather what is there
        tried = change | way
        checked = check_cohort(folder, **asked | tried)
        those = r"(?:those of|\(atlas) (\w+)(?:, not of|\))"
        other = re.search(those, " ".join(checked.faults))
        if other is not None:
            tried |= {"atlas": other[1]}
            checked = check_cohort(folder, **asked | tried)
        faults = " ".join(checked.faults)
        # only the user can say in which order rows stand
        orders = dict.fromkeys(re.findall(r"\(row_order='(\w+)'\)", faults))
        ways = [tried | {"row_order": one} for one in orders]
        sound = [w for w in ways if check_cohort(folder, **asked | w).is_sound]
        if checked.is_sound or sound:
            return sound or [tried]
        # matrices all the same: their rows and weights are the next question
        is_matrix = re.search("a matrix of|weights are", faults)
        if (way and is_matrix and not best) or _n_left(checked) < fewest:
            fewest, best = _n_left(checked), [tried]
    # where ids differ altogether, that comes first
    return [] if any("nobody in it has files" in x for x in check.faults) else best


def _n_left(check: CohortCheck) -> int:
    """Return the number of faults, less that of kinds of data that were found."""
    return len(check.faults) - sum(": 0 of" not in one for one in check.found)


def _located(*features: str, named: bool = False) -> _Share:
    """Return a measure of how many scans' features are found."""
    names = [name for name in features if name != STRENGTH]

    def share(listed: ScanList, sources: FeatureSources) -> float:
        found: list[Source] = []
        sources.is_named = named
        for name in names:
            with suppress(BrainlsapError):
                found += sources.locate(name, listed.scans)[0]
        n_found = sum(not isinstance(one, str) for one in found)
        n_found *= not sources.files.respelt  # files of other people, mostly
        return n_found / (len(names) * len(listed.scans)) if names else 1.0

    return share


def _with_connectome(listed: ScanList, sources: FeatureSources) -> float:
    """Return the share of scans with a connectome."""
    n_found = 0
    for scan in listed.scans:
        with suppress(CohortError):
            n_found += sources.files.connectome(scan, sources.atlas) is not None
    return n_found / len(listed.scans)


def _is_labelled(listed: ScanList, _: FeatureSources) -> float:
    return float(not listed.faults)


def _label_options(table: pd.DataFrame, asked: str) -> list[Options]:
    """Return the columns that can be classes: usual labels first, sex last.

    Of a usual label those classes that more than one person has.
    """
    ranked: list[tuple[int, Options]] = []
    ranks = dict.fromkeys(_USUAL_LABELS, 0) | {"sex": 2}
    for name in table.columns[4:]:  # behind scan, participant, session, label
        n_people = table.groupby(name)["participant"].nunique()
        kept, rank = n_people.index[n_people > 1], ranks.get(name.lower(), 1)
        is_whole = table[name].isin(kept).all() and len(kept) <= _MOST_CLASSES
        is_class = len(kept) > 1 and (is_whole or not rank)
        if is_class and name.lower() not in {asked.lower(), *_NO_LABELS}:
            classes = {} if is_whole else {"classes": list(order_classes(kept)[0])}
            ranked.append((rank, {"label": name, **classes}))
    return [option for _, option in sorted(ranked, key=lambda one: one[0])]


def _patterns(folder: Path, scans: Sequence[Scan]) -> Iterator[str]:
    """Make patterns of the matrices of the first scan: beside it, or named by it."""
    person, visit = scans[0].key
    for path in scans[0].files:
        if path.suffix.lower() in FORMATS:
            yield "*" + path.name.split(visit or person)[-1]
    for top in folder.glob("[!.]*"):
        below = top.rglob("*") if top.name[:4] not in ("sub-", "deri") else ()
        for path in (top, *below):
            name = path.relative_to(folder).as_posix()
            for word, what in ((person, "{participant}"), (visit or "-", "{session}")):
                # zeros that Excel drops: that these differ is told then
                whole = rf"(?i)(?<![A-Z0-9])0*{re.escape(word)}(?![A-Z0-9])"
                name = re.sub(whole, what, name, count=1) if word != "-" else name
            if path.suffix.lower() in FORMATS and "{participant}" in name:
                yield name
