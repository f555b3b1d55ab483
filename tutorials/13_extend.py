# %% [markdown]
# # Add an atlas, a reader, a kernel and a model
#
# How can a laboratory use its own atlas, file format, heat kernel or classifier with
# this package? An atlas is a folder, a reader is one entry in a table, and a model is
# any scikit-learn classifier. These three do not need a change of the package. Only a
# kernel for the LSAP models needs one more line in the package.
#
# **What comes out.** A new reader returns the weights of a list of edges in the order
# of a new atlas. The error of a new kernel, Taylor's series, stays below its bound up
# to degree 24. Above this degree, only rounding errors of about 1e-15 remain. A new
# model is evaluated on the folds of the package. Its balanced accuracy of 0.14 on 24
# simulated people is not above chance (0.20).

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

from brainlsap import (
    cross_validate,
    load_atlas,
    make_cohort,
    score_table,
)
from brainlsap.data import FORMATS, read_connectome
from brainlsap.data.connectomes import MatrixFormat, RawMatrix
from brainlsap.evaluation import make_models
from brainlsap.graph import EXPANSIONS, normalized_laplacian, polynomial_values
from brainlsap.graph.kernels import Expansion

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## Add an atlas
#
# An atlas is a folder with `regions.tsv`. Its columns `name` and `hemisphere` are
# required; lobes and positions are optional. Tutorial 02 adds the files for drawing.
# `match` identifies regions by name in the usual spellings.

# %%
folder = Path("small_atlas")
folder.mkdir(exist_ok=True)
names = ["lh_precuneus", "lh_cuneus", "rh_precuneus", "rh_cuneus"]
pd.DataFrame({"name": names, "hemisphere": list("LLRR")}).to_csv(
    folder / "regions.tsv", sep="\t", index=False
)
atlas = load_atlas(folder)
print(len(atlas), "regions;", atlas.match(["ctx-rh-cuneus", "lh.precuneus"]))

# %% [markdown]
# ## Add a reader
#
# `FORMATS` maps the suffix of a file name to a format. The function of a format returns
# the matrices of a file with the names of their rows and columns. The package then
# sorts regions into the order of the atlas and checks the values. The format here is a
# list of edges. The reader returns names from the file and never guesses them.


# %%
def read_edges(path):
    """Read lines of two region names and a weight."""
    edges = pd.read_csv(path, sep=" ", names=["source", "target", "weight"])
    names = tuple(sorted(set(edges["source"]) | set(edges["target"])))
    index = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)))
    for source, target, weight in edges.itertuples(index=False):
        matrix[index[source], index[target]] = weight
        matrix[index[target], index[source]] = weight
    return [RawMatrix(matrix, names, names)]


FORMATS[".edges"] = MatrixFormat(read_edges)
Path("sub-01.edges").write_text(
    "rh_cuneus lh_cuneus 12\nlh_precuneus rh_precuneus 30\nlh_cuneus lh_precuneus 7\n"
)
connectome = read_connectome("sub-01.edges", atlas)
weights = pd.DataFrame(connectome.matrix, names, names)
print(weights.to_string())
assert weights.loc["lh_cuneus", "rh_cuneus"] == 12
assert weights.loc["lh_precuneus", "rh_precuneus"] == 30
assert weights.loc["lh_precuneus", "lh_cuneus"] == 7

# %% [markdown]
# ## Add a kernel
#
# An expansion needs three functions and a limit:
#
# - the coefficients with their derivatives,
# - the recurrence of the polynomials,
# - the logarithm of a bound on the error of a truncated series,
# - the largest scale at which rounding errors stay small, for each precision.
#
# Taylor's series is the simplest: `c_n = (-s)^n / n!` and `P_n = L^n`.


# %%
def taylor_coefficients(scale, degree):
    """Return (-s)^n / n! and its derivative, for n = 0 to degree."""
    n = torch.arange(degree + 1, dtype=torch.float64)
    s = scale.double()[:, None]
    c = (-s) ** n / torch.exp(torch.lgamma(n + 1))
    dc = torch.cat([torch.zeros_like(s), -c[:, :-1]], dim=1)
    return c, dc


