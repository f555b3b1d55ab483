"""Find the files of every scan below a cohort's folder.

Looked through are the cohort's folder, each data set in its `derivatives/`, and the
folders that the caller adds; in each of them `sub-X/[ses-Y/]`. FreeSurfer subjects
are found by the `stats` folder that they hold, and named `sub-X_ses-Y`, `PTID_date`
or `sub-X_ses-Y.long.base`.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path

from brainlsap.data.atlas import Atlas
from brainlsap.data.connectomes import FORMATS
from brainlsap.data.feature_rules import get_feature
from brainlsap.data.file_names import (
    CONNECTOME_PATTERNS,
    files_like,
    files_of_atlas,
    only_file,
    without_right_twins,
)
from brainlsap.data.flat_files import FlatFile, find_flat_files, is_template
from brainlsap.data.folder_walk import (
    freesurfer_subjects,
    refuse_leaving,
    walk_files,
)
from brainlsap.data.scan_names import (
    ScanName,
    is_folder_name,
    parse_scan_name,
    person_key,
    visit_key,
    visit_order,
)
from brainlsap.data.tables import TABLE_SUFFIXES
from brainlsap.exceptions import CohortError, ParameterError


class CohortFiles:
    """The files of a cohort, by participant and session.

    Parameters
    ----------
    folder : Path
        Of the cohort.
    derivatives : sequence of path
        Further data sets, each with `sub-*` or FreeSurfer subjects inside.
    subjects_dir : path, optional
        The only folder in which FreeSurfer subjects are looked for.
    pattern : str or mapping of str to str, optional
        Pattern of a connectome's file name, or a template for one folder of all (see
        :mod:`brainlsap.data.flat_files`); or patterns by `connectome`, name of a
        feature, and `freesurfer` (a leading `!` excludes).

    Raises
    ------
    CohortError
        Where a folder does not exist.
    ParameterError
        Where a pattern is not text.
    """

    def __init__(
        self,
        folder: Path,
        derivatives: Sequence[str | Path] = (),
        subjects_dir: str | Path | None = None,
        pattern: str | Mapping[str, str] | None = None,
    ) -> None:
        patterns = {"connectome": pattern} if isinstance(pattern, str) else pattern
        self.patterns = dict(patterns or {})
        for name, glob in self.patterns.items():
            if not isinstance(glob, str):
                raise ParameterError(
                    f"pattern of {name!r} must be text such as '*_connectivity.csv', "
                    f"got {glob!r}."
                )
        self.folder = folder
        given = [Path(place) for place in derivatives]
        own = sorted(p for p in (folder / "derivatives").glob("*") if p.is_dir())
        # Clinica's CAPS has people below subjects/
        own += [p / "subjects" for p in (folder, *own) if (p / "subjects").is_dir()]
        roots = {path.resolve(): path for path in reversed([folder, *own, *given])}
        self.roots = list(reversed(roots.values()))
        self.subjects = None if subjects_dir is None else Path(subjects_dir)
        absent = [p for p in (*given, self.subjects) if p and not p.is_dir()]
        if absent:
            raise CohortError(
                "some folders that were named do not exist",
                [f"{path}: no such folder" for path in absent],
            )

    def person_folders(self, participant: str) -> list[Path]:
        """Return the folders of one person that exist.

        Parameters
        ----------
        participant : str
            Name of the person.

        Returns
        -------
        list of Path

        Raises
        ------
        CohortError
            Where one is a link that leads out of the cohort.
        """
        if not is_folder_name(participant):  # nothing outside is ever looked at
            return []
        names = sorted({participant, f"sub-{participant}"})
        found = [root / n for root in self.roots for n in names if (root / n).is_dir()]
        for path in found:
            refuse_leaving(path, self.roots)
        # elsewhere a folder with stats is FreeSurfer's, and is found as such
        return [
            path
            for path in found
            if path.parent == self.folder or not (path / "stats").is_dir()
        ]

    def sessions(self, participant: str) -> list[str]:
        """Return the visits of one person that have a folder, in time.

        Parameters
        ----------
        participant : str
            Name of the person.

        Returns
        -------
        list of str
        """
        found: dict[str, str] = {}
        for folder in self.person_folders(participant):
            for entry in folder.iterdir():
                if entry.name.startswith("ses-") and entry.is_dir():
                    refuse_leaving(entry, self.roots)
                    found.setdefault(visit_key(entry.name), entry.name)
        for person, visit in self.flat:
            if visit and person == person_key(participant):
                name = self.flat[person, visit][0].name.session
                found.setdefault(visit, name)
        return sorted(found.values(), key=visit_order)

    @cached_property
    def flat(self) -> dict[tuple[str, str], list[FlatFile]]:
        """Connectomes that lie in one folder, by person and visit."""
        found: dict[tuple[str, str], list[FlatFile]] = {}
        for file in find_flat_files(self.folder, self.patterns.get("connectome")):
            found.setdefault(file.name.key, []).append(file)
        return found

    @cached_property
    def _flat_paths(self) -> frozenset[Path]:
        return frozenset(file.path for known in self.flat.values() for file in known)

    def files(
        self, participant: str, session: str, *, is_only: bool = False
    ) -> list[Path]:
        """Return all files of one scan.

        Parameters
        ----------
        participant : str
            Name of the person.
        session : str
            Empty for people without `ses-` folders.
        is_only : bool
            Whether the person has no other scan, so that a file without a visit in
            its name is of this one.

        Returns
        -------
        list of Path
            Sorted; those of other visits left out.
        """
        found: list[Path] = []
        for folder in self.person_folders(participant):
            if not session:
                found += walk_files(folder, skip="ses-", roots=self.roots)
                continue
            for name in sorted({session, f"ses-{visit_key(session)}"}):
                if is_folder_name(name) and (folder / name).is_dir():
                    refuse_leaving(folder / name, self.roots)
                    found += walk_files(folder / name, roots=self.roots)
        person, visit = person_key(participant), visit_key(session)
        flat = self.flat.get((person, visit), [])
        if not flat and is_only:
            flat = self.flat.get((person, ""), [])
        return sorted({*found, *(file.path for file in flat)})

    def connectome(self, files: Iterable[Path], atlas: Atlas) -> Path:
        """Return the one connectome among the files of a scan.

        Parameters
        ----------
        files : iterable of Path
            Of one scan.
        atlas : Atlas
            Its name decides between connectomes of several parcellations.

        Returns
        -------
        Path

        Raises
        ------
        CohortError
            Where there is none, or more than one.
        """
        given = self.patterns.get("connectome")
        patterns = CONNECTOME_PATTERNS if given is None else (given,)
        suffixes = None if given else tuple(FORMATS)
        files = list(files)
        found = [path for path in files if path in self._flat_paths]
        if not found and not is_template(given):
            found = files_like(files, patterns, suffixes)
        if len(found) > 1 and given is None:
            found = files_of_atlas(found, atlas)
        return only_file(found, "connectome", patterns)

    def regions(self, files: Iterable[Path], feature: str, atlas: Atlas) -> Path | None:
        """Return the one table of regions for a feature among the files of a scan.

        Parameters
        ----------
        files : iterable of Path
            Of one scan.
        feature : str
            Name of the feature.
        atlas : Atlas
            Its name decides between tables of several parcellations.

        Returns
        -------
        Path or None
            None where there is no such file; the left one where each side has one.

        Raises
        ------
        CohortError
            Where there is more than one.
        """
        # PETPrep writes the reference beside the regions
        files = [path for path in files if "_ref-" not in path.name]
        for glob in self.region_patterns(feature):
            found = files_like(files, (glob,), TABLE_SUFFIXES)
            if found:
                found = without_right_twins(files_of_atlas(found, atlas))
                return only_file(found, feature, (glob,))
        return None

    def region_patterns(self, feature: str) -> tuple[str, ...]:
        """Return the patterns of the names of tables of regions.

        Parameters
        ----------
        feature : str
            Name of the feature.

        Returns
        -------
        tuple of str
        """
        given = self.patterns.get(feature)
        return get_feature(feature).files if given is None else (given,)

    @cached_property
    def freesurfer(self) -> dict[tuple[str, str], list[tuple[ScanName, Path]]]:
        """FreeSurfer subjects by person and visit."""
        roots = self.roots if self.subjects is None else [self.subjects]
        glob = self.patterns.get("freesurfer", "*")
        wanted = glob.removeprefix("!")
        found: dict[tuple[str, str], list[tuple[ScanName, Path]]] = {}
        for root in roots:
            for name, path in freesurfer_subjects(root):
                if fnmatch(name, wanted) == glob.startswith("!"):
                    continue
                scan = parse_scan_name(name)
                found.setdefault(scan.key, []).append((scan, path))
        return found
