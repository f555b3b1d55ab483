"""Fresh processes: what they import, and that they give the same bytes.

Neither locale, hash seed and threads change results, nor do the processes of joblib.
"""

import json
import locale
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from brainlsap.evaluation import cross_validate, make_models
from brainlsap.simulation import make_cohort

HEAVY = ("torch", "matplotlib", "nilearn", "plotly", "sklearn", "jinja2", "h5py")
STEPS = (
    "import brainlsap, brainlsap.data",
    "brainlsap.load_atlas('desikan82').names",
    "from brainlsap.cli import main\ntry: main(['--help'])\nexcept SystemExit: 0",
    "import brainlsap.evaluation, brainlsap.report.tables, brainlsap.report.page",
)
LIST_IMPORTS = (
    f"imported_names.append([name for name in {HEAVY!r} if name in sys.modules])"
)
START = "\n".join(f"{step}\n{LIST_IMPORTS}" for step in STEPS)
PROGRAM = f"""
import gc, sys, warnings
gc.disable()  # Its rounds slow imports.
imported_names = []
{START}
"""
PROGRAM += """
warnings.simplefilter("ignore")  # few epochs and people
import hashlib, json, locale, tempfile
from dataclasses import replace
from pathlib import Path
from brainlsap.evaluation import (
    bootstrap_score_table, compare_models, cross_validate, make_models, rank_regions)
from brainlsap.model import ModelOrigin, load_model, save_model
from brainlsap.simulation import make_cohort

locale.setlocale(locale.LC_ALL, "")  # as an application around the package may do
cohort = make_cohort(
    12, atlas="desikan82", feature="fdg", shares={"CN": 0.5, "AD": 0.5})
site = ["north", "south"] * 100
cohort = replace(cohort, table=cohort.table.assign(site=site[:cohort.n_scans]))
ridges = ["LSAP-R", "ridge with a scale per region"]
names = ["exact", *ridges, "global means", "edges only"]
models = make_models(names, n_epochs=2, n_starts=1, start="constant")
for name in ridges:
    models[name][0].set_params(n_draws=3)
found = cross_validate(
    models, cohort, 2, baselines=False, harmonize="site", regress_out=["age"])
found = replace(
    found,
    fits=found.fits.filter(regex="^(?!seconds)"),
    ranking=rank_regions(found))
with tempfile.TemporaryDirectory() as place:
    folder = found.save(Path(place) / "evaluation")
    texts = {one.name: one.read_bytes() for one in folder.iterdir()}
texts["comparison"] = compare_models(found).to_csv().encode()
for name in found.models:
    texts[name] = bootstrap_score_table(found, name, 20).to_csv().encode()
stored = Path(sys.argv[1])
if not stored.exists():  # the next process loads what this one has fitted
    X, y, people = cohort.to_array(), cohort.y, cohort.groups
    origin = ModelOrigin(cohort.region_names, cohort.feature_names)
    save_model(models["Exact"][0].fit(X, y, groups=people), stored, origin)
loaded = load_model(stored)
texts["stored model"] = loaded.predict_proba(cohort.to_array()).tobytes()
assert "torch._dynamo" not in sys.modules  # torch's compiler, slow to import
hashes = {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
print(json.dumps({"imports": imported_names, "hashes": hashes}))
"""

# Locale, hash seed and threads of a process.
COMBINATIONS = (("C", "0", "1"), ("de_DE.UTF-8", "1", "2"))


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


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Return what the program prints in each combination: imports and hashes."""
    folder = tmp_path_factory.mktemp("processes")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    outputs = []
    for name, seed, threads in COMBINATIONS:
        variables = {"LC_ALL": or_plain(name), "PYTHONHASHSEED": seed}
        # Kernels of AVX2 machines (elsewhere ignored) sum in an order that follows the
        # number of threads; those of AVX-512 hide it.
        variables |= {"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        variables |= {"OPENBLAS_CORETYPE": "Haswell", "PYTHONPATH": str(Path.cwd())}
        call = [sys.executable, "-W", "error", str(program), str(folder / "model")]
        done = subprocess.run(
            call, env=os.environ | variables, check=True, capture_output=True
        )
        assert done.stderr == b""
        outputs.append(json.loads(done.stdout.splitlines()[-1]))
    return outputs


def test_light_imports_stay_light(outputs):
    assert outputs[0]["imports"][:3] == [[]] * 3


def test_evaluation_and_report_need_no_torch(outputs):
    assert "sklearn" in outputs[0]["imports"][3]
    assert "torch" not in outputs[0]["imports"][3]


def test_predictions_scales_and_tables_are_the_same_bytes(outputs):
    first, second = (output["hashes"] for output in outputs)
    kept = ("predictions", "scales", "fits", "ranking", "audit")
    assert {f"{name}.tsv" for name in kept} <= set(first)
    assert first == second


def test_processes_of_joblib_change_nothing():
    cohort = make_cohort(
        12, atlas="desikan82", feature="fdg", shares={"CN": 0.5, "AD": 0.5}
    )
    # torch is not imported by the processes that are started
    models = make_models(["global means", "edges only"])
    one, two = (
        cross_validate(models, cohort, 2, baselines=False, n_jobs=n_jobs)
        for n_jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(one.predictions, two.predictions, check_exact=True)
