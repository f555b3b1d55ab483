# %% [markdown]
# # Load a cohort and classify it
#
# Can a model predict the stage of a person, from healthy to Alzheimer's disease, from
# the connectome and regional FDG-PET? This page reads a folder of files, computes
# scores on people who were not in the training data, and compares these scores with the
# scores of simpler models.
#
# **What comes out.** With 40 simulated people in five stages, LSAP-C has a balanced
# accuracy of 0.53 in cross-validation. LSAP-C is a graph neural network that learns a
# diffusion scale for every region. Chance is 0.20, and a model of whole-brain means
# reaches 0.38. The best simple models are two ridge regressions on features that are
# averaged along the connectome: with one common diffusion scale (0.68), and with a
# scale per region (0.69). With so few people, LSAP-C is above chance but not above
# these simple models.
#
# No download is needed. All files are written to subfolders of the current folder.

# %%
from pathlib import Path

from brainlsap import (
    LSAPClassifier,
    cross_validate,
    load_cohort,
    make_cohort,
    score_table,
)
from brainlsap.evaluation import make_splits
from brainlsap.exceptions import CohortError
from brainlsap.report import plot_confusion, plot_scores
from brainlsap.simulation import write_study_folder

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## Write a study folder
#
# `make_cohort` simulates 40 people in five stages, from healthy (CN) to Alzheimer's
# disease (AD), with one to three visits each. `write_study_folder` writes these people
# to disk as a study folder: a table of participants, one connectome per scan in
# MRtrix's format, one table of regional FDG-PET SUVR (standardised uptake value ratio)
# per scan, and FreeSurfer's `stats` with cortical thickness. For your work, use your
# own study folder instead.

# %%
folder = Path("study")
if not folder.exists():
    simulated = make_cohort(
        40, atlas="desikan82", feature=["fdg", "thickness"], random_state=0
    )
    write_study_folder(simulated, folder)

for path in sorted(folder.rglob("*sub-0002_ses-M00*")):
    print(path)
print((folder / "participants.tsv").read_text()[:160])

# %% [markdown]
# ## Read the study
#
# One call reads and checks every file, and sorts all regions into the order of the
# atlas. It returns a `Cohort`: arrays with named axes.

# %%
study = load_cohort(folder, atlas="desikan82", feature=["fdg", "thickness"])
print(study)
print("connectomes", study.connectomes.shape, "features", study.features.shape)
print("features:", study.feature_names, "classes in order:", study.classes)
print("regions:", *study.region_names[:3], "...", study.region_names[-1])

# %% [markdown]
# The table has one row per scan. `participant` names the person: a person with three
# visits has three rows. Look at the counts per stage first. The rarest stage has only
# five people, so all scores have a large uncertainty.

# %%
assert study.table["participant"].nunique() == 40
print(study.table.head(4).to_string(index=False))
people_and_scans = study.table.groupby("label")[["participant", "scan"]].nunique()
print(people_and_scans.loc[[*study.classes]])
assert people_and_scans["participant"].min() == 5

# %% [markdown]
# Cortical thickness has no value in the subcortex. Missing values are NaN, and
# `measured` is True if there is a value. The package never replaces missing values
# without your instruction. For example, `load_cohort(..., subcortex="volume")` gives
# subcortical regions their volume in place of the missing thickness.

# %%
measured = study.measured.any(axis=0)
for name, column in zip(study.feature_names, measured.T, strict=True):
    print(f"{name}: measured in {column.sum()} of {study.n_rois} regions")
assert not measured[~study.atlas.cortex, study.feature_names.index("thickness")].any()

# %% [markdown]
# `notes` list what the package did to match the files to the atlas. Here two of the 84
# nodes of MRtrix were left out, because the atlas has no cerebellum. Read the notes for
# your own data. An unexpected mapping is easier to find in the notes than in the
# scores.

# %%
for note in study.notes:
    print("-", note)

# %% [markdown]
# A study with faults is not loaded. One error lists all faults. For each fault, the
# error names the file or the person, and a solution. Here two connectomes are hidden to
# show such an error.

# %%
hidden = sorted(folder.rglob("*_connectivity.csv"))[3:5]
for path in hidden:
    path.rename(path.with_suffix(".hidden"))
try:
    load_cohort(folder, atlas="desikan82", feature="fdg")
    raise AssertionError("a cohort without two of its connectomes was read")
except CohortError as error:
    print(error)
finally:
    for path in hidden:
        path.with_suffix(".hidden").rename(path)

# %% [markdown]
# ## Cross-validate
#
# From here on, FDG is the only feature. Visits of one person are similar, so a model
# that was trained on the first visit can recognise the second visit. Folds therefore
# divide people, never scans.

