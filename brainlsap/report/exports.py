"""Values per region as files that other programs read."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from brainlsap._arrays import check_choice
from brainlsap.data.atlas import Atlas
from brainlsap.exceptions import ParameterError
from brainlsap.images.parcellation import read_label_image
from brainlsap.report.common_regions import mean_scales
from brainlsap.report.export_cifti import write_cifti
from brainlsap.report.export_images import (
    write_annotations,
    write_gifti,
    write_volumes,
)
from brainlsap.report.export_record import Export, slug
from brainlsap.report.export_tables import write_enigma, write_ggseg, write_tables
from brainlsap.report.stored import read_results
from brainlsap.report.surface_values import as_atlas, as_maps

WRITERS: dict[str, Callable[[Export], list[Path]]] = {
    "tsv": write_tables,
    "csv": lambda export: write_tables(export, ","),
    "shape": write_gifti,
    "func": lambda export: write_gifti(export, "func"),
    "cifti": write_cifti,
    "annot": write_annotations,
    "ggseg": write_ggseg,
    "enigma": write_enigma,
    "nifti": write_volumes,
}
_ON_SURFACE = ("shape", "func", "cifti", "annot", "enigma")


def write_region_maps(
    values: Any,
    out: str | Path,
    atlas: str | Path | Atlas = "destrieux160",
    *,
    formats: str | Sequence[str] = "all",
    parcellation: str | Path | None = None,
    measure: str = "value",
    unit: str = "arbitrary",
) -> list[Path]:
    """Write values by region name as tables, surfaces and volumes.

    Parameters
    ----------
    values : Series, DataFrame or mapping
        One map or several by name, as :func:`plot_regions` takes them.
    out : str or Path
        Folder, made if need be; files of the same names are replaced.
    atlas : str, Path or Atlas
        What :func:`brainlsap.data.load_atlas` takes.
    formats : "all" or sequence of str
        "tsv", "csv": one row a region, with a BIDS sidecar. "shape", "func": GIFTI of
        fsaverage5 for Connectome Workbench, one array a map, NaN on the medial wall.
        "cifti": CIFTI-2 of both hemispheres and, with a `parcellation`, its voxels
        below the cortex (`.dscalar.nii`). "annot": FreeSurfer's, in the
        colours of the values. "ggseg": table for the R package. "enigma": tables for
        the ENIGMA toolbox. "nifti": voxels of `parcellation`. "all" is all that atlas
        and `parcellation` allow.
    parcellation : str, Path or None
        Image of the regions' labels, such as `aparc.a2009s+aseg.mgz` in MNI space; the
        maps come on its grid.
    measure, unit : str
        What the values are, for the sidecars.

    Returns
    -------
    list of Path
        The files, sidecars too.

    Raises
    ------
    RegionNameError
        If a name is unknown, or a region has two values.
    ParameterError
        If a format is unknown or needs what is not there, or two maps would have one
        file.
    FileFormatError
        If the parcellation cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> values = {"lh_G_precuneus": 0.04, "(L) Sub.put": 0.06}
    >>> files = write_region_maps(values, tempfile.mkdtemp(), formats=["tsv", "shape"])
    >>> [file.name for file in files][:3]
    ['regions.tsv', 'regions.json', 'hemi-L_space-fsaverage5_regions.shape.gii']
    """
    atlas = as_atlas(atlas)
    maps = as_maps(values, atlas)
    chosen = _check_formats(formats, atlas, parcellation)
    slugs = [slug(name) for name in maps]
    double = [
        name for name, one in zip(maps, slugs, strict=True) if slugs.count(one) > 1
    ]
    if double:
        raise ParameterError(
            f"maps {double[0]!r} and {double[1]!r} would have one file name; their "
            "letters and digits must differ."
        )
    labels = None if parcellation is None else read_label_image(parcellation, atlas)
    export = Export(Path(out), atlas, maps, measure, unit, labels)
    export.folder.mkdir(parents=True, exist_ok=True)
    written = [path for name in chosen for path in WRITERS[name](export)]
    return list(dict.fromkeys(written))


def export_results(
    results: str | Path, out: str | Path | None = None, **how: Any
) -> list[Path]:
    """Write the mean learned scales of a results folder, one map a model.

    Parameters
    ----------
    results : str or Path
        Results folder of `brainlsap run`, with its `private/`.
    out : str or Path or None
        Folder; None takes `<results>_regions` beside it.
    **how
        `formats` and `parcellation` of :func:`write_region_maps`.

    Returns
    -------
    list of Path
        The files. They name no person.

    Raises
    ------
    FileFormatError
        Where the folder has no stored evaluation, or it cannot be read.
    ParameterError
        Where no model of it has scales.

    Examples
    --------
    See :func:`brainlsap.report.write_region_maps`.
    """
    results = Path(results)
    stored = read_results(results)
    maps = mean_scales(stored.evaluation)
    if not maps:
        names = ", ".join(stored.evaluation.results)
        raise ParameterError(f"no model of {results} has scales to export: {names}.")
    place = results.resolve()
    out = place.with_name(f"{place.name}_regions") if out is None else out
    told = {"measure": "Learned heat scale, mean over folds", "unit": "dimensionless"}
    return write_region_maps(maps, out, stored.atlas, **told, **how)


def _check_formats(
    formats: str | Sequence[str], atlas: Atlas, parcellation: str | Path | None
) -> list[str]:
    has_surface = bool(atlas.folder) and Path(atlas.folder or "", "lh.annot").is_file()
    lacking = dict.fromkeys(_ON_SURFACE, "surface labels (lh.annot, rh.annot)")
    without = {} if has_surface else dict(lacking)
    if parcellation is None:
        without["nifti"] = "parcellation, an image of its labels"
    if formats == "all":
        return [name for name in WRITERS if name not in without]
    chosen = [formats] if isinstance(formats, str) else list(dict.fromkeys(formats))
    for name in chosen:
        check_choice("formats", name, WRITERS)
        if name in without:
            raise ParameterError(
                f"format {name!r} needs {without[name]}; there is none of atlas "
                f"{atlas.name}."
            )
    if not chosen:
        raise ParameterError(f"formats names none; choose from {', '.join(WRITERS)}.")
    return chosen
