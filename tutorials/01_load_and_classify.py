# %% [markdown]
# # Load a cohort and classify it
#
# From a folder of subjects to honest scores: read, look at what was read,
# cross-validate so that no person is on both sides, and compare with models that are
# simpler.
#
# The people are simulated, so that nothing has to be downloaded. Everything is written
# below the present folder. It takes a few seconds.

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
# ## The folder
#
# `make_cohort` simulates 40 people in five stages, from healthy (CN) to Alzheimer's
# disease (AD), with one to three visits each. `write_study_folder` puts them on disk
# as a study has them: a table of participants, a connectome per scan as MRtrix writes
# it, a table of regional FDG-PET SUVR, and FreeSurfer's `stats` with cortical
# thickness. Your own study takes the place of this folder.

# %%
folder = Path("study")
if not folder.exists():
    simulated = make_cohort(40, feature=["fdg", "thickness"], random_state=0)
    write_study_folder(simulated, folder)

for path in sorted(folder.rglob("*sub-0002_ses-M00*")):
    print(path)
print((folder / "participants.tsv").read_text()[:160])

# %% [markdown]
# ## Read it
#
# One call reads every file, checks it, and puts all regions into the order of the
# atlas. What comes back is a `Cohort`: arrays whose axes have names.

# %%
both = load_cohort(folder, atlas="destrieux160", feature=["fdg", "thickness"])
print(both)
print("connectomes", both.connectomes.shape, "features", both.features.shape)
print("features:", both.feature_names, "classes in order:", both.classes)
print("regions:", *both.region_names[:3], "...", both.region_names[-1])

# %% [markdown]
# One row of the table belongs to each scan. `participant` is the person: people with
# three visits have three rows.

# %%
assert both.table["participant"].nunique() == 40
print(both.table.head(4).to_string(index=False))
print(
    both.table.groupby("label")[["participant", "scan"]].nunique().loc[[*both.classes]]
)

# %% [markdown]
# Not everything is measured everywhere: the subcortex has no cortical thickness. Such
# values are NaN, and `measured` is the mask of the rest. They are never filled in
# silently; `load_cohort(..., subcortex="volume")` is one of the explicit ways out.

# %%
measured = both.measured.any(axis=0)
for name, column in zip(both.feature_names, measured.T, strict=True):
    print(f"{name}: measured in {column.sum()} of {both.n_rois} regions")
assert not measured[~both.atlas.cortex, both.feature_names.index("thickness")].any()

# %% [markdown]
# `notes` say what the reader did to make the files fit, once for all scans. Here
# MRtrix's 164 nodes were brought to the 160 of the atlas. Read the notes of your own
# data: a mapping that you did not expect is easier to find here than in the scores.

# %%
for note in both.notes:
    print("-", note)

# %% [markdown]
# A cohort with faults is refused as a whole, with all of them in one list, each with
# the file or the person and what to do about it. Two connectomes are hidden here to see
# it.

# %%
hidden = sorted(folder.rglob("*_connectivity.csv"))[3:5]
for path in hidden:
    path.rename(path.with_suffix(".hidden"))
try:
    load_cohort(folder, feature="fdg")
    raise AssertionError("a cohort without two of its connectomes was read")
except CohortError as error:
    print(error)
finally:
    for path in hidden:
        path.with_suffix(".hidden").rename(path)

# %% [markdown]
# ## Cross-validate
#
# From here on FDG alone. Visits of one person look alike: a model that has seen the
# first visit knows the second. So folds are drawn by person, never by scan.

# %%
cohort = load_cohort(folder, feature="fdg")
splits = make_splits(cohort.y, cohort.groups, n_folds=3, random_state=0)
for train, test in splits:
    shared = set(cohort.groups[train]) & set(cohort.groups[test])
    print(f"{len(train)} training scans, {len(test)} test scans, {len(shared)} shared")
    assert not shared

