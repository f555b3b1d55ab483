from types import SimpleNamespace

import numpy as np
import pytest

from brainlsap.data import make_cohort
from brainlsap.exceptions import ParameterError
from brainlsap.model import LSAPClassifier
from brainlsap.report import plot_trajectories
from brainlsap.study import scale_history


def test_the_history_of_a_fit_can_be_drawn():
    cohort = make_cohort(20, atlas="desikan82", random_state=0)
    model = LSAPClassifier(n_starts=2, n_epochs=6, random_state=0)
    model.fit(cohort.to_array(), cohort.y, groups=cohort.groups)
    told = scale_history(model, cohort.region_names)
    assert list(told.columns) == list(cohort.region_names)
    assert told.index[0] == min(one.epoch[0] for one in model.history_)
    first = np.mean([one.scales[0] for one in model.history_], axis=0)
    last = np.mean([one.scales[-1] for one in model.history_], axis=0)
    np.testing.assert_allclose(told.iloc[0], first, rtol=1e-6)
    np.testing.assert_allclose(told.iloc[-1], last, rtol=1e-6)
    ax = plot_trajectories(told.to_numpy(), told.index, told.columns, highlight=2)
    assert len(ax.lines) == len(cohort.region_names)


def test_what_has_no_history_is_refused():
    with pytest.raises(ParameterError, match=r"SimpleNamespace has no history"):
        scale_history(SimpleNamespace(), ["a"])
    model = SimpleNamespace(history_=[SimpleNamespace(epoch=[0], scales=[[1.0, 2.0]])])
    with pytest.raises(ParameterError, match=r"has 2 regions, region_names 1"):
        scale_history(model, ["a"])
