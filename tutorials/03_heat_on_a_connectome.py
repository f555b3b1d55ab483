# %% [markdown]
# # Spread heat on a connectome
#
# How does a diffusion scale change the values of a region, and how exact is the
# computation? The models of this package average each region with its neighbours by a
# heat kernel. This page shows the kernel of one simulated person. No model is trained.
#
# **What comes out.** At scale 0.5, the left hippocampus keeps 61 % of its own value. At
# scale 2, it keeps only 17 %. The package has three polynomial expansions of the
# kernel. By default, each expansion differs from the exact kernel by less than 0.0001.
# An expansion of fixed degree has this accuracy only up to a largest scale. This scale
# is 9.5 for Chebyshev of degree 12, 3.1 for Hermite of degree 30, and 1.6 for Laguerre
# of degree 20. If the error bound of a kernel is above 0.01, an error is raised.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from brainlsap import heat_kernel, make_cohort, plot_regions
from brainlsap.exceptions import ParameterError
from brainlsap.graph import (
    choose_degree,
    error_bound,
    exact_heat_kernel,
    largest_scale,
    normalized_laplacian,
)

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## Compute the Laplacian
#
# The connectome has 82 regions and streamline counts. The normalised Laplacian divides
# each weight by the strengths of its two regions. The eigenvalues of the normalised
# Laplacian lie between 0 and 2. The expansions below need this property.

# %%
cohort = make_cohort(8, atlas="desikan82", random_state=0)
L = normalized_laplacian(torch.tensor(cohort.connectomes[0], dtype=torch.float64))
eigenvalues = torch.linalg.eigvalsh(L)
print(f"{len(L)} regions, spectrum {eigenvalues[0]:.3f} to {eigenvalues[-1]:.3f}")

# %% [markdown]
# ## Change the scale
#
# Row p of the kernel contains the weights of all regions in the new value of region p.
# At scale 0, the region keeps its own value. As the scale increases, first the
# neighbours of the region get more weight, and then the neighbours of these neighbours.

# %%
hippocampus = cohort.region_names.index("Left-Hippocampus")
own_weight = {}
for scale in (0.0, 0.5, 1.0, 2.0, 5.0):
    row = exact_heat_kernel(L, scale)[hippocampus]
    own_weight[scale] = float(row[hippocampus])
    print(f"s = {scale}: keeps {own_weight[scale]:.3f} of its own value")
assert abs(own_weight[0.5] - 0.61) < 0.01
assert abs(own_weight[2.0] - 0.17) < 0.01

# %% [markdown]
# Every region can have its own scale. Here only the hippocampus has a scale above 0.
# Therefore only its row of the kernel differs from the same row of an identity matrix,
# and the kernel is not symmetric.

# %%
scales = torch.zeros(len(L), dtype=torch.float64)
scales[hippocampus] = 2.0
kernel = exact_heat_kernel(L, scales)
print("symmetric:", bool(torch.allclose(kernel, kernel.T)))
identity = torch.eye(len(L), dtype=torch.float64)
print("another row is the identity's:", bool(torch.allclose(kernel[0], identity[0])))
assert not torch.allclose(kernel, kernel.T)
assert torch.allclose(kernel[0], identity[0])

# %% [markdown]
# The figure shows this row on the brain. The hippocampus has by far the largest weight.
# The figure shows the hippocampus in grey, so that the other weights are visible.

# %%
row = pd.Series(kernel[hippocampus].numpy(), cohort.region_names)
row["Left-Hippocampus"] = np.nan
print(row.nlargest(3).round(3).to_string())
figure = plot_regions(
    row,
    cohort.atlas,
    views=["lateral left", "medial left", "subcortex"],
    title="Left hippocampus, scale 2",
    colorbar_label="weight in the heat kernel",
)
figure.savefig(figures / "03_kernel_row.png", dpi=110)

# %% [markdown]
# ## Compare four ways of computing the kernel
#
# The exact kernel needs eigenvectors. Three polynomial expansions do not need
# eigenvectors and give the same kernel if their degree is high enough. By default the
# degree is chosen so that the error is below 1e-4.

# %%
truth = exact_heat_kernel(L, scales)
for name in ("exact", "chebyshev", "hermite", "laguerre"):
    error = (heat_kernel(L, scales, kernel=name) - truth).abs().max()
    degree = "-" if name == "exact" else choose_degree(name, 2.0)
    print(f"{name}: degree {degree}, largest error {error:.1e}")
    assert error < 1e-4

# %% [markdown]
# With a fixed degree, the error grows with the scale. The package computes an error
# bound for each expansion. In the figure, dots are true errors and lines are bounds.
# The dots are never above their line. Each line crosses 1e-4 at the largest scale for
# which its degree is sufficient.

# %%
grid = np.linspace(0.1, 6, 25)
limit = {}
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, degree in (("chebyshev", 12), ("hermite", 30), ("laguerre", 20)):
    limit[name] = largest_scale(name, degree)
    bounds = [error_bound(name, s, degree, dtype=torch.float64) for s in grid]
    (line,) = ax.semilogy(grid, bounds, label=f"{name}, degree {degree}: bound")
    errors = []
    for s in grid[::4]:
        try:
            approximation = heat_kernel(L, s, kernel=name, degree=degree)
        except ParameterError:
            break
        errors.append(float((approximation - exact_heat_kernel(L, s)).abs().max()))
        assert errors[-1] <= error_bound(name, s, degree, dtype=torch.float64) + 1e-12
    ax.plot(grid[::4][: len(errors)], errors, "o", color=line.get_color())
    print(f"{name}, degree {degree}: within 1e-4 up to s = {limit[name]:.2f}")
ax.axhline(1e-4, color="0.5", linestyle=":")
ax.set(xlabel="scale", ylabel="error of the kernel", ylim=(1e-17, 1e3))
ax.legend(title="line: bound; dot: true error")
fig.savefig(figures / "03_error.png", dpi=110)
assert abs(limit["chebyshev"] - 9.5) < 0.05
assert abs(limit["hermite"] - 3.1) < 0.1
assert abs(limit["laguerre"] - 1.6) < 0.05

# %% [markdown]
# If the error bound of a kernel is above 0.01, an error is raised. Here the bound is 75
# million.

# %%
try:
    heat_kernel(L, 6.0, kernel="hermite", degree=30)
    raise AssertionError("a kernel far beyond its limit was returned")
except ParameterError as error:
    print(error)

# %% [markdown]
# ## Differentiate the kernel
#
# A model learns the scales by gradients. The kernel therefore has a derivative with
# respect to every scale. Here the loss is an arbitrary example: the variance of the
# averaged values.

# %%
scale = torch.full((len(L),), 1.0, dtype=torch.float64, requires_grad=True)
features = torch.tensor(cohort.features[0, :, 0])
loss = (heat_kernel(L, scale) @ features).var()
loss.backward()
print("gradient:", scale.grad.shape, "finite:", bool(scale.grad.isfinite().all()))
assert scale.grad.isfinite().all()

# %% [markdown]
# ## What this does not show
#
# - Whether disease, blood or information spreads in a brain as heat does. The heat
#   kernel is only a method to average over a network.
# - The effect of the same scale on another network. On a dense network, scale 2 gives
#   nearly the mean over the whole brain.
# - Errors of a model's scores. The errors here are errors of the kernel. The scores of
#   a model change much less than the kernel.
