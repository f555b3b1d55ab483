# %% [markdown]
# # Build connectomes and SUVR from images
#
# How is a connectome computed from a tractogram, and how is the standardised uptake
# value ratio (SUVR) of each region computed from a PET image? Both computations need a
# parcellation. The images here are simulated and small, so the correct result is known.
# With your own images, only the paths change.
#
# **What comes out.** Of 600 simulated streamlines, 587 connect two of six regions if
# the nearest region is searched within 4 mm of each end. Without this search, only 424
# streamlines connect two regions. The simulated uptake is 0.9 in one region and 1.2 in
# the others. The computed SUVR is 0.90 in this region and 1.19 to 1.20 in the others.
# If a PET image does not overlap the parcellation, an error is raised.

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
# ## Make a parcellation of six regions
#
# The regions are six boxes, three on each side, in voxels of 2 mm. A seventh box is the
# cerebellum. The cerebellum is the reference region of the SUVR, and is not a region of
# the atlas. The affine gives the positions of voxels in mm.

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
# ## Simulate streamlines
#
# 600 lines connect pairs of boxes, mostly within one side. Coordinates are in mm.

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
# ## Build the connectome
#
# `build_connectome` assigns the ends of streamlines to regions by MRtrix's rules, by
# default with a radial search of 4 mm. `labels` gives the name of each number in the
# parcellation. A lookup table of FreeSurfer or MRtrix can also be given as `labels`.
# Read the notes: if the percentage of assigned ends is low, tractogram and parcellation
# do not fit.

# %%
label_names = dict(enumerate([*names, "Left-Cerebellum-Cortex"], start=1))
radial = build_connectome(
    "tracks.tck", "parcellation.nii.gz", "boxes", labels=label_names
)
print(radial.to_frame().astype(int).to_string())
for note in radial.notes:
    print("-", note)

# %% [markdown]
# The rule of assignment changes the result: without the search, fewer streamlines are
# counted. Report the rule in a paper. With `weight`, connections have other weights
# than counts, for example mean lengths.

# %%
exact = build_connectome(
    "tracks.tck",
    "parcellation.nii.gz",
    "boxes",
    assignment="end_voxels",
    labels=label_names,
)
print("kept by radial search:", radial.n_kept, "by end voxels:", exact.n_kept)
assert (radial.n_kept, exact.n_kept) == (587, 424)
lengths = build_connectome(
    "tracks.tck",
    "parcellation.nii.gz",
    "boxes",
    weight="mean_length",
    labels=label_names,
)
print(lengths.to_frame().loc["lh_back"].round(1).to_string())

# %% [markdown]
# nilearn draws connectomes. The two blocks of the matrix show that most streamlines
# stay within a side, as simulated. `plot_connectome` of nilearn draws a glass brain.

# %%
frame = radial.to_frame()
image = plotting.plot_matrix(frame.to_numpy(), labels=[*frame], cmap="viridis")
image.figure.savefig(figures / "04_connectome.png", dpi=110, bbox_inches="tight")

# %% [markdown]
# ## Extract SUVR
#
# The PET image has voxels of 3 mm. Uptake is 1.2 in all regions except `rh_middle`
# (0.9), and 1 in the cerebellum. `extract_suvr` averages the uptake in each region, and
# divides this mean by the mean of the reference region. BIDS file names give the space
# of an image (`space-T1w`). The file names here do not give the space, so
# `same_space=True` confirms that both images are in the same space. Set this argument
# only if you have checked the images.

# %%
pet_affine = np.diag([3.0, 3.0, 3.0, 1.0])
pet_affine[:3, 3] = -29.5, -39.5, -19.5
voxels = np.indices((20, 27, 14)).reshape(3, -1).T
positions = voxels @ pet_affine[:3, :3].T + pet_affine[:3, 3]
nearest = np.rint((positions - affine[:3, 3]) / 2).astype(int)
nearest = np.clip(nearest, 0, np.array(labels.shape) - 1)
uptake = np.array([0.2, 1.2, 1.2, 1.2, 1.2, 0.9, 1.2, 1.0])[labels[tuple(nearest.T)]]
uptake = 1000 * (uptake + rng.normal(0, 0.02, len(uptake))).reshape(20, 27, 14)
nib.save(nib.Nifti1Image(uptake.astype(np.float32), pet_affine), "pet.nii.gz")

suvr = extract_suvr(
    "pet.nii.gz",
    "parcellation.nii.gz",
    "boxes",
    labels=label_names,
    same_space=True,
)
print(suvr.table.round(3).to_string())
others = suvr.table["suvr"].drop("rh_middle")
assert abs(suvr.table.loc["rh_middle", "suvr"] - 0.90) < 0.01
assert others.between(1.185, 1.205).all()

# %% [markdown]
# The SUVR agree with the simulated uptake. Check `coverage`, too. `coverage` is the
# share of a region that the image covers. If an image covers too little, an error is
# raised. Here the image is moved by 40 mm to show this error.

# %%
moved = pet_affine.copy()
moved[0, 3] += 40
nib.save(nib.Nifti1Image(uptake.astype(np.float32), moved), "moved.nii.gz")
try:
    extract_suvr(
        "moved.nii.gz",
        "parcellation.nii.gz",
        "boxes",
        labels=label_names,
        same_space=True,
    )
    raise AssertionError("an image that does not overlap was read")
except FileFormatError as error:
    print(error)

# %% [markdown]
# ## What this does not show
#
# - The effect of the rules in a brain. Real streamlines end at the border of grey and
#   white matter. In real data, the rule of assignment changes the connectome more than
#   here.
# - Numbers of fibres. Counts of streamlines depend on the tractography method.
# - Corrections for partial volume or motion. The tools that produce the images apply
#   these corrections.
