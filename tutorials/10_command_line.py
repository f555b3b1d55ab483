# %% [markdown]
# # Run a study from the command line
#
# How can a study be analysed without Python, from a folder of files to a report and
# predictions for new people? The commands are `check`, `run`, `report`, `fit` and
# `predict`. Each cell calls one command. In a terminal, type the text after the `$`.
#
# **What comes out.** A simulated study of 17 scans of 9 people with two diagnoses gives
# an HTML report, maps of the scales, and a stored model that predicts 12 scans of 6 new
# people. The balanced accuracy of LSAP-C is 0.62, and chance is 0.50. With so few
# people, no conclusion is possible.

# %%
import shlex
import shutil
from pathlib import Path

from brainlsap.cli import main
from brainlsap.evaluation import Evaluation

figures = Path("figures")
figures.mkdir(exist_ok=True)


def brainlsap(line: str) -> int:
    """Run one command; print its exit code if it is not 0, and return it."""
    print(f"$ brainlsap {line}")
    code = main(shlex.split(line))
    if code:
        print(f"(exit code {code})")
    return code


# %% [markdown]
# ## Get a study
#
# This page uses a simulated folder instead of your own study.

# %%
brainlsap("simulate study --people 16 --atlas desikan82 --seed 1")

# %% [markdown]
# ## Check before you fit
#
# `check` lists the data that were found, how regions were mapped, and all faults. It
# also detects data leakage, and covariates that predict the diagnosis. Read *Mapped*
# and *Dropped* first. Exit code 2 means that the input has a fault. Here the second
# command names a column that does not exist.

# %%
reading = "--atlas desikan82 --feature fdg --classes CN,EMCI"
brainlsap(f"check study {reading}")
assert brainlsap(f"check study {reading} --label stage") == 2

# %% [markdown]
# ## Run
#
# `run` cross-validates the models with all visits of a person in one fold, runs the
# baselines, ranks and tests the regions, and writes `results/report/report.html`.
# Settings that have no option can be set in a file (`--config`). Its keys are the
# parameters of the Python functions. Use a new `--out` for new settings: `run` does not
# overwrite a report that was made with other settings.

# %%
# Few epochs, one start and 2 folds, so that this runs in seconds. In a study type
# `brainlsap run study --feature fdg --out results`, without these settings.
Path("study.toml").write_text("n_starts = 1\n")
brief = "--config study.toml --epochs 8"
brainlsap(f"run study {reading} {brief} --folds 2 --out results")
for path in sorted(Path("results").glob("*/*"))[:10]:
    print(path)
assert Path("results/report/report.html").is_file()
results = Evaluation.load("results/private/evaluation")
mean = results.scores().groupby("model")["balanced_accuracy"].mean()
assert abs(mean["LSAP-C"] - 0.62) < 0.1
assert results.predictions["scan"].nunique() == 17

# %% [markdown]
# Open the report in a browser. *Reading a report* in the documentation explains every
# part of the report. The figures are also stored as files. `report` writes the report
# again and exports the scales for other programs.

# %%
shutil.copy("results/report/figures/effects.png", figures / "10_effects.png")
brainlsap("report results --export maps")
print(*sorted(path.name for path in Path("maps").iterdir())[:6])

# %% [markdown]
# ## Predict new people
#
# `fit` trains one model on the whole study, and `predict` applies it to new people.
# Probabilities assume that the classes are as frequent as in the study. `predict`
# prints these shares, and `--class-prior` changes them. The table of predictions
# contains the IDs of people, so keep it as private as the data. The new people here
# come from another simulation, so `predict` also warns that their data differ from
# those of the study. `--ids-are-new` confirms that equal IDs in the two simulations
# belong to different people.

# %%
# Few epochs and one start again. Leave both out in a study.
brainlsap(f"fit study {reading} {brief} --out model.safetensors")
brainlsap("simulate others --people 6 --atlas desikan82 --seed 2")
brainlsap("predict model.safetensors others --ids-are-new --out predictions.tsv")
print(Path("predictions.tsv").read_text()[:160])
assert "p_EMCI" in Path("predictions.tsv").read_text()
assert len(Path("predictions.tsv").read_text().splitlines()) == 1 + 12

# %% [markdown]
# ## What this does not show
#
# - The accuracy of the method. The scores come from nine simulated people and eight
#   epochs.
# - Whether the input is correct. `check` cannot detect a wrong diagnosis in a table. It
#   detects swapped sides only if left and right differ in the same way in most scans.
# - A diagnosis. A predicted stage is not a diagnosis.
