# %% [markdown]
# # Classify the nodes of a graph
#
# How well does the method classify the nodes of one graph? In this task, a few nodes
# have labels, and the model predicts the classes of the other nodes. The published
# graphs are citations between papers. Here the graph is simulated, so no download is
# needed. `load_nodes("cora", "FOLDER")` reads a published graph.
#
# **What comes out.** With 15 labelled nodes of 300 and three classes, LSAP-C classifies
# 62 % of the test nodes correctly (mean of 3 seeds). A perceptron without the graph
# classifies 41 % correctly. If the labels of the test nodes are replaced by random
# labels, all scales stay the same. The fit therefore does not use the labels of the
# test nodes.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

from brainlsap import LSAPNodeClassifier
from brainlsap.nodes import NodeGraph, run_nodes, split_per_class, summarize_nodes

figures = Path("figures")
figures.mkdir(exist_ok=True)

# %% [markdown]
# ## Simulate a graph
#
# 300 nodes belong to three classes. Links are five times as likely within a class as
# between classes. The features are words. Each class has its own third of the words,
# which are more frequent in this class.

# %%
rng = np.random.default_rng(0)
labels = np.repeat([0, 1, 2], 100)
link_probability = np.where(labels[:, None] == labels, 0.03, 0.006)
upper = np.triu(rng.random((300, 300)) < link_probability, 1)
adjacency = sparse.csr_array((upper | upper.T).astype(np.float32))
topic = np.arange(60) // 20 == labels[:, None]
words = (rng.random((300, 60)) < np.where(topic, 0.08, 0.04)).astype(np.float32)
split = split_per_class(labels, 5, 60, 180, random_state=0)
words = sparse.csr_array(words)
graph = NodeGraph("simulated", adjacency, words, labels, public_split=split)
print(graph.n_nodes, "nodes,", graph.n_edges, "edges; split", split.sizes)

# %% [markdown]
# ## Fit one model and check for leakage
#
# The model is trained with 15 labels. In this task, the labels of the test nodes can
# easily be used by mistake, because all nodes are in one graph. As a check, the same
# model is fitted again with random labels of the test nodes. Its scales must not
# change.

# %%
# Few epochs, so that this runs in seconds. Leave n_epochs out in a study.
model = LSAPNodeClassifier(n_epochs=40, random_state=0)
model.fit(graph, split.train, split.validation)
print(f"accuracy on test nodes: {model.score(graph, split.test):.3f}")
low, high = model.scale_.min(), model.scale_.max()
print(f"{len(model.scale_)} scales, {low:.2f} to {high:.2f}")

shuffled = np.where(split.test, rng.permutation(labels), labels)
shuffled_graph = NodeGraph("simulated", adjacency, words, shuffled)
refitted = LSAPNodeClassifier(n_epochs=40, random_state=0)
refitted.fit(shuffled_graph, split.train, split.validation)
is_unchanged = np.allclose(model.scale_, refitted.scale_)
print("same scales with random test labels:", is_unchanged)
assert is_unchanged

# %% [markdown]
# ## Compare models over seeds
#
# A fit depends on its random initial weights. The comparison therefore uses several
# seeds. A model without the graph (`mlp`) shows how much the graph improves the
# accuracy. `brainlsap nodes cora --models lsap-c,gcn --seeds 10` makes such a
# comparison for a published graph.

# %%
# Few seeds and epochs, so that this runs in seconds. Leave both out in a study.
runs = run_nodes(graph, ["lsap-c", "mlp"], n_seeds=3, n_epochs=40)
print(summarize_nodes(runs).round(1).to_string(index=False))
accuracy = runs.groupby("model")["test"].mean()
assert abs(accuracy["LSAP-C"] - 62) < 4
assert abs(accuracy["MLP"] - 41) < 4

# %%
fig, ax = plt.subplots(figsize=(4.5, 3.5), layout="constrained")
for position, (name, runs_of_model) in enumerate(runs.groupby("model", sort=False)):
    ax.plot([position] * len(runs_of_model), runs_of_model["test"], "o", label=name)
ax.set(ylabel="accuracy on test nodes (%)", xticks=[], xlim=(-0.5, 1.5), ylim=(0, 100))
ax.legend()
fig.savefig(figures / "11_accuracy.png", dpi=110)

# %% [markdown]
# ## What this does not show
#
# - The accuracy on real graphs. This graph has more links within classes, which favours
#   every method that averages over neighbours.
# - A reliable choice of settings. With few validation nodes, the choice depends on
#   chance.
# - Why published accuracies are higher. The use of test labels in the update of the
#   scales may be one reason; see *Reproduction* in the documentation.
