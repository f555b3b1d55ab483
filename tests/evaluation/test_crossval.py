import json
import warnings

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from brainlsap.evaluation import cross_validate, split_scans_ignoring_people
from brainlsap.evaluation.crossval import summarise_cohort
from brainlsap.exceptions import ParameterError, SplitError


def test_planted_region_is_learned_by_the_model_and_the_baselines(cohort, nearest_mean):
    evaluation = cross_validate({"ours": nearest_mean}, cohort, n_folds=3)
    assert list(evaluation.results) == [
        "ours",
        "majority class",
        "logistic regression",
        "linear SVM",
    ]
    means = evaluation.scores().groupby("model")["balanced_accuracy"].mean()
    assert means["majority class"] == 0.5
    assert means.drop("majority class").min() > 0.9
    assert evaluation.main.name == "ours"
    assert evaluation.best_baseline().name != "majority class"


def test_every_scan_is_tested_once_with_its_own_row(cohort, nearest_mean):
    evaluation = cross_validate(nearest_mean, cohort, n_folds=4, baselines=False)
    told = evaluation.main.predictions()
    assert evaluation.main.name == "NearestMean"
    assert evaluation.best_baseline() is None
    np.testing.assert_array_equal(np.sort(told["row"]), np.arange(cohort.n_scans))
    rows = cohort.table.iloc[told["row"]].reset_index(drop=True)
    np.testing.assert_array_equal(told["scan"], rows["scan"])
    np.testing.assert_array_equal(told["participant"], rows["participant"])
    np.testing.assert_array_equal(told["truth"], rows["label"])


def test_a_fold_can_be_made_by_hand(cohort, nearest_mean):
    evaluation = cross_validate(nearest_mean, cohort, n_folds=3, baselines=False)
    X = cohort.to_array()
    train, test = evaluation.splits[1]
    by_hand = nearest_mean.fit(X[train], cohort.y[train])
    fold = evaluation.main.folds[1]
    # The cohort's order is CN, AD; the model's is sorted.
    np.testing.assert_allclose(
        fold.probability, by_hand.predict_proba(X[test])[:, ::-1]
    )
    np.testing.assert_array_equal(fold.predicted, by_hand.predict(X[test]))
    np.testing.assert_array_equal(fold.scales, by_hand.scales_)
    np.testing.assert_array_equal(fold.scales_start, np.full(7, 2.0))


def test_models_get_groups_and_a_seed_of_their_own_per_fold(cohort, nearest_mean):
    seen = []

    class Spy(type(nearest_mean)):
        def fit(self, X, y, groups=None):
            seen.append((self.random_state, groups))
            return super().fit(X, y, groups)

    evaluation = cross_validate(Spy(), cohort, n_folds=3, baselines=False)
    for (seed, groups), (train, _), fold in zip(
        seen, evaluation.splits, evaluation.main.folds, strict=True
    ):
        np.testing.assert_array_equal(groups, cohort.groups[train])
        assert fold.details["seed"] == seed
    assert len({seed for seed, _ in seen}) == 3
    seen.clear()
    cross_validate(Spy(random_state=8), cohort, n_folds=3, baselines=False)
    assert {seed for seed, _ in seen} == {8}
    assert Spy().random_state is None


def test_details_are_json_and_hold_what_the_model_reports(cohort, nearest_mean):
    class Complains(type(nearest_mean)):
        def fit(self, X, y, groups=None):
            warnings.warn("did not converge", UserWarning, stacklevel=1)
            return super().fit(X, y, groups)

    evaluation = cross_validate(Complains(), cohort, n_folds=2, baselines=False)
    details = json.loads(json.dumps(evaluation.main.folds[0].details))
    assert details["warnings"] == ["did not converge"]
    assert details["fit_report"]["epochs"] == 3
    assert details["settings"]["start"] == 2.0
    assert details["seconds_fit"] > 0


