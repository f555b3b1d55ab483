# %% [markdown]
# # Extend: a kernel, a reader, an atlas, a model
#
# What a laboratory has that nobody else has. Each of these is an entry, a folder or a
# class; only a kernel that a model is to use needs a line in the package.

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
# ## An atlas
#
# A folder with `regions.tsv`: at least `name` and `hemisphere`; more columns for lobes
# and positions. (For drawing, annotations on fsaverage5: see *Rank regions and draw
# them on the brain*.) Names are found in any of the usual spellings.

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
# ## A reader
#
# `FORMATS` maps an ending to a format: its function returns the matrices of a file,
# with their names. The package does the rest: order, one triangle, checks. Here a list
# of edges.


# %%
def read_edges(path):
    """Read `one two weight` on each line."""
    edges = pd.read_csv(path, sep=" ", names=["one", "two", "weight"])
    found = tuple(sorted(set(edges["one"]) | set(edges["two"])))
    place = {name: number for number, name in enumerate(found)}
    matrix = np.zeros((len(found), len(found)))
    for one, two, weight in edges.itertuples(index=False):
        matrix[place[one], place[two]] = matrix[place[two], place[one]] = weight
    return [RawMatrix(matrix, found, found)]


FORMATS[".edges"] = MatrixFormat(read_edges)
Path("sub-01.edges").write_text(
    "rh_cuneus lh_cuneus 12\nlh_precuneus rh_precuneus 30\nlh_cuneus lh_precuneus 7\n"
)
read = read_connectome("sub-01.edges", atlas)
read_matrix = pd.DataFrame(read.matrix, names, names)
print(read_matrix.to_string())
assert read_matrix.loc["lh_cuneus", "rh_cuneus"] == 12

# %% [markdown]
# ## A kernel
#
# An expansion is three functions: coefficients with their derivatives, the recurrence
# of its polynomials, and a bound on what is left out; and the largest scales at which
# rounding leaves its recurrence usable. Taylor's series is the simplest:
# `c_n = (-s)^n / n!` and `P_n = L^n`.


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
# Hold it against the truth before anything else, and against the bound: on the
# eigenvalues of a person's Laplacian the kernel must be `exp(-s * eigenvalue)`.

# %%
cohort = make_cohort(24, atlas="desikan82", random_state=0)
L = normalized_laplacian(torch.tensor(cohort.connectomes[0], dtype=torch.float64))
eigenvalues = torch.linalg.eigvalsh(L).clamp(min=0)
scale = torch.tensor([2.0], dtype=torch.float64)
degrees, found, bounds = range(2, 31, 2), [], []
for degree in degrees:
    c, _ = taylor.coefficients(scale, degree)
    made = c[0] @ polynomial_values(taylor, eigenvalues, degree)
    found.append(float((made - torch.exp(-2.0 * eigenvalues)).abs().max()))
    bounds.append(np.exp(taylor.log_tail(2.0, degree)))
bound_holds = all(f <= b + 1e-12 for f, b in zip(found, bounds, strict=True))
print("bound holds:", bound_holds)
assert bound_holds

fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.semilogy(degrees, bounds, label="bound")
ax.semilogy(degrees, found, "o", label="error found")
ax.set(xlabel="degree", ylabel="error at s = 2", title="Taylor's series as a kernel")
ax.legend()
fig.savefig(figures / "13_taylor.png", dpi=110)

# %% [markdown]
# In the package it would be one entry of `EXPANSIONS` in `brainlsap/graph/kernels.py`,
# which is where `kernel="taylor"` is looked up; its tests run over all entries. (Up to
# rounding the bound holds: below 1e-14 only rounding is left.)

# %%
print("there are:", *EXPANSIONS)

# %% [markdown]
# ## A model
#
# Any scikit-learn classifier over the packed array goes through the same folds, audit
# and tables. This one looks at nothing but each region's strength.


# %%
class StrengthClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression on the log of each region's strength."""

    def fit(self, X, y):
        """Fit to connectomes alone."""
        self.inner_ = LogisticRegression(max_iter=500).fit(self._strength(X), y)
        self.classes_ = self.inner_.classes_
        return self

    def predict_proba(self, X):
        """Return probabilities of the classes."""
        return self.inner_.predict_proba(self._strength(X))

    def predict(self, X):
        """Return the likeliest class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _strength(self, X):
        strength = np.log1p(X[:, :, : X.shape[1]].sum(axis=2))
        return strength - strength.mean(axis=1, keepdims=True)


models = {"strength": StrengthClassifier(), **make_models("logistic regression")}
evaluation = cross_validate(models, cohort, cv=3, baselines=False)
print(score_table(evaluation).to_string(index=False))

# %% [markdown]
# ## What this does not show
#
# - That a new kernel is better: all are ways to the same heat kernel, and at equal
#   error they score alike.
# - A reader that guesses names is worse than none: regions must be said, not counted.
# - The model above reads counts of streamlines, which follow the scanner as much as the
#   brain.
