"""The same bytes, whatever the processes, order, locale, hash seed and threads."""

import json
import locale
import os
import subprocess
import sys

PROGRAM = """
import hashlib, json, locale, sys
import numpy as np
from brainlsap.data import make_cohort
from brainlsap.evaluation import crossval, rank_regions
from brainlsap.report import table_text
from brainlsap.data.spreadsheets import write_tsv
from brainlsap.report.folder import predictions_table, scan_codes
from brainlsap.report.page_tables import page_tables
from brainlsap.report.privacy import withholder
from brainlsap.report.stored import StoredResults
from brainlsap.study import study_baselines, study_models

locale.setlocale(locale.LC_ALL, "")  # as an application around the package may do
real = crossval.run_tasks


def in_order(order):
    def run_tasks(tasks, cohort, work):
        places = np.random.default_rng(order).permutation(len(tasks)) if order else (
            np.arange(len(tasks)))
        places = places[::-1] if order == 1 else places
        done = real([tasks[k] for k in places], cohort, work)
        return [done[k] for k in np.argsort(places)]
    return run_tasks


def digests(cohort, n_jobs, order):
    crossval.run_tasks = in_order(order)
    models = study_models(["exact"], n_epochs=3, n_starts=1)
    evaluation = crossval.cross_validate(
        models, cohort, 2, baselines=study_baselines(0), n_jobs=n_jobs)
    ranking = rank_regions(evaluation)
    withhold = withholder(evaluation)
    tables = page_tables(StoredResults(evaluation, cohort.atlas), ranking, withhold)
    texts = {name: table_text(one, "tsv") for name, one in tables.items()}
    codes = scan_codes(evaluation)
    texts["predictions"] = predictions_table(evaluation, codes).to_csv(index=False)
    texts["ranking"] = ranking.to_csv(index=False)
    for name, result in evaluation.results.items():
        for fold in result.folds:
            kept = [fold.probability, *([] if fold.scales is None else [fold.scales])]
            kept = " ".join(one.tobytes().hex() for one in kept)
            texts[f"{name}, fold {fold.fold}"] = kept
    return {k: hashlib.sha256(text.encode()).hexdigest() for k, text in texts.items()}


cohort = make_cohort(24, atlas="desikan82", feature="fdg")
for n_jobs, order in json.loads(sys.argv[1]):
    print(json.dumps(digests(cohort, n_jobs, order)), flush=True)
"""

# Environment, then processes and order (0 as given, 1 backwards, else shuffled).
COMBINATIONS = (
    ("C", "0", "1", [(1, 0), (1, 1), (1, 2), (2, 3)]),
    ("de_DE.UTF-8", "1", "2", [(1, 0), (1, 1), (1, 2), (1, 3)]),
)


def or_plain(name):
    """Return a locale, or the plain one where the machine does not have it."""
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, name)
    except locale.Error:
        return "C.UTF-8"
    finally:
        locale.setlocale(locale.LC_ALL, before)
    return name


def test_predictions_scales_and_tables_are_the_same_bytes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    running = []
    for name, seed, threads, asked in COMBINATIONS:
        told = {"LC_ALL": or_plain(name), "PYTHONHASHSEED": seed}
        # Kernels of AVX2 machines (elsewhere ignored) sum in an order that follows the
        # number of threads; those of AVX-512 hide it.
        told |= {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        told |= {"OPENBLAS_CORETYPE": "Haswell"}
        running.append(
            subprocess.Popen(
                [sys.executable, str(program), json.dumps(asked)],
                env=os.environ | told,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    found = []
    for process in running:
        printed, errors = process.communicate()
        assert process.returncode == 0, errors
        found += [json.loads(line) for line in printed.splitlines()]
    assert len(found) == sum(len(asked) for *_, asked in COMBINATIONS) == 8
    assert {"predictions", "ranking", "scores", "regions", "fit_1"} <= set(found[0])
    for one in found[1:]:
        assert one == found[0]


def test_a_locale_that_is_missing_is_replaced():
    assert or_plain("xx_XX.UTF-8") == "C.UTF-8"
    assert or_plain("C") == "C"