def taylor_recurrence(degree):
    """Return P_{n+1} = L P_n."""
    return np.ones(degree), np.zeros(degree), np.zeros(degree)


def taylor_log_tail(scale, degree):
    """Return the log of Lagrange's remainder, (2 s)^(m+1) / (m+1)!."""
    m = degree + 1
    return m * np.log(max(2 * scale, 1e-300)) - float(
        torch.lgamma(torch.tensor(m + 1.0, dtype=torch.float64))
    )


taylor = Expansion(
    "Taylor",
    taylor_coefficients,
    taylor_recurrence,
    taylor_log_tail,
    {torch.float32: 2.0, torch.float64: 6.0},
)

# %% [markdown]
# First compare a new kernel with the exact kernel. On the eigenvalues of a Laplacian
# the kernel must equal `exp(-s * eigenvalue)`, and the error must stay below the bound.
# From degree 26 on, only rounding errors remain.

# %%
cohort = make_cohort(24, atlas="desikan82", random_state=0)
L = normalized_laplacian(torch.tensor(cohort.connectomes[0], dtype=torch.float64))
eigenvalues = torch.linalg.eigvalsh(L).clamp(min=0)
scale = torch.tensor([2.0], dtype=torch.float64)
exact = torch.exp(-2.0 * eigenvalues)
degrees = np.arange(2, 31, 2)
errors, bounds = [], []
for degree in degrees:
    c, _ = taylor.coefficients(scale, int(degree))
    approximation = c[0] @ polynomial_values(taylor, eigenvalues, int(degree))
    errors.append(float((approximation - exact).abs().max()))
    bounds.append(np.exp(taylor.log_tail(2.0, int(degree))))
errors, bounds = np.array(errors), np.array(bounds)
bound_holds = bool((errors <= bounds + 1e-14).all())
print("bound holds:", bound_holds)
assert bound_holds  # except for rounding errors
assert (errors <= bounds)[degrees <= 24].all()
assert (errors[degrees > 24] < 1e-14).all()

fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.semilogy(degrees, bounds, label="bound")
ax.semilogy(degrees, errors, "o", label="true error")
ax.set(xlabel="degree", ylabel="error at s = 2", title="Taylor's series as a kernel")
ax.legend()
fig.savefig(figures / "13_taylor.png", dpi=110)

# %% [markdown]
# To use the kernel in a model as `kernel="taylor"`, add it to `EXPANSIONS` in
# `brainlsap/graph/kernels.py`. The tests of the package run over all entries.

# %%
print("expansions of the package:", *EXPANSIONS)

# %% [markdown]
# ## Add a model
#
# Any scikit-learn classifier of the array of connectomes and features can be used with
# the same folds, audit and tables. The example uses only the strength of each region,
# that is, the sum of its connection weights.


# %%
class StrengthClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression on the log of each region's strength."""

    def fit(self, X, y):
        """Fit to connectomes alone."""
        self.logistic_ = LogisticRegression(max_iter=500).fit(self._strength(X), y)
        self.classes_ = self.logistic_.classes_
        return self

    def predict_proba(self, X):
        """Return probabilities of the classes."""
        return self.logistic_.predict_proba(self._strength(X))

    def predict(self, X):
        """Return the most likely class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _strength(self, X):
        strength = np.log1p(X[:, :, : X.shape[1]].sum(axis=2))
        return strength - strength.mean(axis=1, keepdims=True)


models = {"strength": StrengthClassifier(), **make_models("logistic regression")}
# 3 folds and one baseline, so that this runs in seconds. Leave cv and baselines out in
# a study.
evaluation = cross_validate(models, cohort, cv=3, baselines=False)
print(score_table(evaluation).to_string(index=False))
mean = evaluation.scores().groupby("model")["balanced_accuracy"].mean()
assert abs(mean["strength"] - 0.14) < 0.05

# %% [markdown]
# ## What this does not show
#
# - Whether a new kernel gives better scores. All expansions compute the same heat
#   kernel.
# - Whether a reader is correct. Test it on a file with known values, as above, and on a
#   file with another order of regions.
# - Whether the strength of regions contains information about a disease. Here the
#   simulated disease does not change connectomes. In real data, strengths also depend
#   on the scanner.
