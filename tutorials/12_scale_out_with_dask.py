# %% [markdown]
# # Distribute fits over a Dask cluster
#
# How can a long cross-validation run on several machines, and how can it continue after
# it was stopped? A cross-validation consists of one fit per model and fold. Joblib runs
# these fits in processes of one machine or on the workers of a Dask cluster. Here the
# cluster consists of two processes on this machine. For your cluster, only the address
# changes.
#
# **What comes out.** With 24 simulated people and 3 folds, the 3 fits run on the 2
# workers, and all predictions and scales are identical to those of a single process. A
# second call finds the 3 finished fits on disk, and computes no fit again. If a second
# model is added, only the 3 fits of this model are computed. The cohort is sent to the
# cluster once for all fits.

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
# Few epochs, one start, 3 folds and no baselines, so that this runs in seconds. Leave
# all four out in a study.
cohort = make_cohort(24, atlas="desikan82", random_state=0)
model = LSAPClassifier(n_epochs=6, n_starts=1, random_state=0)
settings = {"cv": 3, "random_state": 0, "baselines": False}

# %% [markdown]
# ## Keep finished fits
#
# `memory` is a folder of finished fits. The name of each file is a hash of code, data,
# settings and seed, so a stopped run continues where it stopped. The second call below
# finds all fits in this folder. `brainlsap run` always stores them in `private/folds`
# of the results.

# %%
seconds = {}
for name in ("first", "again"):
    start = time.perf_counter()
    local = cross_validate({"LSAP-C": model}, cohort, memory="fits", **settings)
    seconds[name] = time.perf_counter() - start
print({name: round(value, 2) for name, value in seconds.items()})
n_kept = len(list(Path("fits").rglob("*.*")))
assert n_kept == 3  # folds
assert seconds["again"] < seconds["first"]

# %% [markdown]
# A changed setting changes the file name, so only fits with the changed setting are
# computed.

# %%
models = {"LSAP-C": model, "3 epochs": clone(model).set_params(n_epochs=3)}
cross_validate(models, cohort, memory="fits", **settings)
n_kept_after = len(list(Path("fits").rglob("*.*")))
print(f"{n_kept} fits kept before, {n_kept_after} after")
assert n_kept_after == n_kept + 3

# %% [markdown]
# ## Run on a cluster
#
# Install Dask with `pip install distributed`. `joblib.parallel_config("dask")` sends
# the fits to the cluster of the current `Client`. For your cluster, replace
# `SubprocessCluster` by the address of its scheduler: `Client("tcp://ADDRESS:8786")`.
# The page "Command line" of the documentation has a job of Slurm that starts a
# scheduler and workers. The log of the scheduler shows whether the fits reached the
# workers. Each task is one fit, or all fits of a fold that share a ridge model. Use at
# least two workers, because joblib does not send fits to a single worker.


# %%
def count_finished(dask_scheduler):
    """Return the number of tasks that workers have finished."""
    log = dask_scheduler.transition_log
    return len({transition.key for transition in log if transition.finish == "memory"})


with (
    SubprocessCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster,
    Client(cluster) as client,
):
    client.wait_for_workers(2)
    with joblib.parallel_config("dask"):
        remote = cross_validate({"LSAP-C": model}, cohort, **settings)
    n_finished = client.run_on_scheduler(count_finished)
    n_processes = len({*client.run(os.getpid).values(), os.getpid()})
print(
    f"{n_finished} tasks finished by 2 workers; {n_processes} processes with this one"
)
assert n_finished == 3  # folds
assert n_processes == 3
print("identical predictions:", local.predictions.equals(remote.predictions))
print("identical scales:", local.scales.equals(remote.scales))
assert local.predictions.equals(remote.predictions)
assert local.scales.equals(remote.scales)

# %% [markdown]
# ## Run a whole study
#
# `run_study` works in the same way: inside `joblib.parallel_config("dask")`, its fits,
# the tables of the whole cohort and the figures of its report are tasks of the cluster.
# Joblib stores the cohort on one worker, and other workers fetch it from there, so the
# cohort leaves this process twice: once for all fits and once for all tables.
#
# We ran a study of 5,000 simulated people (138 MB, 82 regions) in one process and on 2
# workers, with LSAP-C of 2 epochs, 3 folds, and fewer divisions into halves than by
# default. The scheduler counted 9 finished tasks: 3 fits, 5 tables and the figures. The
# cohort was pickled twice. Predictions, scales and tests were identical, and so was the
# report, except for the random codes of scans.

# %%
fig, ax = plt.subplots(figsize=(4, 3), layout="constrained")
ax.bar(list(seconds), list(seconds.values()), color="0.6")
ax.set(ylabel="seconds", title="The same call, twice")
fig.savefig(figures / "12_seconds.png", dpi=110)

# %% [markdown]
# ## What this does not show
#
# - The speed of a cluster. Starting two processes takes longer than these fits. A
#   cluster is useful if a single fit takes minutes.
# - Identical results on different machines. On one machine, results do not depend on
#   the number of processes. Results on other processors can differ in the last digits.
# - The privacy of the folder of fits. It names people, so keep it as private as the
#   data.
