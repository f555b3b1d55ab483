# %% [markdown]
# # Scale out with Dask
#
# A cross-validation is many tasks: each model on each fold. They run in processes on
# one machine, or on the workers of a Dask cluster, with the same result to the last
# bit; and finished ones are kept, so that a run that was stopped continues. Here the
# cluster is a local one, in this process. On yours, only the address changes.

# %%
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from brainlsap import LSAPClassifier, cross_validate, make_cohort

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %%
cohort = make_cohort(30, atlas="desikan82", random_state=0)
model = LSAPClassifier(initial_scale=1.0, n_epochs=20, n_starts=1, random_state=0)
how = {"n_folds": 3, "random_state": 0, "baselines": False}

# %% [markdown]
# ## Here, and remembered
#
# `cache` is a folder of finished tasks, named by a hash of code, data, settings and
# seed. The second call finds all of them.

# %%
seconds = {}
for name in ("first", "again"):
    start = time.perf_counter()
    here = cross_validate({"LSAP-C": model}, cohort, cache="tasks", tell=print, **how)
    seconds[name] = time.perf_counter() - start
print({name: round(value, 2) for name, value in seconds.items()})

# %% [markdown]
# Change a setting, and only what depends on it is computed: the name changes.

# %%
more = {"LSAP-C": model, "20 epochs more": model.__class__(**model.get_params())}
more["20 epochs more"].set_params(n_epochs=40)
both = cross_validate(more, cohort, cache="tasks", tell=print, **how)

# %% [markdown]
# ## On a cluster
#
# Needs `pip install "brainlsap[dask]"`. From the command line it is `brainlsap run ...
# --backend dask --scheduler tcp://HOST:8786`; results stand in the folder of `--out`
# here, whatever happens to the workers.

# %%
try:
    from distributed import Client, LocalCluster
except ImportError:
    print("distributed is not installed; this part is left out")
else:
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        address = cluster.scheduler_address
        there = cross_validate(
            {"LSAP-C": model}, cohort, backend="dask", scheduler=address, **how
        )
    first = np.concatenate([fold.probability for fold in here.main.folds])
    second = np.concatenate([fold.probability for fold in there.main.folds])
    print("identical predictions:", bool((first == second).all()))

# %%
fig, ax = plt.subplots(figsize=(4, 3), layout="constrained")
ax.bar(list(seconds), list(seconds.values()), color="0.6")
ax.set(ylabel="seconds", title="The same call, twice")
fig.savefig(figures / "12_seconds.png", dpi=110)

# %% [markdown]
# ## What this does not show
#
# - Speed: a cluster in one process is slower than no cluster. Tasks of seconds are not
#   worth sending; fits of minutes are.
# - Machines of different make may differ in the last digits; on one machine results do
#   not depend on how many processes there are.
# - The folder of tasks names people: keep it as private as the data.
