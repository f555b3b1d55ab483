"""Folds keep people whole and classes spread; given folds are checked."""

import ast
from inspect import signature
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedGroupKFold

from brainlsap.evaluation import (
    join_groups,
    leave_one_out_splits,
    make_splits,
    read_splits,
)
from brainlsap.evaluation.splits import (
    EXCHANGE_CONDITIONS,
    EXCHANGE_PHRASE,
    check_splits,
    count_labellings,
    count_repeats,
    list_person_blocks,
    permute_labels,
)
from brainlsap.exceptions import FileFormatError, SplitError


def draw_people(seed, most_visits=4, *, changing=False):
    rng = np.random.default_rng(seed)
    n_classes, n_folds = int(rng.integers(2, 6)), int(rng.integers(2, 8))
    several = rng.choice(n_classes, rng.integers(5, 60))
    label = np.concatenate([np.repeat(np.arange(n_classes), n_folds), several])
    visits = rng.integers(1, most_visits + 1, len(label))
    groups, y = np.repeat(np.arange(len(label)), visits), np.repeat(label, visits)
    if changing:
        last = np.flatnonzero(np.diff(groups, append=-1))
        later = last[visits > 1][::3]
        y[later] = (y[later] + 1) % n_classes
    return y.astype(str), groups.astype(str), n_folds


def worst_share(y, splits):
    """Largest difference between a class's share of a fold and of all scans."""
    names = np.unique(y)
    overall = np.array([(y == name).mean() for name in names])
    shares = [[(y[test] == name).mean() for name in names] for _, test in splits]
    return np.abs(np.array(shares) - overall).max()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("most", "changing"), [(1, False), (4, False), (4, True)], ids=str
)
def test_folds_partition_scans_and_never_share_a_person(seed, most, changing):
    y, groups, n_folds = draw_people(seed, most, changing=changing)
    splits = make_splits(y, groups, n_folds, seed)
    tested = np.concatenate([test for _, test in splits])
    np.testing.assert_array_equal(np.sort(tested), np.arange(len(y)))
    for train, test in splits:
        assert not set(groups[train]) & set(groups[test])
        assert len(train) + len(test) == len(y)
        assert set(y[test]) == set(y)
    if most == 1:  # with one visit each counts differ by at most one
        counts = pd.DataFrame([pd.Series(y[test]).value_counts() for _, test in splits])
        assert (counts.max() - counts.min()).max() <= 1
        assert np.ptp([len(test) for _, test in splits]) <= 1


def test_refusal_of_folds_gives_the_cause():
    y, groups = np.array([*"aaab"]), np.arange(4)
    with pytest.raises(
        SplitError, match=r"^3 folds need at least 3 people .*: a 3, b 1"
    ):
        make_splits(y, groups, 3)
    with pytest.raises(SplitError, match="needs at least two folds"):
        make_splits(y, groups, 1)


@pytest.mark.parametrize("changing", [False, True])
def test_with_several_visits_classes_are_spread_no_worse_than_by_scikit_learn(changing):
    for seed in range(4):
        y, groups, n_folds = draw_people(seed, most_visits=5, changing=changing)
        ours = make_splits(y, groups, n_folds, seed)
        folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
        theirs = list(folds.split(y, y, groups))
        assert worst_share(y, ours) <= worst_share(y, theirs) + 1e-12


def test_the_seed_decides_and_the_first_repeat_stays():
    y, groups, _ = draw_people(3)
    one, same, other = (make_splits(y, groups, 2, seed) for seed in (5, 5, 6))
    repeated = make_splits(y, groups, 2, 5, n_repeats=3)
    np.testing.assert_array_equal(one[0][1], same[0][1])
    np.testing.assert_array_equal(one[0][1], repeated[0][1])
    assert not np.array_equal(one[0][1], other[0][1])
    assert (len(repeated), count_repeats(repeated), count_repeats(one)) == (6, 3, 1)


def test_these_people_are_divided_as_ever():
    y = np.repeat(["CN", "MCI", "AD"], [8, 6, 4])
    people = np.repeat([f"p{k}" for k in range(9)], 2)
    tests = [test.tolist() for _, test in make_splits(y, people, 2, 0)]
    assert tests == [[0, 1, 6, 7, 10, 11, 12, 13, 14, 15], [2, 3, 4, 5, 8, 9, 16, 17]]


