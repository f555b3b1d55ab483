"""Room 3: packed scans become a fitted classifier."""

from brainlsap.model.baselines import DiffusedLogisticRegression
from brainlsap.model.classifier import LSAPClassifier
from brainlsap.model.layers import HeatScale, Readout, RegionStandardizer
from brainlsap.model.network import GraphBatch, HeatNetwork
from brainlsap.model.network_classifier import NETWORKS, NetworkClassifier
from brainlsap.model.settings import PRESETS, Settings
from brainlsap.model.storage import ModelOrigin, load_model, save_model
from brainlsap.model.training import History, Labelled, TrainedNetwork, train_network
from brainlsap.model.tuning import TunedClassifier, tuned
from brainlsap.model.tuning_spaces import PAPER_HYPERPARAMETERS, SPACES, paper_settings

__all__ = [
    "NETWORKS",
    "PAPER_HYPERPARAMETERS",
    "PRESETS",
    "SPACES",
    "DiffusedLogisticRegression",
    "GraphBatch",
    "HeatNetwork",
    "HeatScale",
    "History",
    "LSAPClassifier",
    "Labelled",
    "ModelOrigin",
    "NetworkClassifier",
    "Readout",
    "RegionStandardizer",
    "Settings",
    "TrainedNetwork",
    "TunedClassifier",
    "load_model",
    "paper_settings",
    "save_model",
    "train_network",
    "tuned",
]
