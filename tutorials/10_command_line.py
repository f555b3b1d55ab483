# %% [markdown]
# # The command line
#
# The way of a study without writing Python: look, check, audit, run, rank, fit,
# predict. Each cell calls a command as a terminal would; type what follows the `$`.

# %%
import shlex
import shutil
from pathlib import Path

from brainlsap.cli import main

figures = Path("figures")
figures.mkdir(exist_ok=True)


def brainlsap(line):
    """Run one command, and say how it ended if not well."""
    print(f"$ brainlsap {line}")
    code = main(shlex.split(line))
    if code:
        print(f"(exit code {code})")


# %% [markdown]
# ## A cohort
#
# Simulated subject folders stand for your own.

# %%
brainlsap("atlases")
brainlsap("simulate study --people 24 --atlas desikan82 --seed 1")

# %% [markdown]
# ## Look before you fit
#
# `check` says what was found and mapped; `audit` looks for leaks. Exit code 2 means
# that something is wrong with the input.

# %%
reading = "--atlas desikan82 --feature fdg --classes CN,EMCI"
brainlsap(f"check study {reading}")
brainlsap(f"audit study {reading} --folds 2")
brainlsap(f"check study {reading} --label stage")

# %% [markdown]
# ## Run
#
# Folds by person, baselines beside it, a report in `results/report/report.html`.
# Without `--epochs` and `--starts` it takes longer and is better.

# %%
brief = "--epochs 8 --starts 1 --folds 2"
brainlsap(f"run study {reading} {brief} --out results")
for path in sorted(Path("results").glob("*/*"))[:12]:
    print(path)

# %% [markdown]
# The figures of the report are files.

# %%
drawn = sorted(Path("results").rglob("*scales*.png"))
shutil.copy(drawn[0], figures / "10_scales.png")
print(drawn[0])

# %% [markdown]
# ## The regions

# %%
brainlsap("rank results --top 5")

# %% [markdown]
# ## New people
#
# A model of the whole cohort, and its predictions for others. The table names people,
# and is readable by its owner only.

# %%
brainlsap(f"fit study {reading} --epochs 8 --starts 1 --out model.safetensors")
brainlsap("simulate others --people 6 --atlas desikan82 --seed 2")
brainlsap("predict model.safetensors others --out predictions.tsv")
print(Path("predictions.tsv").read_text()[:160])

# %% [markdown]
# ## What this does not show
#
# - The scores are of two dozen simulated people and eight epochs.
# - `check` cannot know that a table holds the wrong diagnosis, or that a matrix has its
#   sides swapped where names are right.
# - A predicted stage is no diagnosis.
