"""Say what a study's folder holds, and how else it could be read."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from brainlsap.data.cohort import Cohort
from brainlsap.data.connectomes import FORMATS
from brainlsap.data.features import FeatureSources
from brainlsap.data.find_files import Scan
from brainlsap.data.load import (
    STRENGTH,
    WHERE,
    RefusedStudyError,
    count_people,
    load_cohort,
    open_study,
)
from brainlsap.data.participants import KEY_COLUMNS, ScanList
from brainlsap.data.tables import TABLE_SUFFIXES
from brainlsap.exceptions import BrainlsapError, CohortError, FileFormatError

Options = dict[str, Any]
_Test = Callable[[ScanList, FeatureSources], bool]
# Features that are looked for beside those that were asked for.
_FEATURES = ("thickness", "volume", "area", "fdg", "amyloid", "tau")
_USUAL_LABELS = ("diagnosis", "dx", "dx_bl", "group", "label")
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


def check_cohort(folder: str | Path, *args: Any, **options: Any) -> CohortCheck:
    """Read a cohort's folder as :func:`load_cohort` does; list faults, raise none.

    Parameters
    ----------
    folder : str or Path
        The cohort's folder.
    *args, **options : see :func:`load_cohort`
        Its other arguments.

    Returns
    -------
    CohortCheck

    Raises
    ------
    ParameterError
        Where an argument cannot be used.
    """
    cohort: Cohort | None = None
    found: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    try:
        cohort = load_cohort(folder, *args, **options)
        notes = cohort.notes
        found = count_people(cohort.table, cohort.label_name, cohort.classes)
        own = cohort.provenance["connectome"] == "one per scan"
        for name in (*(["connectome"] if own else []), *cohort.feature_names):
            found[name] = f"{cohort.n_scans} of {cohort.n_scans} scans"
    except RefusedStudyError as error:
        found, notes, faults = error.found, error.notes, error.faults
    except (CohortError, FileFormatError) as error:
        # a list of people that cannot be used; nothing else can be said
        faults = (str(error),)
    lines = [f"{name}: {what}" if name else what for name, what in found.items()]
    return CohortCheck(Path(folder), tuple(lines), notes, faults, cohort)


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
        other columns of classes. Where it cannot: labels, patterns of connectomes,
        folders, tables, features or an atlas with which it can.
    """
    folder, asked = check.folder, dict(options)
    features = asked.get("feature", "thickness")
    features = [features] if isinstance(features, str) else list(features)
    where = {name: asked[name] for name in ("atlas", *WHERE) if name in asked}
    anybody: Options = {"label": None, "classes": None}
    opened: dict[str, tuple[ScanList, FeatureSources]] = {}
    change: Options = {}

    def fits(one: Options, test: _Test, base: Options = anybody) -> bool:
        """Return whether a test is passed with one more change."""
        how = where | change | base | one
        with suppress(BrainlsapError):
            if repr(how) not in opened:
                opened[repr(how)] = open_study(folder, **how)
            return test(*opened[repr(how)])
        return False

    def adopt(ways: Iterable[Options], test: _Test, base: Options = anybody) -> bool:
        """Take over the first change with which a test is passed, if there is one."""
        for way in ways:
            if fits(way, test, base):
                change.update(way)
                return True
        return False

    def has(*names: str) -> _Test:
        """Return a test of whether every scan has some features."""
        return lambda listed, sources: (
            not any(
                isinstance(source, str)
                for name in names
                if name != STRENGTH
                for source in sources.locate(name, listed.scans)[0]
            )
        )

    inside = sorted(folder.glob("[!.]*"))
    around = [*inside, *sorted(folder.resolve().parent.glob("[!.]*"))]
    tables = [{"features_table": p.name} for p in inside if p.suffix in TABLE_SUFFIXES]
    folders: list[Options] = [{}]
    folders += [{"subjects_dir": str(p)} for p in around if any(p.glob("*/stats"))]
    data_sets = [p for p in around if p != folder.resolve() and any(p.glob("sub-*"))]
    folders += [{"derivatives": [str(p)]} for p in data_sets]
    if not adopt([{}, *tables], lambda *_: True):
        return []
    listed, _ = open_study(folder, **where | change | anybody)
    labels: list[Options]
    labels = [{"label": name} for name in _class_columns(listed.table, asked)]
    labels = [one for one in labels if fits(one, lambda one, _: not one.faults, {})]
    if check.is_sound:
        more = [n for n in _FEATURES if n not in features and adopt(folders, has(n))]
        change |= {"feature": [*features, *more]}
        is_more = more and check_cohort(folder, **asked | change).is_sound
        return [*[change] * bool(is_more), *labels[:_MOST_SUGGESTIONS]]

    is_there = adopt([*folders, *tables], has(*features))
    others = [] if is_there else [n for n in _FEATURES if adopt(folders, has(n))][:1]
    connectomes: list[Options] = [{}]
    if "connectome" not in asked:
        connectomes += [{"pattern": one} for one in _patterns(folder, listed.scans)]
        connectomes = [one for one in connectomes if fits(one, _has_connectomes)]
    if {} not in connectomes:
        files = (p.name for p in inside if p.suffix in FORMATS)
        connectomes += [{"connectome": name} for name in (*files, "none")]
    with suppress(BrainlsapError):
        classes = open_study(folder, **where | change)[0].classes
        labels.insert(0, {"classes": list(classes)})
    adopt([{}, *labels], lambda listed, _: not listed.faults, {})
    if others:
        change["feature"] = others
    for way in connectomes:
        tried = change | way
        faults = check_cohort(folder, **asked | tried).faults
        other = re.search(r"those of (\w+), not of", " ".join(faults))
        if other is not None:
            tried |= {"atlas": other[1]}
            faults = check_cohort(folder, **asked | tried).faults
        if not faults:
            return [tried]
    return []


def _has_connectomes(listed: ScanList, sources: FeatureSources) -> bool:
    find, atlas = sources.files.connectome, sources.atlas
    return all(find(scan, atlas) for scan in listed.scans)


def _class_columns(table: pd.DataFrame, asked: Options) -> list[str]:
    """Return the columns of a table of scans that can be classes of people."""
    columns = []
    for name in table.columns.drop([*KEY_COLUMNS]):
        n_people = table.groupby(table[name].astype(str))["participant"].nunique()
        is_known = table[name].notna().all() and name != asked.get("label", "diagnosis")
        if is_known and 1 < len(n_people) <= _MOST_CLASSES and n_people.min() > 1:
            columns.append(name)
    return sorted(columns, key=lambda name: name.lower() not in _USUAL_LABELS)


def _patterns(folder: Path, scans: Sequence[Scan]) -> Iterator[str]:
    """Make patterns of the matrices of the first scan: beside it, or named by it."""
    person, visit = scans[0].key
    for path in scans[0].files:
        if path.suffix.lower() in FORMATS:
            yield "*" + path.name.split(visit or person)[-1]
    for top in folder.glob("[!.]*"):
        for path in top.rglob("*") if top.name[:4] not in ("sub-", "deri") else ():
            name = path.relative_to(folder).as_posix()
            for word, what in ((person, "{participant}"), (visit or "-", "{session}")):
                whole = rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])"
                name = re.sub(whole, what, name, count=1) if word != "-" else name
            if path.suffix.lower() in FORMATS and "{participant}" in name:
                yield name
