"""One training epoch: our engines, the released code's manner, and the floor.

Every row is measured in one run on this machine, so only ratios travel. The floor is
five batched products of (160, 160) by (160, 16) for every subject, which two layers
need at least: of 16 matrices that stay in cache (the old floor), or of every subject's
own eigenvectors as they stream from memory. The default's layer is held against its own
products. Times are the processor's; epoch and floor are timed in turn, and their ratio
is the median of the pairs'. Memory is the peak of preparing and training above the
graphs, in a process of its own, ours the median of three (allocators differ by 10 MB);
our eigenvectors take the place of the Laplacians, which are needed for nothing else
(the dense networks need theirs to the end). `--figure` draws computation time as the
paper does.

    python benchmarks/epoch.py [--graphs 600] [--growth] [--figure] [--long]
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
import torch
from dense_reference import DenseNetwork, dense_epoch
from measuring import RESULTS, forget_peak, keep, peak, resident, table
from measuring import beside as beside_wall

from brainlsap.graph import KERNELS, decompose, diffuse_recurrence, normalized_laplacian
from brainlsap.graph.laplacian import Spectrum
from brainlsap.graph.spectral import ChebyshevSeries, GraphBatch
from brainlsap.model.network import GraphNetwork
from brainlsap.model.settings import Settings, resolve_kernel_settings, resolve_settings
from brainlsap.model.training import make_epoch_function

N_ROIS, HIDDEN, N_CLASSES = 160, 16, 5
# of the processor: what else the machine does then counts least
beside = partial(beside_wall, clock=time.process_time)
DEGREES = {"exact": None, "chebyshev": 20, "hermite": 30, "laguerre": 20}
NAMES = {
    "exact": "Exact",
    "chebyshev": "LSAP-C",
    "hermite": "LSAP-H",
    "laguerre": "LSAP-L",
}
# A dense implementation slower than this many floors would flatter the ratio.
FAIR = {"exact": 85, "chebyshev": 150, "hermite": 150, "laguerre": 90}


def draw(n_graphs: int, n_rois: int = N_ROIS) -> tuple[torch.Tensor, ...]:
    """Return Laplacians, features and labels of weighted graphs of density 0.2."""
    rng = np.random.default_rng(0)
    L = torch.empty(n_graphs, n_rois, n_rois)
    for start in range(0, n_graphs, 50):
        part = L[start : start + 50]
        W = np.triu(rng.gamma(0.3, 40.0, part.shape), 1)
        W = np.where(W > 10, W, 0.0).astype(np.float32)
        part[:] = normalized_laplacian(W + W.swapaxes(1, 2))
    X = torch.from_numpy(rng.normal(size=(n_graphs, n_rois, 1))).float()
    return L, X, torch.from_numpy(rng.integers(0, N_CLASSES, n_graphs))


def floor(
    n_graphs: int, n_rois: int = N_ROIS, streamed: bool = False
) -> Callable[[], None]:
    """Return the yardstick: the products alone, of matrices in cache or streamed."""
    rounds = int(np.ceil(n_graphs / 16))
    square = torch.randn(16 * rounds if streamed else 16, n_rois, n_rois)
    thin = torch.randn(16, n_rois, HIDDEN)
    out = torch.empty(16, n_rois, HIDDEN)

    def call() -> None:
        for _ in range(5):
            for number in range(rounds):
                start = 16 * number if streamed else 0
                torch.bmm(square[start : start + 16], thin, out=out)

    return call


def own_products(n_scans: int, n_rois: int = N_ROIS) -> Callable[[], None]:
    """Return the products that the default's epoch cannot do without, each way."""
    settings = resolve_settings("default", {})
    units, read = settings.hidden_units, settings.readout_units
    Z, mix = torch.randn(n_scans * n_rois, 1), torch.randn(units, 1)
    H, weights = torch.randn(n_scans, n_rois * units), torch.randn(read, n_rois * units)
    slope = torch.randn(n_scans, read)

    def call() -> None:
        Z @ mix.mT, H @ weights.mT
        slope @ weights, slope.mT @ H
        flat = H.view(-1, units)
        flat @ mix, Z.mT @ flat

    return call


