"""Say what a study's folder holds, and how else it could be read."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from brainlsap.data.cohort import Cohort
from brainlsap.data.connectomes import is_matrix
from brainlsap.data.features import FeatureSources, Source
from brainlsap.data.find_files import Scan
from brainlsap.data.load import (
    NO_CONNECTOME,
    STRENGTH,
    WHERE,
    count_people,
    open_study,
)
from brainlsap.data.participants import ScanList, people_files
from brainlsap.data.stored_cohort import read_study
from brainlsap.data.tables import IMPORT_FILES, TABLE_SUFFIXES
from brainlsap.exceptions import (
    BrainlsapError,
    CohortError,
    FileFormatError,
)

Options = dict[str, Any]
_Score = Callable[[ScanList, FeatureSources], float]
# A visit behind a person's id.
_A_VISIT = re.compile(
    r"(?<=\{participant\})([-_])(?:(?:ses-?|visit-?|[a-z]{0,2})\d{1,3}|bl|baseline|fu|"
    r"pre|post)(?=[._/])",
    re.IGNORECASE,
)
# Features that are looked for beside those that were asked for.
_FEATURES = ("thickness", "volume", "area", "fdg", "amyloid", "tau")


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
        The cohort's folder, or file (.h5), as :func:`.read_study` takes it. A cohort,
        as :meth:`Cohort.from_arrays` makes one, has been checked by then, and what it
        holds is listed; which of its scans are unusual says :func:`quality_table`,
        what leaks :func:`brainlsap.evaluation.audit`.
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
            cohort = read_study(where, *args, **how)
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
        Where the study can be loaded: its other features. Where it cannot: folders,
        tables, a feature, a pattern of connectomes or an atlas with which more files
        are found, or the visits at baseline where most others lack something; none
        where people or labels are at fault, which comes first.
    """
    folder, asked = check.folder, dict(options)
    # people and labels come first, and ids that are those of files
    is_strange = any("nobody in it has files" in fault for fault in check.faults)
    if is_strange or not check.found:
        return []
    features = asked.get("feature") or "thickness"
    features = [features] if isinstance(features, str) else list(features)
    where = {name: asked[name] for name in ("atlas", *WHERE) if name in asked}
    with suppress(BrainlsapError):
        if not open_study(folder, **where)[0].scans:  # nobody has these classes
            return []
    opened: dict[str, tuple[ScanList, FeatureSources] | None] = {}
    change: Options = {}
    matrices = list[str]()
    bar = tqdm(desc="looking for other files", unit="", delay=2, disable=None)

    def adopt(
        ways: Iterable[Options], score: _Score, least: float = 0
    ) -> list[Options]:
        """Take over the first change by which most is found; return all such."""
        best, chosen = 0.0, list[Options]()
        for way in ways:
            how = where | {k: v for k, v in (change | way).items() if k in WHERE}
            if repr(how) not in opened:
                bar.update()
                opened[repr(how)] = None
                with suppress(BrainlsapError):
                    opened[repr(how)] = open_study(folder, **how)
            study = opened[repr(how)]
            found = score(*study) if study else 0.0
            if found > best:
                best, chosen = found, []
            if found and found == best >= least:
                chosen.append(way)
        change.update(chosen[0] if chosen else {})
        return chosen

    inside = sorted(folder.glob("[!.]*"))
    around = [*inside, *sorted(folder.resolve().parent.glob("[!.]*"))]
    # folders of people are no data sets of their own
    around = [p for p in around if p.is_dir() and p.name[:4] != "sub-"]
    tables: list[Options] = [
        {"features_table": path.name}
        for path in inside
        if path.suffix in TABLE_SUFFIXES and path.name not in IMPORT_FILES
    ]
    folders: list[Options] = [{}]
    if "subjects_dir" not in asked:
        folders += [{"subjects_dir": str(p)} for p in around if any(p.glob("*/stats"))]
    # what lists people of its own is another study, whose ids may be the same
    around = [p for p in around if p != folder.resolve() and not people_files(p)]
    if "derivatives" not in asked:
        folders += [{"derivatives": [str(p)]} for p in around if any(p.glob("sub-*"))]
    if check.is_sound:
        more = [
            name
            for name in _FEATURES
            # volumes may stand below the cortex already
            if name not in (*features, asked.get("subcortex"))
            and adopt(folders, _located([name]), least=1)
        ]
        change |= {"feature": [*features, *more]}
        # the connectomes are known to be sound
        known = {} if STRENGTH in features else {"connectome": NO_CONNECTOME}
        is_more = more and check_cohort(folder, **asked | change | known).is_sound
        return [change] if is_more else []

    if not adopt([*folders, *tables], _located(features, named="feature" in asked)):
        for name in (*_FEATURES, "suvr"):  # of a tracer that is not said
            if adopt(folders, _located([name])):
                change["feature"] = [name]
                break
    if "connectome" not in asked:
        scans = open_study(folder, **where)[0].scans
        patterns = [{"pattern": one} for one in dict.fromkeys(_patterns(folder, scans))]
        sets = adopt([{}, *patterns], _with_connectome)
        if not sets:
            files = (path.name for path in inside if is_matrix(path))
            change["connectome"] = next(files, NO_CONNECTOME)
        elif sets[0]:
            matrices = [one["pattern"] for one in sets]
    changed_check = check_cohort(folder, **asked | change)
    faults = " ".join(changed_check.faults)
    if other := re.search(r"(?:those of|\(atlas) (\w+)(?:, not of|\))", faults):
        change["atlas"] = other[1]
    elif not changed_check.is_sound and asked.get("scans", "all") == "all":
        how = where | {k: v for k, v in change.items() if k in WHERE}
        named = change.get("feature") or features
        reads_connectomes = "connectome" not in asked | change
        with suppress(BrainlsapError):
            labelled = {*open_study(folder, **how)[0].table["scan"]}
            # also those without a label, but not those of other classes
            every = how if "classes" in how else how | {"label": None}
            study = open_study(folder, **every)
            if _lack_at_later_visits(*study, labelled, named, reads_connectomes):
                baseline = change | {"scans": "baseline"}
                if check_cohort(folder, **asked | baseline).is_sound:
                    change = baseline
    # only the user can say which of several sets of matrices is meant
    either = [change | {"pattern": one} for one in matrices]
    return either or [change] if change else []


