# %% [markdown]
# # The command line
#
# The workflow of a study without writing Python: check, run, report, fit, predict. Each
# cell calls a command as a terminal would; type what follows the `$`.

# %%
import shlex
import shutil
from pathlib import Path

from brainlsap.cli import main

figures = Path("figures")
figures.mkdir(exist_ok=True)


def brainlsap(line):
    """Run one command; print its exit code if it is not 0, and return it."""
    print(f"$ brainlsap {line}")
    code = main(shlex.split(line))
    if code:
        print(f"(exit code {code})")
    return code


# %% [markdown]
# ## A study
#
# A simulated folder stands for your own.

# %%
brainlsap("simulate study --people 16 --atlas desikan82 --seed 1")

# %% [markdown]
# ## Look before you fit
#
# `check` says what was found and mapped, lists every fault, and looks for leaks. Exit
# code 2 means that something is wrong with the input.

# %%
reading = "--atlas desikan82 --feature fdg --classes CN,EMCI"
brainlsap(f"check study {reading}")
assert brainlsap(f"check study {reading} --label stage") == 2

# %% [markdown]
# ## Run
#
# Folds by person, baselines, a ranking of the regions, and a report in
# `results/report/report.html`. Without `--epochs` it takes longer and is better. The
# effect of each region is compared with labels permuted 200 times (`--permutations`).
# The rarer settings stand in a file; its keys are the parameters of the Python
# functions. Name another `--out` for other settings: a report is not replaced by one of
# other settings.

# %%
Path("study.toml").write_text("n_starts = 1\n")
brief = "--config study.toml --epochs 8"
brainlsap(f"run study {reading} {brief} --folds 2 --out results")
for path in sorted(Path("results").glob("*/*"))[:10]:
    print(path)
assert Path("results/report/report.html").is_file()

# %% [markdown]
# The figures of the report are files. `report` writes the page anew, and exports the
# scales for other programs.

# %%
drawn = sorted(Path("results").rglob("brain.png"))
shutil.copy(drawn[0], figures / "10_scales.png")
brainlsap("report results --export maps")
print(*sorted(path.name for path in Path("maps").iterdir())[:6])

# %% [markdown]
# ## New people
#
# A model of the whole study, and its predictions for others. Probabilities assume that
# classes are as frequent among them as in the study, unless `--class-prior` says
# otherwise; `predict` prints these shares. The table names people:
# keep it as private as the data. These others were simulated with another seed, so that
# their regions have other means than those of the fit: `predict` warns of such people.

# %%
brainlsap(f"fit study {reading} {brief} --out model.safetensors")
brainlsap("simulate others --people 6 --atlas desikan82 --seed 2")
brainlsap("predict model.safetensors others --out predictions.tsv")
print(Path("predictions.tsv").read_text()[:160])
assert "p_EMCI" in Path("predictions.tsv").read_text()

# %% [markdown]
# ## What this does not show
#
# - The scores are of a handful of simulated people and eight epochs.
# - `check` cannot know that a table holds the wrong diagnosis, or that a matrix has its
#   sides swapped where names are right.
# - A predicted stage is no diagnosis.