# %% [markdown]
# `cross_validate` does the same inside. It clones the model for every fold, shows it
# the training scans only, and keeps every prediction on the test scans. The usual
# baselines run through the very same folds: the most frequent class, logistic
# regression on means over the brain and each hemisphere, on selected and on all
# features, a linear SVM, and ridges without the connectome, with one scale and with a
# scale per region, among which LSAP-R chooses.
#
# The classifier learns a heat scale for every region. It begins with its ridge, LSAP-R,
# and adds networks where they predict people better whom they were not trained on; with
# as few people as here the ridge mostly predicts alone. It gets fewer epochs and one
# start here, so that this page runs in seconds; leave both out for real work.

# %%
model = LSAPClassifier(n_epochs=10, n_starts=1, random_state=0)
evaluation = cross_validate({"LSAP-C": model}, cohort, cv=3, random_state=0)

table = score_table(evaluation)
print(table.to_string(index=False))
table.to_csv("scores.csv", index=False)

# %% [markdown]
# Read the baselines first. Chance is a balanced accuracy of 1/5; the most frequent
# class gets exactly that, however high its plain accuracy is. What global means
# achieve needs no region, and what logistic regression and the SVM achieve needs no
# network. Only the difference to the best baseline is the model's, and only if it is
# larger than the spread over folds. Ridges that know the order of the stages are hard
# to beat: LSAP-R is what LSAP-C began with, so the difference between these two is
# what the networks added, or took away.

# %%
scores = evaluation.scores().pivot(
    index="fold", columns="model", values="balanced_accuracy"
)
mean = scores.mean()
assert abs(mean["majority class"] - 0.2) < 1e-9
assert min(mean["LSAP-C"], mean["LSAP-R"]) > mean["majority class"]
best = mean[list(evaluation.baselines)].idxmax()
assert "ridge" in best
for name in ("LSAP-R", best):
    difference = scores["LSAP-C"] - scores[name]
    folds = ", ".join(f"{one:+.2f}" for one in difference)
    print(f"LSAP-C minus {name}: {difference.mean():+.3f} (folds: {folds})")

# %%
plot_scores(evaluation).figure.savefig(figures / "01_scores.png", dpi=150)

# %% [markdown]
# Where are the errors? Rows are the true stages. Neighbouring stages are mixed up more
# than distant ones, since the stages overlap; *mean stage error* and *kappa* in the
# table count that, accuracy does not.

# %%
plot_confusion(evaluation).figure.savefig(figures / "01_confusion.png", dpi=150)
mine = evaluation.predictions.query("model == 'LSAP-C'")
stage = {name: number for number, name in enumerate(cohort.classes)}
steps = (mine["truth"].map(stage) - mine["predicted"].map(stage)).abs()
print(
    "errors by number of stages:",
    steps[steps > 0].value_counts().sort_index().to_dict(),
)
assert (steps == 1).sum() > (steps > 1).sum()

# %% [markdown]
# Every prediction is kept with its scan, so that any score can be made again later. An
# `Evaluation` is three such tables: `predictions`, `scales` and `fits`. Probabilities
# assume the class shares of the training scans; the predicted class weighs all classes
# the same, so that rare stages are predicted, too.

# %%
columns = ["model", "fold", "scan", "truth", "predicted", "p_CN", "p_AD"]
print(evaluation.predictions[columns].head(3).round(2).to_string(index=False))

# %% [markdown]
# ## What this does not show
#
# - These people do not exist. The scores say that the steps work together, and nothing
#   about any disease, nor about how good the method is on patients.
# - Forty people in three folds leave one or two people of the rarest stage to test on.
#   The s.d. over folds is not a confidence interval: folds share their training people.
# - If LSAP-C is not above the ridge that it began with, that is the finding: at this
#   size and with these few epochs networks may add noise. On real data look at the same
#   two rows.
# - Sites and ages were drawn without regard to the stage. In a real study check both: a
#   model may learn the scanner.