def default_epoch(n_scans: int, repeats: int) -> str:
    """Time an epoch of the default: one layer, eight units, dropout 0.3."""
    given = {"start": "constant"}
    settings = resolve_kernel_settings(resolve_settings("default", given))
    _, _, epoch = prepare(settings, draw(n_scans))
    yard = own_products(n_scans)

    def many(call: Callable[[], object]) -> None:
        for _ in range(20):
            call()

    # two milliseconds of products are too few to time
    took, ratio = beside(partial(many, epoch), partial(many, yard), repeats)
    return (
        f"The default, K = 1, {n_scans} scans: {1e3 * took / 20:.1f} ms, {ratio:.1f} "
        "times its own products.\n"
    )


def settings_of(kernel: str, **changed: object) -> Settings:
    given = {"kernel": kernel, "degree": DEGREES[kernel], **changed}
    return resolve_kernel_settings(resolve_settings("paper", given))


def prepare(
    settings: Settings, data: tuple[torch.Tensor, ...], overwrite: bool = False
) -> tuple[GraphNetwork, GraphBatch, Callable[[], float]]:
    """Return network, batch, and the function that takes an epoch."""
    L, X, codes = data
    values, vectors = [], L if overwrite else L.clone()
    for some in vectors.split(16):  # eigenvectors in the place of Laplacians
        part = decompose(some, X.dtype)
        values.append(part.eigenvalues)
        some.copy_(part.eigenvectors)
    spectrum = Spectrum(torch.cat(values), vectors)
    series = ChebyshevSeries(
        settings.kernel, settings.degree, settings.max_scale or 0.0
    )
    keep_graphs = settings.n_layers > 1
    batch = GraphBatch(series, [spectrum], X, stores_graphs=keep_graphs)
    torch.manual_seed(0)
    measured = torch.ones(X.shape[1], dtype=torch.bool)
    given = settings, measured, settings.initial_scale
    network = GraphNetwork(X.shape[1], 1, N_CLASSES, *given)
    return network, batch, make_epoch_function(network, (batch, codes), settings)


def kernel_work(network: GraphNetwork, batch: GraphBatch, hidden: int = HIDDEN) -> None:
    """Run the epoch's diffusions alone, forward and backward."""
    scale = network.heat()
    Z = batch.diffuse(scale)
    H = Z.detach().expand(-1, -1, hidden).contiguous().requires_grad_()
    (Z.sum() + batch.diffuse(scale, H).sum()).backward()


def prepare_dense(
    kernel: str, data: tuple[torch.Tensor, ...], way: str = "plain"
) -> Callable[[], float]:
    L, X, codes = data
    torch.manual_seed(0)
    network = DenseNetwork(L, kernel, DEGREES[kernel] or 0, HIDDEN, N_CLASSES, way)
    weights = [p for name, p in network.named_parameters() if name != "scale"]
    adam = torch.optim.Adam(weights, lr=0.01)
    return lambda: dense_epoch(network, X, codes, adam)


def recurrence_epoch(kernel: str, data: tuple[torch.Tensor, ...]) -> float:
    """Return the seconds of diffusing 16 channels by the recurrence engine, scaled up.

    Measured on one graph in a hundred: the engine is for large sparse graphs.
    """
    L, X, _ = data
    some = range(0, len(L), 100)
    scale = torch.full((L.shape[1],), 2.0, requires_grad=True)
    H = X[0].expand(-1, HIDDEN).clone().requires_grad_()
    graphs = [L[k].to_sparse_csr() for k in some]

    def call() -> None:
        for graph in graphs:
            out = diffuse_recurrence(graph, H, scale, kernel, DEGREES[kernel])
            out.sum().backward()

    took, _ = beside(call, lambda: None, 3)
    return took * len(L) / len(graphs)


