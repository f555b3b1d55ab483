"""Time of one training epoch: spectral engine, released code's manner, floor.

Prints a table; every row is measured in one run on this machine, so only ratios
travel. The floor is five in-cache batched products of (160, 160) by (160, 16) for
every subject, and the two layers of the model need at least those.

    python benchmarks/epoch.py [--graphs 600] [--repeats 7]
"""

import argparse
import resource
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from dense_reference import DenseNetwork, dense_epoch

from brainlsap.graph import KERNELS, SpectralEngine, decompose, normalized_laplacian
from brainlsap.model import GraphBatch, HeatNetwork, Labelled
from brainlsap.model.settings import resolve_settings, settle_kernel
from brainlsap.model.training import make_epoch

N_ROIS, HIDDEN, N_CLASSES = 160, 16, 5
DEGREES = {"exact": None, "chebyshev": 20, "hermite": 30, "laguerre": 20}
# A dense implementation slower than this many floors would flatter the ratio.
FAIR = {"exact": 85, "chebyshev": 150, "hermite": 150, "laguerre": 90}


def draw(n_graphs: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    W = np.triu(rng.gamma(0.3, 40.0, (n_graphs, N_ROIS, N_ROIS)), 1)
    W = np.where(W > 10, W, 0.0)
    L = normalized_laplacian((W + W.swapaxes(1, 2)).astype(np.float32))
    X = torch.from_numpy(rng.normal(size=(n_graphs, N_ROIS, 1))).float()
    return L, X, torch.from_numpy(rng.integers(0, N_CLASSES, n_graphs))


def seconds(call: Callable[[], object], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return median(times)


def floor(n_graphs: int, repeats: int) -> float:
    square = torch.randn(16, N_ROIS, N_ROIS)
    thin = torch.randn(16, N_ROIS, HIDDEN)
    out = torch.empty(16, N_ROIS, HIDDEN)
    rounds = int(np.ceil(n_graphs / 16))

    def call() -> None:
        for _ in range(5 * rounds):
            torch.bmm(square, thin, out=out)

    return seconds(call, repeats)


def ours(kernel: str, data: tuple, repeats: int) -> tuple[float, float, float]:
    """Return seconds an epoch, seconds to prepare, share of the kernel."""
    L, X, codes = data
    settings = settle_kernel(
        resolve_settings("paper", {"kernel": kernel, "degree": DEGREES[kernel]})
    )
    start = time.perf_counter()
    engine = SpectralEngine(
        decompose(L),
        kernel=kernel,
        degree=settings.degree,
        max_scale=settings.max_scale,
    )
    batch = GraphBatch.build(engine, X)
    prepared = time.perf_counter() - start
    torch.manual_seed(0)
    network = HeatNetwork(
        N_ROIS, 1, N_CLASSES, settings, torch.ones(N_ROIS, dtype=torch.bool)
    )
    epoch = make_epoch(network, Labelled(batch, codes), settings)
    whole = seconds(epoch, repeats)
    kernel_part = seconds(lambda: kernel_work(network, batch), repeats)
    return whole, prepared, kernel_part / whole


def kernel_work(network: HeatNetwork, batch: GraphBatch) -> None:
    """Run the epoch's diffusions alone, forward and backward."""
    scale = network.heat()
    Z = batch.diffuse(scale)
    H = Z.detach().expand(-1, -1, HIDDEN).contiguous().requires_grad_()
    (Z.sum() + batch.engine.diffuse(H, scale).sum()).backward()


def dense(kernel: str, data: tuple, repeats: int) -> tuple[float, float]:
    """Return seconds an epoch, and gigabytes of kept polynomials."""
    L, X, codes = data
    torch.manual_seed(0)
    network = DenseNetwork(L, kernel, DEGREES[kernel] or 0, HIDDEN, N_CLASSES)
    weights = [p for name, p in network.named_parameters() if name != "scale"]
    adam = torch.optim.Adam(weights, lr=0.01)
    took = seconds(lambda: dense_epoch(network, X, codes, adam), repeats)
    stack = network.stack
    return took, 0.0 if stack is None else stack.numel() * 4 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=600)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--skip-dense", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(2)
    data = draw(options.graphs)
    base = floor(options.graphs, options.repeats)
    print(f"{options.graphs} graphs, {N_ROIS} regions, K = 2, hidden {HIDDEN}")
    print(f"floor: {base * 1e3:.1f} ms (5 in-cache batched products a subject)")
    print("| kernel | epoch ms | x floor | kernel share | prepare s | dense ms |"
          " dense x floor | dense / ours | fair |")  # fmt: skip
    print("| --- " * 9 + "|")
    for kernel in KERNELS:
        took, prepared, share = ours(kernel, data, options.repeats)
        row = f"| {kernel} | {took * 1e3:.1f} | {took / base:.1f} | {share:.0%} "
        row += f"| {prepared:.2f} "
        if not options.skip_dense:
            slow, _ = dense(kernel, data, max(2, options.repeats // 3))
            fair = "yes" if slow / base <= FAIR[kernel] else "no"
            row += (
                f"| {slow * 1e3:.0f} | {slow / base:.0f} | {slow / took:.1f} | {fair} "
            )
        print(row + "|", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak resident memory of this process: {peak:.2f} GB")


if __name__ == "__main__":
    main()
