"""Remake the surface files of an atlas from the `cvu` source distribution.

`cvu` 0.5.2 on the Python Package Index carries FreeSurfer's fsaverage5 with its
annotations and its segmentation. `atlases/<name>/build.py` calls :func:`main`, which

- copies the two annotations as they are (`lh.annot`, `rh.annot`);
- makes one closed mesh per subcortical region from `aseg.mgz`, shared by all atlases
  (`../subcortex/<name>.surf.gii`);
- writes every region's centroid into `regions.tsv`.

It needs scikit-image and fast-simplification: `pip install --group atlas`.
"""

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from aseg_meshes import largest_component, mesh_of, write_mesh
from nibabel import load
from nibabel.affines import apply_affine
from nibabel.freesurfer import read_annot, read_geometry

REQUIREMENT = "cvu==0.5.2"
SHA256 = "737ae6e29d7b6e9835bacf73048cc0edb1dcbecb7d6d0f9b4a8acd7eacf9ed99"
INSIDE = "cvu-0.5.2/cvu/fsavg5"
LARGEST_MEMBER = 1_000_000  # bytes; the files used are all below 400 kB


def main(folder: Path, annotation: str) -> None:
    """Parse the command line and remake one atlas.

    Parameters
    ----------
    folder : Path
        The atlas's folder, with its `regions.tsv`.
    annotation : str
        Name of the annotation, such as "aparc.a2009s".
    """
    parser = argparse.ArgumentParser(description=f"Remake the surfaces of {folder}.")
    parser.add_argument(
        "--source", type=Path, help="cvu-0.5.2.tar.gz; else pip gets it"
    )
    parser.add_argument("--out", type=Path, default=folder, help="folder to write to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        source = arguments.source or download(Path(scratch))
        files = unpack(source, annotation, Path(scratch) / "fsavg5")
        build(folder / "regions.tsv", files, arguments.out)
    print(f"Wrote the surfaces of {folder.name} to {arguments.out}")


def download(folder: Path) -> Path:
    """Let pip fetch the source distribution; pip refuses any other file.

    Parameters
    ----------
    folder : Path
        Where to put it.

    Returns
    -------
    Path
        The source distribution.
    """
    wanted = folder / "requirement.txt"
    wanted.write_text(f"{REQUIREMENT} --hash=sha256:{SHA256}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    how = ["--no-binary", ":all:", "--require-hashes", "--dest", str(folder)]
    subprocess.run([*pip, *how, "--requirement", str(wanted)], check=True)
    return next(folder.glob("cvu-*.tar.gz"))


def unpack(source: Path, annotation: str, folder: Path) -> dict[str, Path]:
    """Check the source distribution and take out the few files used.

    Parameters
    ----------
    source : Path
        The source distribution.
    annotation : str
        Name of the annotation.
    folder : Path
        Where to put the files.

    Returns
    -------
    dict of str to Path
        The files, by short names such as "lh.annot".

    Raises
    ------
    ValueError
        If the file is another one than expected, or holds something unexpected.
    """
    found = hashlib.sha256(source.read_bytes()).hexdigest()
    if found != SHA256:
        raise ValueError(f"{source} has sha256 {found}, expected {SHA256}.")
    wanted = {"aseg.mgz": "mri/aseg.mgz"}
    for side in ("lh", "rh"):
        wanted[f"{side}.annot"] = f"label/{side}.{annotation}.annot"
        wanted[f"{side}.white"] = f"surf/{side}.white"
        wanted[f"{side}.pial"] = f"surf/{side}.pial"
    folder.mkdir(parents=True)
    files = {}
    with tarfile.open(source) as archive:
        for name, inside in wanted.items():
            member = archive.getmember(f"{INSIDE}/{inside}")
            stream = archive.extractfile(member) if member.isreg() else None
            if stream is None or member.size > LARGEST_MEMBER:
                raise ValueError(f"{source}: {member.name} is no small plain file.")
            # Our own name, never the archive's: nothing can land elsewhere.
            files[name] = folder / name
            files[name].write_bytes(stream.read())
    return files


def build(table: Path, files: dict[str, Path], out: Path) -> None:
    """Write annotations, meshes and the table with centroids.

    Parameters
    ----------
    table : Path
        The atlas's `regions.tsv`; its centroids are computed anew.
    files : dict of str to Path
        From :func:`unpack_connectomes_and_features`.
    out : Path
        Where to write.
    """
    regions = pd.read_csv(table, sep="\t", dtype=str, keep_default_na=False)
    ids = regions["freesurfer_id"].astype(int)
    aseg = load(files["aseg.mgz"])
    out.mkdir(parents=True, exist_ok=True)
    (out.parent / "subcortex").mkdir(exist_ok=True)
    centroids = cortical_centroids(regions, files)
    for place in np.flatnonzero(regions["structure"] == "subcortex"):
        mask = largest_component(np.asarray(aseg.dataobj) == ids[place])
        points = apply_affine(aseg.affine, np.argwhere(mask))
        centroids[place] = points.mean(axis=0)
        vertices, faces = mesh_of(mask, aseg.affine)
        side = {"L": "CortexLeft", "R": "CortexRight"}[regions["hemisphere"][place]]
        mesh = out.parent / "subcortex" / f"{regions['name'][place]}.surf.gii"
        write_mesh(mesh, vertices, faces, side)
    for axis, values in zip("xyz", centroids.T, strict=True):
        regions[axis] = [f"{value:.1f}" for value in values]
    regions.to_csv(out / "regions.tsv", sep="\t", index=False, lineterminator="\n")
    for name in ("lh.annot", "rh.annot"):
        (out / name).write_bytes(files[name].read_bytes())


def cortical_centroids(regions: pd.DataFrame, files: dict[str, Path]) -> np.ndarray:
    """Return the mean position of each cortical region's vertices, in mm.

    Parameters
    ----------
    regions : DataFrame
        The table of the atlas.
    files : dict of str to Path
        From :func:`unpack_connectomes_and_features`.

    Returns
    -------
    ndarray, shape (n_rois, 3)
        Half way between the white and the pial surface; NaN for the subcortex.

    Raises
    ------
    ValueError
        If a region has no vertex.
    """
    centroids = np.full((len(regions), 3), np.nan)
    for side in ("lh", "rh"):
        middle = (
            read_geometry(files[f"{side}.white"])[0]
            + read_geometry(files[f"{side}.pial"])[0]
        ) / 2
        codes, _, labels = read_annot(files[f"{side}.annot"])
        here = (regions["structure"] == "cortex") & (
            regions["hemisphere"] == side[0].upper()
        )
        for place in np.flatnonzero(here):
            label = labels.index(regions["annot_name"][place].encode())
            if not np.any(codes == label):
                raise ValueError(f"{regions['name'][place]} has no vertex.")
            centroids[place] = middle[codes == label].mean(axis=0)
    return centroids
