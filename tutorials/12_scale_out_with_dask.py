# %% [markdown]
# # Scale out with Dask
#
# A cross-validation is many fits: each model on each fold. Joblib runs them in
# processes on one machine, or on the workers of a Dask cluster, with the same result to
# the last bit; and finished ones are kept, so that a run that was stopped continues.
# Here the cluster is two processes on this machine. On yours, only the address changes.

# %%
import os
import time
from pathlib import Path

import joblib
import matplotlib.pyplot as plt
from distributed import Client, SubprocessCluster
from sklearn.base import clone

from brainlsap import LSAPClassifier, cross_validate, make_cohort

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %%
cohort = make_cohort(24, atlas="desikan82", random_state=0)
model = LSAPClassifier(n_epochs=6, n_starts=1, random_state=0)
how = {"cv": 3, "random_state": 0, "baselines": False}

# %% [markdown]
# ## Here, and remembered
#
# `memory` is a folder of finished fits, named by a hash of code, data, settings and
# seed. The second call finds all of them. (`brainlsap run` keeps them in
# `private/folds` of the results.)

# %%
seconds = {}
for name in ("first", "again"):
    start = time.perf_counter()
    here = cross_validate({"LSAP-C": model}, cohort, memory="fits", **how)
    seconds[name] = time.perf_counter() - start
print({name: round(value, 2) for name, value in seconds.items()})
assert seconds["again"] < seconds["first"]

# %% [markdown]
# Change a setting, and only what depends on it is computed: the name changes.

# %%
kept = len(list(Path("fits").rglob("*.*")))
assert kept == 3  # folds
more = {"LSAP-C": model, "3 epochs": clone(model).set_params(n_epochs=3)}
cross_validate(more, cohort, memory="fits", **how)
after = len(list(Path("fits").rglob("*.*")))
print(f"{kept} fits kept before, {after} after")
assert after == kept + 3

# %% [markdown]
# ## On a cluster
#
# Needs `pip install distributed`. The package knows nothing of Dask: it asks joblib,
# and you say where joblib's work goes. The scheduler keeps a log of what reached it;
# one task is one fit, or the fits of a fold that share a ridge. (With a single worker
# joblib would send nothing.)


# %%
def count_finished(dask_scheduler):
    """Return how many tasks workers have finished."""
    log = dask_scheduler.transition_log
    return len({one.key for one in log if one.finish == "memory"})


with (
    SubprocessCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster,
    Client(cluster) as client,
):
    client.wait_for_workers(2)
    with joblib.parallel_config("dask"):
        there = cross_validate({"LSAP-C": model}, cohort, **how)
    n_finished = client.run_on_scheduler(count_finished)
    n_processes = len({*client.run(os.getpid).values(), os.getpid()})
print(
    f"{n_finished} tasks finished by 2 workers; {n_processes} processes with this one"
)
assert n_finished == 3  # folds
assert n_processes == 3
print("identical predictions:", here.predictions.equals(there.predictions))
print("identical scales:", here.scales.equals(there.scales))
assert here.predictions.equals(there.predictions)
assert here.scales.equals(there.scales)

# %%
fig, ax = plt.subplots(figsize=(4, 3), layout="constrained")
ax.bar(list(seconds), list(seconds.values()), color="0.6")
ax.set(ylabel="seconds", title="The same call, twice")
fig.savefig(figures / "12_seconds.png", dpi=110)

# %% [markdown]
# ## What this does not show
#
# - Speed: starting two processes takes longer than these fits. Fits of seconds are not
#   worth sending; fits of minutes are.
# - Machines of different make may differ in the last digits; on one machine results do
#   not depend on how many processes there are.
# - The folder of fits names people: keep it as private as the data.