# %%
cohort = load_cohort(folder, atlas="desikan82", feature="fdg")
# 3 folds, so that this runs in seconds. Leave n_folds out in a study: the default is 5.
splits = make_splits(cohort.y, cohort.groups, n_folds=3, random_state=0)
for train, test in splits:
    shared = set(cohort.groups[train]) & set(cohort.groups[test])
    print(f"{len(train)} training scans, {len(test)} test scans, {len(shared)} shared")
    assert not shared

# %% [markdown]
# `cross_validate` makes the same folds. In every fold it fits a new copy of the model
# to the training scans and stores its predictions for the test scans. Baseline models
# use the same folds. They are the most frequent class, three logistic regressions (on
# means over the brain and the hemispheres, on selected features, and on all features),
# a linear SVM, and three ridge models (without the connectome, with one diffusion
# scale, and with a scale per region).
#
# `LSAPClassifier` learns a diffusion scale for every region. It starts from a ridge
# model, LSAP-R, and adds a network only if the network improves the predictions for
# people outside its training data. With few people, as here, the predictions usually
# come from the ridge model alone.

# %%
# Few epochs, one start and 3 folds, so that this runs in seconds. Leave all three out
# in a study.
model = LSAPClassifier(n_epochs=10, n_starts=1, random_state=0)
evaluation = cross_validate({"LSAP-C": model}, cohort, cv=3, random_state=0)

table = score_table(evaluation)
print(table.to_string(index=False))
table.to_csv("scores.csv", index=False)

# %% [markdown]
# Read the baselines first. Each baseline answers one question:
#
# - *majority class*: what is the score at chance? The balanced accuracy is 1/5.
# - *global means*: how well can the stage be predicted without regional values?
# - *logistic regression, linear SVM*: how well can the stage be predicted without the
#   connectome?
# - *LSAP-R*: how well can the stage be predicted without the neural network? The score
#   of LSAP-C minus the score of LSAP-R is the improvement by the neural network.
#
# Here the neural network does not improve the score (the scores of LSAP-C and LSAP-R
# agree). The two ridge models with diffusion scales have the highest scores. Three
# folds are too few to show that one model is better than another. Tutorial 07 shows a
# test of such differences.

# %%
scores = evaluation.scores().pivot(
    index="fold", columns="model", values="balanced_accuracy"
)
mean = scores.mean()
assert abs(mean["majority class"] - 0.2) < 1e-9
assert abs(mean["LSAP-C"] - 0.53) < 0.08
assert abs(mean["global means"] - 0.38) < 0.08
ridges = ["ridge with one scale", "ridge with a scale per region"]
assert (mean[ridges] - [0.68, 0.69]).abs().max() < 0.1
assert mean[ridges].min() > mean.drop(ridges).max()
for name in ("LSAP-R", *ridges):
    difference = scores["LSAP-C"] - scores[name]
    folds = ", ".join(f"{fold_difference:+.2f}" for fold_difference in difference)
    print(f"LSAP-C minus {name}: {difference.mean():+.3f} (folds: {folds})")

# %%
plot_scores(evaluation).figure.savefig(figures / "01_scores.png", dpi=150)

# %% [markdown]
# ## Look at the errors
#
# Rows of the confusion matrix are the true stages. Because the stages overlap, most
# errors are between neighbouring stages. Accuracy counts all errors equally. The code
# below counts how many stages apart the true and the predicted stage are.

# %%
plot_confusion(evaluation).figure.savefig(figures / "01_confusion.png", dpi=150)
predictions = evaluation.predictions.query("model == 'LSAP-C'")
stage = {name: number for number, name in enumerate(cohort.classes)}
stage_error = predictions["truth"].map(stage) - predictions["predicted"].map(stage)
n_errors = stage_error.abs().loc[lambda error: error > 0].value_counts().sort_index()
print("errors by number of stages:", n_errors.to_dict())
assert n_errors[1] > 0.7 * n_errors.sum()

# %% [markdown]
# The evaluation contains every prediction with its scan, so other scores can be
# computed later. Its tables are `predictions`, `scales` and `fits`. Probabilities
# assume the class shares of the training scans. For the predicted class, all classes
# have equal weight. Rare stages are therefore also predicted.

# %%
columns = ["model", "fold", "scan", "truth", "predicted", "p_CN", "p_AD"]
print(evaluation.predictions[columns].head(3).round(2).to_string(index=False))

# %% [markdown]
# ## What this does not show
#
# - How well the method predicts stages of patients. These people are simulated. The
#   scores only show that all steps work.
# - A confidence interval. With 40 people in three folds, each fold tests one or two
#   people of the rarest stage. The standard deviation over folds is not a confidence
#   interval, because folds share their training people.
# - Whether LSAP-C is better than ridge models with more people or other data. Compare
#   the same rows of the score table for your data.
# - The effect of sites and ages. Here site and age were simulated independently of the
#   stage. In a real study, check whether site and age differ between the stages,
#   because a model can learn differences between scanners.