def speed_table(n_graphs: int, repeats: int) -> str:
    data, yard = draw(n_graphs), floor(n_graphs)
    streamed = floor(n_graphs, streamed=True)
    rows = []
    for kernel in KERNELS:
        network, batch, epoch = prepare(settings_of(kernel), data)
        took, ratio = beside(epoch, yard, repeats)
        new_ratio = beside(epoch, streamed, repeats)[1]
        part, _ = beside(partial(kernel_work, network, batch), yard, repeats)
        del network, batch, epoch
        slow, slow_ratio = beside(prepare_dense(kernel, data), yard, 3)
        careful = "-"
        if kernel != "exact":
            one_pass = prepare_dense(kernel, data, "careful")
            careful = f"{beside(one_pass, yard, 3)[1] / ratio:.1f}"
            del one_pass
        other = "-"
        if kernel != "exact":
            other = f"{1e3 * recurrence_epoch(kernel, data):.0f}"
        fair = "yes" if slow_ratio <= FAIR[kernel] else "no"
        held = [
            peak_in_process(f"{way}:{kernel}:{n_graphs}", n_processes)
            for way, n_processes in (("ours", 3), ("dense", 1))
        ]
        rows.append(
            (NAMES[kernel], f"{took * 1e3:.1f}", f"{ratio:.2f}", f"{new_ratio:.2f}",
             f"{part / took:.0%}",
             other, f"{slow * 1e3:.0f}", f"{slow_ratio:.0f}", fair,
             f"{slow_ratio / ratio:.1f}", careful, f"{held[0]:.2f}", f"{held[1]:.2f}",
             f"{held[1] / held[0]:.1f}")
        )  # fmt: skip
        print(*rows[-1], flush=True)
    head = ("kernel", "epoch ms", "x old floor", "x floor", "kernel share",
            "recurrence ms*",
            "dense ms", "dense x floor", "fair", "dense / ours",
            "one-pass dense / ours", "GB", "dense GB",
            "dense / ours")  # fmt: skip
    said = (
        f"{n_graphs} graphs, {N_ROIS} regions, K = 2, hidden {HIDDEN}, "
        f"{torch.get_num_threads()} threads.\n\n"
    )
    return said + table(head, rows) + "\n\n" + default_epoch(n_graphs, repeats)


def peak_in_process(what: str, n_processes: int) -> float:
    """Return the gigabytes above the data that a fresh process needs, the median."""
    command = [sys.executable, __file__, "--memory-of", what]
    found = []
    for _ in range(n_processes):
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(told.stdout.splitlines()[-1]))
    return median(found)


def memory_of(what: str) -> None:
    way, kernel, n_graphs = what.split(":")
    data = draw(int(n_graphs))

    def work(some: tuple[torch.Tensor, ...]) -> None:
        if way == "ours":
            epoch = prepare(settings_of(kernel), some, overwrite=True)[2]
        else:
            epoch = prepare_dense(kernel, some)
        for _ in range(2):
            epoch()

    work(tuple(part[:8] for part in data))  # loads the libraries
    before = resident()
    forget_peak()
    work(data)
    print(json.dumps((peak() - before) / 1e9))


def growth_table(repeats: int) -> str:
    """Return epoch times for growing people, regions, degree and hidden units."""
    rows = []

    def row(name: str, sizes: list[int], one: Callable[[int], tuple]) -> None:
        times = []
        for size in sizes:
            settings, data = one(size)
            times.append(beside(prepare(settings, data)[2], lambda: None, repeats)[0])
        power = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        told = [
            f"{size}: {1e3 * t:.0f} ms" for size, t in zip(sizes, times, strict=True)
        ]
        rows.append((name, ", ".join(told), f"{power:.2f}"))
        print(*rows[-1], flush=True)

    fixed = settings_of("chebyshev")
    row("people", [150, 300, 600, 1200], lambda n: (fixed, draw(n)))
    row("regions", [40, 80, 160, 320], lambda n: (fixed, draw(300, n)))
    row("degree", [10, 20, 40, 80],
        lambda m: (settings_of("chebyshev", degree=m), draw(300)))  # fmt: skip
    row("hidden units", [8, 16, 32, 64],
        lambda h: (settings_of("chebyshev", hidden_units=h), draw(300)))  # fmt: skip
    said = "LSAP-C; 300 people, 160 regions, degree 20, hidden 16 where not varied.\n\n"
    return said + table(("of", "epoch", "power"), rows)