def _lack_at_later_visits(
    listed: ScanList,
    sources: FeatureSources,
    labelled: set[str],
    features: Sequence[str],
    reads_connectomes: bool,
) -> bool:
    """Return whether most visits after the first lack a label, or what is read."""
    is_later = listed.table["participant"].duplicated().to_numpy()
    is_lacking = ~listed.table["scan"].isin(labelled).to_numpy()
    for name in features:
        if name == STRENGTH:
            continue
        with suppress(BrainlsapError):
            found = sources.locate(name, listed.scans)[0]
            is_lacking = is_lacking | [isinstance(source, str) for source in found]
    if reads_connectomes:
        for row, scan in enumerate(listed.scans):
            with suppress(CohortError):
                path = sources.files.connectome(scan, sources.atlas)
                is_lacking[row] |= path is None
    return bool(is_later.any()) and bool(is_lacking[is_later].mean() >= 0.5)


def _located(names: Sequence[str], named: bool = False) -> _Score:
    """Return a measure of how many scans' features are found."""
    names = [name for name in names if name != STRENGTH]

    def share(listed: ScanList, sources: FeatureSources) -> float:
        found: list[Source] = []
        sources.is_named = named
        for name in names:
            with suppress(BrainlsapError):
                found += sources.locate(name, listed.scans)[0]
        n_found = sum(not isinstance(one, str) for one in found)
        n_expected = len(names) * len(listed.scans)
        return n_found / n_expected if n_expected else 1.0

    return share


def _with_connectome(listed: ScanList, sources: FeatureSources) -> float:
    """Return how many scans have a connectome."""
    n_found = 0
    for scan in listed.scans:
        with suppress(CohortError):
            n_found += sources.files.connectome(scan, sources.atlas) is not None
    return n_found


def _patterns(folder: Path, scans: Sequence[Scan]) -> Iterator[str]:
    """Make patterns of the matrices of the first scan: beside it, or named by it."""
    person, visit = scans[0].key
    for path in filter(is_matrix, scans[0].files):
        yield "*" + path.name.split(visit or person)[-1]
    for top in sorted(folder.glob("[!.]*")):
        below = top.rglob("*") if top.name[:4] not in ("sub-", "deri") else ()
        for path in (top, *below):
            name = path.relative_to(folder).as_posix()
            for word, what in ((person, "{participant}"), (visit or "-", "{session}")):
                whole = rf"(?i)(?<![A-Z0-9]){re.escape(word)}(?![A-Z0-9])"
                name = re.sub(whole, what, name, count=1) if word != "-" else name
            if "{participant}" in name and is_matrix(path):
                every = _A_VISIT.sub(r"\1{session}", name)
                alike = (re.sub(r"\{.*?\}", "*", one) for one in (name, every))
                if len({len([*folder.glob(one)]) for one in alike}) > 1:
                    yield every
                yield name