def test_families_stay_together_and_missing_ones_bind_nobody():
    family = np.where(np.arange(90) < 40, np.arange(90) // 4, None)
    people = np.arange(90).astype(str)
    people[88:] = "0"  # of the first family too
    assert len(set(join_groups(people, family))) == 10 + 48


def test_every_site_is_left_out_once_without_the_people_who_were_there_too():
    site, person = ["a", "a", "b", "b", "c"], ["1", "2", "2", "3", "4"]
    splits = leave_one_out_splits(site, person)
    assert [test.tolist() for _, test in splits] == [[0, 1], [2, 3], [4]]
    assert splits[0][0].tolist() == [3, 4]
    with pytest.raises(
        SplitError, match=r"at least two sites, .* got 1 site and 1 scan "
    ):
        leave_one_out_splits(["a", None], ["1", "2"])


def test_folds_of_a_table_are_those_of_its_scans_in_any_order(tmp_path):
    y, groups, _ = draw_people(1)
    scans = [f"s{k}" for k in range(len(y))]
    splits = make_splits(y, groups, 2, n_repeats=2)
    table = [(k // 2, k % 2, s) for k, (_, test) in enumerate(splits) for s in test]
    table = pd.DataFrame(table, columns=["repeat", "fold", "scan"])
    table["scan"] = np.array(scans)[table["scan"]]
    doubled = pd.concat([table, table]).assign(model="as of two, in predictions.tsv")
    doubled.to_csv(tmp_path / "s.csv", index=False)
    for order in (scans, scans[::-1]):
        found = read_splits(tmp_path / "s.csv", order)
        for wanted, read in zip(splits, found, strict=True):
            for one, rows in zip(wanted, read, strict=True):
                assert {scans[row] for row in one} == {order[row] for row in rows}
    with pytest.raises(
        SplitError, match=r"repeat 0 does not match the cohort\. 2 scans"
    ):
        read_splits(tmp_path / "s.csv", [*scans[:-1], "stranger"])
    table.drop(columns="fold").to_csv(tmp_path / "s.tsv", index=False)
    with pytest.raises(
        FileFormatError, match=r"s\.tsv: the table of folds must have the columns"
    ):
        read_splits(tmp_path / "s.tsv", scans)


@pytest.mark.parametrize(
    ("y", "groups", "n_folds", "message"),
    [
        (["CN", "AD"], ["a", "b"], 1, "two folds, .* got 1 folds"),
        (["CN", "CN"], ["a", "b"], 2, "two classes.* by class: CN 2"),
        (["CN", "AD"], ["a"], 2, r"got shapes \(2,\) and \(1,\)"),
        (["CN", None], ["a", "b"], 2, r"\(2,\), with 1 missing"),
        (["CN"] * 6 + ["AD"] * 5, [*"abcdefgghhi"], 4, "by class: AD 3, CN 6"),
    ],
)
def test_what_cannot_be_divided_is_refused(y, groups, n_folds, message):
    with pytest.raises(SplitError, match=message):
        make_splits(y, groups, n_folds)


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([([0, 1], [2])], r"fold 1 has 1 person in both training and test scans \(a\)"),
        ([([0, 2], [])], "fold 1 has no training scans or no test scans"),
        ([], "splits contains no folds"),
    ],
)
def test_given_folds_are_checked(splits, message):
    with pytest.raises(SplitError, match=message):
        check_splits(splits, ["a", "b", "a"])


def test_the_phrase_of_exchanges_has_every_condition_of_blocks():
    parameters = {*signature(list_person_blocks).parameters}
    advice = "say in EXCHANGE_CONDITIONS what people of a block share, by parameter"
    assert parameters == EXCHANGE_CONDITIONS.keys(), advice
    assert all(phrase in EXCHANGE_PHRASE for phrase in EXCHANGE_CONDITIONS.values())


def called_name(call):
    """Return the name of a called function or method."""
    return getattr(call.func, "id", "") or getattr(call.func, "attr", "")


def is_constant(argument):
    """Return whether an argument is the same for all rows: no condition."""
    names = {node.id for node in ast.walk(argument) if isinstance(node, ast.Name)}
    calls = [node for node in ast.walk(argument) if isinstance(node, ast.Call)]
    constant_functions = {"zeros", "ones", "full", "zeros_like", "ones_like"}
    return not names or any(called_name(call) in constant_functions for call in calls)


def test_every_call_of_person_blocks_gives_every_condition():
    """A call without a condition would exchange labels among more people."""
    root = Path(__file__).parents[2]
    paths = [*root.glob("brainlsap/**/*.py"), *root.glob("benchmarks/*.py")]
    incomplete_calls, n_calls = [], 0
    for path in paths:
        text = path.read_text("utf-8")
        if "list_person_blocks(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and called_name(node) == "list_person_blocks":
                n_calls += 1
                arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
                n_conditions = sum(not is_constant(argument) for argument in arguments)
                if n_conditions < len(EXCHANGE_CONDITIONS):
                    incomplete_calls.append(f"{path.relative_to(root)}:{node.lineno}")
    assert n_calls >= 5
    assert not incomplete_calls


RANDOM_ORDERS = {
    *("permutation", "permuted", "shuffle", "random_table"),
    *("kruskal", "chi2_contingency", "permute_row_indices", "permute_labels"),
}
"""Functions that permute, or whose p-values are those of permutations."""
ONCE = {"groups": "every participant counts once"}
EXCHANGES_WITHOUT_BLOCKS = {
    "evaluation/leakage.py: compute_accuracy_chance_and_p": ONCE,
    "evaluation/leakage.py: _compute_chi_squared_p": ONCE,
    "report/demographics.py: compare_numbers_between_classes": ONCE,
    "report/demographics.py: compare_counts_between_classes": ONCE,
    "evaluation/subgroups.py: _compute_chance_score": {
        "groups": "the expected score is the same with and without this condition",
    },
    "evaluation/connectome_worth.py: draw_donor_indices": {
        "groups": "connectomes, not labels, are exchanged, with repeats if needed",
    },
}
"""Why each condition holds, or is not needed, without `list_person_blocks`."""
NO_EXCHANGES = {
    "evaluation/splits.py: permute_labels": "takes blocks",
    "evaluation/splits.py: permute_row_indices": "takes blocks",
    "evaluation/splits.py: _has_agreeing_groups": "people are not yet known",
    "evaluation/leakage.py: _draw_person_fold_codes": "folds",
    "evaluation/learning_curve.py: reduce_training_splits": "subsets",
    "evaluation/ranking.py: _draw_first_half_mask": "halves",
    "evaluation/ranking.py: _correlate_rotated_maps": "regions",
    "evaluation/connectome_worth.py: _iter_diffused_signals": "regions",
    "evaluation/models.py: shuffle_edges": "connections",
    "simulation.py: _draw_scan_table": "simulates people",
}
"""What else is put in a random order. Models and `nodes` do not test people."""


def find_random_orders(tree):
    """Yield the names of functions that permute without `list_person_blocks`."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            nodes = [n for n in ast.walk(function) if isinstance(n, ast.Call)]
            called_names = {called_name(node) for node in nodes}
            if called_names & RANDOM_ORDERS and not called_names & {
                "list_person_blocks",
                "_list_exchange_row_blocks",
            }:
                yield function.name


def test_every_permutation_of_people_regards_every_condition():
    package = Path(__file__).parents[2] / "brainlsap"
    found, defined = set(), set()
    for path in package.glob("**/*.py"):
        file = path.relative_to(package).as_posix()
        if file.startswith(("model/", "nodes/")):
            continue
        text = path.read_text("utf-8")
        if not any(name in text for name in RANDOM_ORDERS):
            continue
        tree = ast.parse(text)
        found |= {f"{file}: {name}" for name in find_random_orders(tree)}
        defined |= {
            f"{file}: {node.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        }
    listed = EXCHANGES_WITHOUT_BLOCKS.keys() | NO_EXCHANGES.keys()
    advice = "take the people from list_person_blocks, or list the function with why"
    assert not found - listed, advice
    assert not listed - defined
    for function, reasons in EXCHANGES_WITHOUT_BLOCKS.items():
        assert reasons.keys() == EXCHANGE_CONDITIONS.keys(), (
            f"exchange within each condition in {function}, or say why not"
        )
        for reason in reasons.values():
            assert len(reason.split()) >= 4, f"explain {reason!r} of {function}"


def test_a_constant_is_no_condition_of_exchange():
    calls = {
        "f(np.zeros(len(groups)))": True, "f(None)": True, "f(groups)": False,
        "f(rows if groups is None else groups)": False, "f(x.sites)": False,
    }  # fmt: skip
    for text, expected in calls.items():
        (argument,) = ast.parse(text, mode="eval").body.args
        assert is_constant(argument) == expected


@pytest.mark.parametrize("seed", range(3))
def test_labellings_are_counted(seed):
    rng = np.random.default_rng(seed)
    people = np.repeat(np.arange(6), [1, 1, 1, 2, 2, 2])
    labels = rng.integers(0, 2, (len(people), 1 + seed % 2))
    blocks = list_person_blocks(people)
    drawn = {permute_labels(labels, blocks, rng).tobytes() for _ in range(600)}
    assert count_labellings(labels, blocks) == len(drawn)


def test_labels_move_with_all_scans_between_people_with_equally_many():
    labels_of = {
        "a": ("CN",), "b": ("AD", "AD"), "c": ("MCI", "AD"), "d": ("SMC",),
        "e": ("CN", "MCI", "AD"), "f": ("CN", "CN"),
    }  # fmt: skip
    y = np.array([label for labels in labels_of.values() for label in labels])
    people = np.repeat(list(labels_of), [len(labels) for labels in labels_of.values()])
    rng, drawn = np.random.default_rng(0), set()
    for _ in range(40):
        permuted = permute_labels(y, list_person_blocks(people), rng)
        drawn.add(tuple(tuple(permuted[people == person]) for person in labels_of))
    a, b, c, d, e, f = labels_of.values()
    singles, pairs = permutations([a, d]), list(permutations([b, c, f]))
    assert drawn == {
        (one[0], two[0], two[1], one[1], e, two[2]) for one in singles for two in pairs
    }