def draw_figure(n_graphs: int, repeats: int) -> None:
    """Draw time per epoch with the kernel's share, as in the paper's figure."""
    from matplotlib.figure import Figure

    data = draw(n_graphs)
    found = {}
    for kernel in KERNELS:
        network, batch, epoch = prepare(settings_of(kernel), data)
        took, _ = beside(epoch, lambda: None, repeats)
        part, _ = beside(
            lambda n=network, b=batch: kernel_work(n, b), lambda: None, repeats
        )
        dense, _ = beside(prepare_dense(kernel, data), lambda: None, 3)
        found[NAMES[kernel]] = (1e3 * part, 1e3 * (took - part), 1e3 * dense)
    figure = Figure(figsize=(6.3, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    part, rest, dense = np.array(list(found.values())).T
    place = np.arange(len(found))
    left.bar(place, part, color="#2c6fbb", label="heat kernel")
    left.bar(place, rest, bottom=part, color="#c9c9c9", label="the rest")
    left.set_xticks(place, found)
    left.set_ylabel("time per epoch (ms)")
    left.legend(frameon=False, loc="upper center", ncols=2)
    left.set_ylim(0, 1.25 * (part + rest).max())
    right.barh(place[::-1], dense / (part + rest), color="#b5542c")
    right.set_yticks(place[::-1], found)
    right.set_xlabel("dense implementation / ours")
    for one in (left, right):
        one.spines[["top", "right"]].set_visible(False)
    path = RESULTS / "computation_time.png"
    figure.savefig(path, dpi=200)
    print(path)


def long_run() -> str:
    """Time 300 epochs of 5 folds of 1,323 graphs: the size of the paper's cohort."""
    L, X, codes = draw(1323)
    settings = settings_of("chebyshev")
    start = time.perf_counter()
    spectrum = decompose(L, X.dtype)
    series = ChebyshevSeries("chebyshev", 20)
    batch = GraphBatch(series, [spectrum], X, stores_graphs=True)
    for fold in range(5):
        train = torch.arange(1323)[torch.arange(1323) % 5 != fold]
        torch.manual_seed(fold)
        measured = torch.ones(N_ROIS, dtype=torch.bool)
        network = GraphNetwork(N_ROIS, 1, N_CLASSES, settings, measured, 2.0)
        some = (batch.select_items(train), codes[train])
        epoch = make_epoch_function(network, some, settings)
        for _ in range(300):
            epoch()
        print(f"fold {fold}: {time.perf_counter() - start:.0f} s", flush=True)
    took = time.perf_counter() - start
    return (
        "1,323 graphs, 5 folds, 300 epochs, LSAP-C, one seed, no early stop, "
        f"2 threads: {took:.0f} s with decomposing (limit 240 s)."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=600)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    for part in ("growth", "figure", "long"):
        parser.add_argument(f"--{part}", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.memory_of:
        memory_of(options.memory_of)
        return
    title, text = f"{options.graphs} graphs", ""
    if options.growth:
        title, text = "Growth", growth_table(options.repeats)
    elif options.long:
        title, text = "Long run", long_run()
    elif options.figure:
        draw_figure(options.graphs, options.repeats)
        return
    else:
        text = speed_table(options.graphs, options.repeats)
    keep("epoch", title, text)


if __name__ == "__main__":
    main()
