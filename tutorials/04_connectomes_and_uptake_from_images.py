# %% [markdown]
# # Connectomes and SUVR from images
#
# From a tractogram and a parcellation to a connectome, and from a PET image and a
# parcellation to one standardised uptake value ratio (SUVR) for every region. The
# images are simulated, small enough to be understood; with your own, only the paths
# change.

# %%
from pathlib import Path

import nibabel as nib
import numpy as np
import pandas as pd
from nibabel.streamlines import Tractogram, save
from nilearn import plotting

from brainlsap.exceptions import FileFormatError
from brainlsap.images import build_connectome, extract_suvr

figures = Path("figures")
figures.mkdir(exist_ok=True)
rng = np.random.default_rng(0)

# %% [markdown]
# ## A head of six regions
#
# Six boxes in a grid of 2 mm, three on each side, and one for the cerebellum, which is
# no region of the atlas and serves as reference. The affine says where voxels lie, in
# mm; it is not the identity, as in life.

# %%
affine = np.diag([2.0, 2.0, 2.0, 1.0])
affine[:3, 3] = -30, -40, -20
labels = np.zeros((30, 40, 20), dtype=np.int16)
corners = [(4, 5), (4, 17), (4, 29), (20, 5), (20, 17), (20, 29)]
for number, (x, y) in enumerate(corners, start=1):
    labels[x : x + 6, y : y + 6, 10:16] = number
labels[10:20, 15:25, 1:6] = 7
nib.save(nib.Nifti1Image(labels, affine), "parcellation.nii.gz")
names = ["lh_back", "lh_middle", "lh_front", "rh_back", "rh_middle", "rh_front"]
atlas = pd.DataFrame({"name": names, "hemisphere": list("LLLRRR")})
atlas["structure"], atlas["lobe"] = "cortex", ["back", "middle", "front"] * 2
Path("boxes").mkdir(exist_ok=True)
atlas.to_csv("boxes/regions.tsv", sep="\t", index=False)

# %% [markdown]
# ## Streamlines
#
# 600 lines from box to box, most of them within a side. Coordinates are in mm.

# %%
centres = np.array([affine[:3, :3] @ (x + 3, y + 3, 13) for x, y in corners])
centres += affine[:3, 3]
share = np.kron([[5, 1], [1, 5]], np.ones((3, 3)))
share[np.diag_indices(6)] = 0
pairs = np.argwhere(np.triu(share))
weights = share[tuple(pairs.T)]
chosen = pairs[rng.choice(len(pairs), 600, p=weights / weights.sum())]
lines = []
for start, end in chosen:
    ends = centres[[start, end]] + rng.normal(0, 3, (2, 3))
    lines.append(np.linspace(*ends, 12).astype(np.float32))
save(Tractogram(lines, affine_to_rasmm=np.eye(4)), "tracks.tck")

# %% [markdown]
# ## The connectome
#
# `build_connectome` follows MRtrix's rules: here a radial search of 4 mm around each
# end. The labels need names, since nothing is read by position; a lookup table of
# FreeSurfer or MRtrix does as well.

# %%
label_names = dict(enumerate([*names, "Left-Cerebellum-Cortex"], start=1))
made = build_connectome(
    "tracks.tck", "parcellation.nii.gz", "boxes", labels=label_names
)
print(made.to_frame().astype(int).to_string())
for note in made.notes:
    print("-", note)

# %% [markdown]
# Other rules and weights are arguments. Fewer lines end exactly in a box than within 4
# mm of one; and lines can be weighted by their length.

# %%
exact = build_connectome(
    "tracks.tck",
    "parcellation.nii.gz",
    "boxes",
    assignment="end_voxels",
    labels=label_names,
)
print("kept by radial search:", made.n_kept, "by end voxels:", exact.n_kept)
assert exact.n_kept < made.n_kept
lengths = build_connectome(
    "tracks.tck",
    "parcellation.nii.gz",
    "boxes",
    weight="mean_length",
    labels=label_names,
)
print(lengths.to_frame().loc["lh_back"].round(1).to_string())

# %% [markdown]
# Connectomes are drawn by nilearn; its `plot_connectome(W, atlas.coordinates)` draws
# them in a glass brain.

# %%
frame = made.to_frame()
image = plotting.plot_matrix(frame.to_numpy(), labels=[*frame], cmap="viridis")
image.figure.savefig(figures / "04_connectome.png", dpi=110, bbox_inches="tight")

# %% [markdown]
# ## SUVR
#
# A PET image on another grid, of 3 mm. Uptake is 1.2 in every region but one, and 1 in
# the cerebellum; `extract_suvr` divides by the reference. No name says that the two
# images share their space (`space-T1w`), so it is said by `same_space=True`.

# %%
pet_affine = np.diag([3.0, 3.0, 3.0, 1.0])
pet_affine[:3, 3] = -29.5, -39.5, -19.5
voxels = np.indices((20, 27, 14)).reshape(3, -1).T
where = (voxels @ pet_affine[:3, :3].T + pet_affine[:3, 3] - affine[:3, 3]) / 2
inside = np.clip(np.rint(where).astype(int), 0, np.array(labels.shape) - 1)
uptake = np.array([0.2, 1.2, 1.2, 1.2, 1.2, 0.9, 1.2, 1.0])[labels[tuple(inside.T)]]
uptake = 1000 * (uptake + rng.normal(0, 0.02, len(uptake))).reshape(20, 27, 14)
nib.save(nib.Nifti1Image(uptake.astype(np.float32), pet_affine), "pet.nii.gz")

given = {"labels": label_names, "same_space": True}
found = extract_suvr("pet.nii.gz", "parcellation.nii.gz", "boxes", **given)
print(found.table.round(3).to_string())

# %% [markdown]
# The lower uptake of `rh_middle` is found. An image that does not lie where the
# parcellation does is refused: here it is moved by 40 mm.

# %%
moved = pet_affine.copy()
moved[0, 3] += 40
nib.save(nib.Nifti1Image(uptake.astype(np.float32), moved), "moved.nii.gz")
try:
    extract_suvr("moved.nii.gz", "parcellation.nii.gz", "boxes", **given)
    raise AssertionError("an image that lies elsewhere was read")
except FileFormatError as error:
    print(error)

# %% [markdown]
# ## What this does not show
#
# - Boxes are not a brain: real ends lie at the border of grey and white matter, and the
#   rule that assigns them changes the connectome. Say which you used.
# - Counts of streamlines depend on the tracking, and are no number of fibres.
# - Nothing is corrected here for partial volume or motion; that is for the tools that
#   made the images.