def test_result_does_not_depend_on_the_number_of_processes(cohort):
    one, two = (
        cross_validate(DummyClassifier(strategy="stratified"), cohort, 3, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    for name in one.results:
        np.testing.assert_array_equal(
            one.result(name).predictions().to_numpy(),
            two.result(name).predictions().to_numpy(),
        )


def test_given_splits_are_used_and_checked(cohort, nearest_mean):
    late = cohort.groups >= "anna021"
    split = (np.flatnonzero(~late), np.flatnonzero(late))
    evaluation = cross_validate(nearest_mean, cohort, splits=[split], baselines=False)
    np.testing.assert_array_equal(evaluation.main.folds[0].test, split[1])
    assert evaluation.settings["splits"] == "given"
    shared = (np.append(split[0], split[1][0]), split[1][1:])
    with pytest.raises(SplitError, match=r"fold 1 has 1 person .*\(anna021\)"):
        cross_validate(nearest_mean, cohort, splits=[shared])


def test_folds_are_drawn_as_asked(cohort, nearest_mean):
    from dataclasses import replace

    people = {name: k // 2 for k, name in enumerate(dict.fromkeys(cohort.groups))}
    family = [f"f{people[name]}" for name in cohort.groups]
    site = np.where(np.arange(cohort.n_scans) % 2, "north", "south")
    wide = replace(cohort, table=cohort.table.assign(family=family, site=site))
    evaluation = cross_validate(
        nearest_mean,
        wide,
        3,
        baselines=False,
        n_repeats=2,
        balance="site",
        whole=["family"],
    )
    assert len(evaluation.splits) == 6
    assert evaluation.settings["n_repeats"] == 2
    assert evaluation.settings["whole"] == ["family"]
    assert evaluation.audit.is_clean
    assert "group in two folds" in evaluation.audit.passed()
    for train, test in evaluation.splits:
        assert not set(np.take(family, train)) & set(np.take(family, test))
    for column in ({"balance": "town"}, {"whole": ["town"]}):
        with pytest.raises(ParameterError, match="table, got 'town'; there are scan"):
            cross_validate(nearest_mean, wide, **column)


def test_folds_by_scan_need_leave_and_are_marked(cohort, nearest_mean):
    splits = split_scans_ignoring_people(cohort.y, 3)
    with pytest.raises(SplitError, match="in training and test scans"):
        cross_validate(nearest_mean, cohort, splits=splits, baselines=False)
    marked = cross_validate(
        nearest_mean,
        cohort,
        splits=splits,
        baselines=False,
        people_may_be_shared=True,
    )
    assert marked.people_shared
    assert marked.audit.checks_of("error") == ("person in two folds",)
    first = cohort.select(~cohort.table["participant"].duplicated().to_numpy())
    alone = cross_validate(
        nearest_mean, first, 3, baselines=False, people_may_be_shared=True
    )
    assert not alone.people_shared


def test_progress_goes_to_standard_error(cohort, capsys):
    cross_validate(DummyClassifier(), cohort, 2, baselines=False, progress=True)
    out, err = capsys.readouterr()
    assert not out
    assert "2/2" in err


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({}, "model must name at least one classifier"),
        ({"x": object()}, "model 'x' must be a scikit-learn classifier"),
        ({"linear SVM": DummyClassifier()}, "got 'linear SVM'. Rename it"),
    ],
)
def test_models_that_cannot_be_run(cohort, model, message):
    with pytest.raises(ParameterError, match=message):
        cross_validate(model, cohort)


def test_data_hash_follows_the_data_and_not_the_names(cohort):
    other = cohort.select(np.arange(cohort.n_scans))
    assert summarise_cohort(cohort).data_hash == summarise_cohort(other).data_hash
    fewer = cohort.select(np.arange(1, cohort.n_scans))
    assert summarise_cohort(cohort).data_hash != summarise_cohort(fewer).data_hash
