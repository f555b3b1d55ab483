# %% [markdown]
# # Heat on a connectome
#
# What a scale does: heat starts in one region of a network and spreads. Then the four
# ways of computing the kernel, how wrong each can be, and how the package keeps them
# from being wrong silently. No model is trained here.

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
# ## A network and its Laplacian
#
# One simulated person, 82 regions, streamline counts. The normalised Laplacian divides
# by the strength of both regions; its spectrum lies between 0 and 2.

# %%
cohort = make_cohort(8, atlas="desikan82", random_state=0)
L = normalized_laplacian(torch.tensor(cohort.connectomes[0], dtype=torch.float64))
eigenvalues = torch.linalg.eigvalsh(L)
print(f"{len(L)} regions, spectrum {eigenvalues[0]:.3f} to {eigenvalues[-1]:.3f}")

# %% [markdown]
# ## The scale is a kernel width
#
# Row p of the kernel holds the weights by which region p averages the network. At scale
# 0 it keeps its own value; the larger the scale, the more weight its neighbours get,
# and theirs.

# %%
hippocampus = cohort.region_names.index("Left-Hippocampus")
for scale in (0.0, 0.5, 1.0, 2.0, 5.0):
    row = exact_heat_kernel(L, scale)[hippocampus]
    print(f"s = {scale}: keeps {row[hippocampus]:.3f} of its own value")

# %% [markdown]
# Every region has a scale of its own, so the kernel is not symmetric: here only the
# hippocampus is averaged with others, and every other row is that of the identity.

# %%
scales = torch.zeros(len(L), dtype=torch.float64)
scales[hippocampus] = 2.0
kernel = exact_heat_kernel(L, scales)
print("symmetric:", bool(torch.allclose(kernel, kernel.T)))
identity = torch.eye(len(L), dtype=torch.float64)
print("another row, of the identity:", bool(torch.allclose(kernel[0], identity[0])))
assert not torch.allclose(kernel, kernel.T)
assert torch.allclose(kernel[0], identity[0])

# %% [markdown]
# The row on the brain. The region itself has by far the largest weight and is left out
# (grey), so that the others can be seen.

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
# ## Four kernels, one truth
#
# Three expansions and the eigenvectors give the same kernel, as long as their degree is
# high enough. By default the degree is chosen so that the error stays below 1e-4.

# %%
truth = exact_heat_kernel(L, scales)
for name in ("exact", "chebyshev", "hermite", "laguerre"):
    error = (heat_kernel(L, scales, kernel=name) - truth).abs().max()
    degree = "-" if name == "exact" else choose_degree(name, 2.0)
    print(f"{name}: degree {degree}, largest error {error:.1e}")
    assert error < 1e-4

# %% [markdown]
# With a fixed degree the error grows with the scale. The bound is never below the true
# error; where it passes 1e-4 is the largest scale that this degree is trusted with.

# %%
grid = np.linspace(0.1, 6, 25)
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, degree in (("chebyshev", 12), ("hermite", 30), ("laguerre", 20)):
    bounds = [error_bound(name, s, degree, dtype=torch.float64) for s in grid]
    (line,) = ax.semilogy(grid, bounds, label=f"{name}, degree {degree}: bound")
    errors = []
    for s in grid[::4]:
        try:
            made = heat_kernel(L, s, kernel=name, degree=degree)
        except ParameterError:
            break
        errors.append(float((made - exact_heat_kernel(L, s)).abs().max()))
    ax.plot(grid[::4][: len(errors)], errors, "o", color=line.get_color())
    print(f"{name}, degree {degree}: trusted to s = {largest_scale(name, degree):.2f}")
ax.axhline(1e-4, color="0.5", linestyle=":")
ax.set(xlabel="scale", ylabel="error of the kernel", ylim=(1e-17, 1e3))
ax.legend(title="line: bound; dot: error found")
fig.savefig(figures / "03_error.png", dpi=110)

# %% [markdown]
# Beyond that a kernel is refused, not returned.

# %%
try:
    heat_kernel(L, 6.0, kernel="hermite", degree=30)
    raise AssertionError("a kernel that cannot be trusted was returned")
except ParameterError as error:
    print(error)

# %% [markdown]
# ## Differentiable
#
# The kernel can be differentiated with respect to every scale. This is what learns it.

# %%
scale = torch.full((len(L),), 1.0, dtype=torch.float64, requires_grad=True)
features = torch.tensor(cohort.features[0, :, 0])
loss = (heat_kernel(L, scale) @ features).var()
loss.backward()
print("gradient:", scale.grad.shape, "finite:", bool(scale.grad.isfinite().all()))

# %% [markdown]
# ## What this does not show
#
# - Heat is a way to average over a network. Nothing here says that disease, blood or
#   information spreads in a brain as heat does.
# - What a scale means depends on the network: on a dense one, a scale of 2 is nearly
#   the mean over the whole brain.
# - Errors are of the kernel, not of a trained model's scores, which they change far
#   less.
