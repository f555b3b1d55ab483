"""The recurrence engine on Pubmed: time and memory of an epoch, and how they grow.

Two heat convolutions (hidden 64, Chebyshev), weights first and then diffusion, one
forward and backward pass over 19,717 nodes; then time against the number of edges
(random graphs) and against the degree, each with the slope of a straight line.

    python benchmarks/recurrence.py [--data ../shared/data/planetoid]
"""

import argparse
import threading
from pathlib import Path

import numpy as np
import torch
from measuring import SHARED, keep, seconds
from scipy import sparse
from torch import nn

from brainlsap.graph import diffuse_recurrence, normalized_laplacian
from brainlsap.nodes import load_nodes

HIDDEN, DEGREE = 64, 20


def read_pubmed(folder: Path) -> sparse.csr_array | None:
    if not (folder / "ind.pubmed.graph").is_file():
        return None
    return load_nodes("pubmed", folder).adjacency


def random_graph(n_nodes: int, n_edges: int) -> sparse.csr_array:
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, n_nodes, (2, n_edges))
    W = sparse.csr_array((np.ones(n_edges), (i, j)), shape=(n_nodes, n_nodes))
    return sparse.csr_array(((W + W.T) > 0).astype(float))


class NodeNetwork(nn.Module):
    """Weights first, then diffusion: the wide input never meets the graph."""

    def __init__(self, L: torch.Tensor, n_inputs: int, n_classes: int, degree: int):
        super().__init__()
        self.L, self.degree = L, degree
        self.scale = nn.Parameter(torch.full((L.shape[0],), 2.0))
        self.first = nn.Linear(n_inputs, HIDDEN)
        self.second = nn.Linear(HIDDEN, n_classes)

    def diffuse(self, H: torch.Tensor) -> torch.Tensor:
        return diffuse_recurrence(self.L, H, self.scale, "chebyshev", self.degree)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.diffuse(self.second(torch.relu(self.diffuse(self.first(X)))))


def peak_above(call) -> float:
    """Return the most memory that `call` holds above the start, in GB."""
    status = Path("/proc/self/status")

    def resident() -> int:
        line = next(x for x in status.read_text().splitlines() if "VmRSS" in x)
        return int(line.split()[1])

    start, peak, done = resident(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.002):
            peak[0] = max(peak[0], resident() - start)

    watcher = threading.Thread(target=watch)
    watcher.start()
    call()
    done.set()
    watcher.join()
    return peak[0] / 1e6


def epoch_time(
    W: sparse.csr_array, degree: int, n_inputs: int = 500, repeats: int = 5
) -> tuple[float, float]:
    """Return the median seconds of an epoch, and gigabytes above the data."""
    torch.manual_seed(0)
    L = normalized_laplacian(sparse.csr_array(W.astype(np.float32)))
    X = torch.rand(W.shape[0], n_inputs)
    labels = torch.randint(0, 3, (W.shape[0],))
    network = NodeNetwork(L, n_inputs, 3, degree)

    def epoch() -> None:
        network.zero_grad()
        nn.functional.cross_entropy(network(X), labels).backward()

    memory = peak_above(epoch)
    return seconds(epoch, repeats), memory


def line(name: str, sizes: list[int], times: list[float]) -> str:
    slope, start = np.polyfit(sizes, times, 1)
    fitted = slope * np.array(sizes) + start
    unexplained = np.var(np.array(times) - fitted) / np.var(times)
    cells = [f"{s}: {t * 1e3:.0f} ms" for s, t in zip(sizes, times, strict=True)]
    return f"{name}: {', '.join(cells)}; straight line R2 = {1 - unexplained:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED / "planetoid")
    options = parser.parse_args()
    torch.set_num_threads(2)
    W = read_pubmed(options.data)
    name = "Pubmed"
    if W is None:
        name, W = "random graph of Pubmed's size", random_graph(19717, 44324)
    took, memory = epoch_time(W, DEGREE)
    edges = [100_000, 200_000, 400_000, 800_000]
    degrees = [5, 10, 20, 40]
    by_edges = [epoch_time(random_graph(19717, m), DEGREE)[0] for m in edges]
    by_degree = [epoch_time(W, degree)[0] for degree in degrees]
    text = "\n".join(
        (
            f"{name}: {W.shape[0]} nodes, {W.nnz // 2} edges, hidden {HIDDEN}, K = 2, "
            f"Chebyshev degree {DEGREE}: {took:.3f} s an epoch (forward and backward), "
            f"{memory:.2f} GB above the data.\n",
            "- " + line("edges", edges, by_edges),
            "- " + line("degree", degrees, by_degree),
        )
    )
    keep("recurrence", "Recurrence engine", text)


if __name__ == "__main__":
    main()
