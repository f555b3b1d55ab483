"""Every recipe of the page *Bring your data* is run, as it stands on the page.

The page has the folder, the commands, the Python code and what `check` prints. The
folder is made of simulated people; commands and code have to read the same cohort.
"""

import re
import shlex
import shutil
from functools import cache
from itertools import product
from pathlib import Path

import nibabel
import numpy as np
import pandas as pd
import pytest
from nibabel.streamlines import Tractogram

import brainlsap.workflow
from brainlsap.atlas import load_atlas
from brainlsap.cli import main
from brainlsap.data.flow import flow_table
from brainlsap.simulation import (
    aparc_text,
    aseg_text,
    make_cohort,
    mrtrix_matrix,
    mrtrix_node_region_indices,
)

PAGE = Path(__file__).parents[1] / "docs" / "own_data.rst"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="the docs are not here")
LABELS = ("CN", "AD")
N_PEOPLE = 16
# What stands for a person in the trees of the page -> of all people.
EXAMPLES = {
    "005_S_4010": [f"{k:03d}_S_{4000 + k}" for k in range(1, N_PEOPLE + 1)],
    "005S4010": [f"{k:03d}S{4000 + k}" for k in range(1, N_PEOPLE + 1)],
    "I110": [f"I{k}" for k in range(1, N_PEOPLE + 1)],
    # The last scan is the second visit of the first person.
    "1000011_2": [*(f"{1000010 + k}_2" for k in range(1, N_PEOPLE)), "1000011_3"],
    "01": [f"{k:02d}" for k in range(1, N_PEOPLE + 1)],
}
EXAMPLE = re.compile(r"005_S_4010|005S4010|I110|1000011_2|(?<!\d)01(?!\d)")
IDS, PTIDS = EXAMPLES["01"], EXAMPLES["005_S_4010"]


def read_recipes():
    """Return tree, commands, code and printed text of every recipe, by its title."""
    parts = re.split(
        r"^(.+)\n-{4,}\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    recipes = {}
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        blocks = re.findall(r"\.\. code-block:: (\w+)\n\n((?:   .*\n|\n)+)", text)
        if [kind for kind, _ in blocks][:4] == ["text", "sh", "python", "text"]:
            lines = [
                re.sub(r"^ {3}", "", b, flags=re.MULTILINE).rstrip()
                for _, b in blocks[:4]
            ]
            recipes[title] = lines
    return recipes


RECIPES = read_recipes() if PAGE.is_file() else {}


def read_tree(tree):
    """Return the paths of a drawn folder; of {a,b} both."""
    paths, above = [], []
    for line in tree.splitlines():
        indent, name = re.match(r"([│├└─ ]*)(\S+)", line).groups()
        above = [*above[: len(indent) // 4], name.rstrip("/")]
        if not name.endswith("/"):
            choices = re.split(r"\{(.*?)\}", "/".join(above))
            paths += map("".join, product(*(part.split(",") for part in choices)))
    return paths


@cache
def draw_cohort(atlas_name):
    """Return simulated people without an effect; only to be read."""
    return make_cohort(
        N_PEOPLE,
        atlas=atlas_name,
        feature=["fdg", "thickness", "volume"],
        visit_shares=(1,),
        effect=0,
        shares=dict.fromkeys(LABELS, 1),
    )


class Maker:
    """Writes the files that a tree names, each for everybody if it names a person."""

    def __init__(self, folder, tree, atlas):
        atlas_name = "destrieux160" if atlas == "destrieux164" else atlas
        self.atlas = load_atlas(atlas_name)
        self.cohort = draw_cohort(atlas_name)
        self.nodes = mrtrix_node_region_indices(self.atlas)
        self.sub = "sub-" if "sub-01" in tree else ""
        self.is_ukbiobank = "1000011_2" in tree
        for name in read_tree(tree):
            for row in range(N_PEOPLE if EXAMPLE.search(name) else 1):
                one = EXAMPLE.sub(lambda found: EXAMPLES[found[0]][row], name)  # noqa: B023
                path = folder / one
                path.parent.mkdir(parents=True, exist_ok=True)
                self.write(path, row)

    def matrix(self, row):
        return mrtrix_matrix(self.cohort.connectomes[row], self.nodes)

    def values(self, row):
        return dict(zip(self.cohort.feature_names, self.cohort.features[row].T))  # noqa: B905

    def people(self, **more):
        table = self.cohort.table
        ids = {"participant_id": [self.sub + one for one in IDS]}
        facts = {"diagnosis": table["label"], "age": table["age"], "sex": table["sex"]}
        return pd.DataFrame(ids | facts | more)

    def write(self, path, row):  # noqa: C901 (one kind of file after the other)
        """Write one file of a person, or of all, by its name."""
        name, atlas, scan = path.name, self.atlas, str(row)
        if name == "aseg.stats":
            path.write_text(aseg_text(atlas, scan, self.values(row)["volume"]))
        elif name.endswith(".stats"):
            path.write_text(aparc_text(atlas, name[0].upper(), scan, self.values(row)))
        elif name == "connectome_streamline_count_10M.csv":
            np.savetxt(path, self.ukbiobank_matrix(row), "%d", ",")
        elif name == "freesurfer.csv":
            self.ukbiobank_fields().to_csv(path, index=False)
        elif name == "participants.csv" and self.is_ukbiobank:
            self.ukbiobank_people().to_csv(path, index=False)
        elif name.endswith("connectivity.csv") or path.parent.name == "connectomes":
            sep = "," if path.suffix == ".csv" else " "
            np.savetxt(path, self.matrix(row), "%d", sep)
        elif name == "template_connectome.csv":
            np.savetxt(path, self.matrix(0), "%d", ",")
        elif name == "connectomes.npy":
            np.save(path, np.stack([self.matrix(row) for row in range(N_PEOPLE)]))
        elif name == "connectomes_ids.txt":
            path.write_text("\n".join(self.people()["participant_id"]))
        elif name == "thickness.csv":
            self.regions("thickness").to_csv(path, index=False)
        elif name == "everything.csv":
            self.regions("thickness", "{}_thickness").to_csv(path, index=False)
        elif name.endswith("_regions.tsv"):
            table = pd.DataFrame(
                {"region": atlas.names, "suvr": self.values(row)["fdg"]}
            )
            table.to_csv(path, sep="\t", index=False)
        elif name == "people.xlsx":
            pytest.importorskip("openpyxl", reason="openpyxl is absent")
            heads = {"participant_id": "id", "diagnosis": "Diagnosis"}
            self.people().rename(columns=heads).to_excel(path, index=False)
        elif name.startswith("participants."):
            more = {} if path.suffix == ".csv" else {"site": self.cohort.table["site"]}
            sep = "," if path.suffix == ".csv" else "\t"
            self.people(**more).to_csv(path, sep=sep, index=False)
        elif name.endswith("_sessions.tsv"):
            label = self.cohort.table["label"][row]
            path.write_text(f"session_id\tdiagnosis\nses-M00\t{label}\n")
        elif name == "ADNIMERGE.csv":
            self.adnimerge().to_csv(path, index=False)
        else:
            self.write_image(path, np.random.default_rng(row))

    def regions(self, feature, head="{}"):
        at = self.cohort.feature_names.index(feature)
        columns = [head.format(name) for name in self.atlas.names]
        cortex = self.atlas.cortex
        values = pd.DataFrame(self.cohort.features[:, :, at], columns=columns)
        return pd.concat([self.people(), values.loc[:, cortex]], axis=1)

    def ukbiobank_matrix(self, row):
        """Rows of destrieux164; regions that destrieux160 lacks are as a neighbour."""
        names = [
            re.sub("(?<=Thalamus)-.*", "", name).replace("Accumbens-area", "Caudate")
            for name in load_atlas("destrieux164").names
        ]
        rows = [self.atlas.find(name) for name in names]
        matrix = self.cohort.connectomes[row][np.ix_(rows, rows)]
        np.fill_diagonal(matrix, 0)
        return matrix

    def ukbiobank_people(self):
        table = self.cohort.table.iloc[:-1]
        ages = table["age"].round()
        second = [ages.iloc[0] + 3, *[None] * (len(table) - 1)]
        facts = {
            "eid": [one[:-2] for one in EXAMPLES["1000011_2"][:-1]],
            "diagnosis": table["label"],
            "31-0.0": (table["sex"] == "M").astype(int),
            "21003-2.0": ages,
            "21003-3.0": second,
            "54-2.0": [11025, 11026, 11027] * 5,
            "54-3.0": [11025, *[None] * (len(table) - 1)],
        }
        return pd.DataFrame(facts)

    def ukbiobank_fields(self):
        """Thickness of both visits: 74 fields of the left side, then of the right."""
        at = self.cohort.feature_names.index("thickness")
        values = self.cohort.features[:, self.atlas.cortex, at]
        columns = {"eid": [one[:-2] for one in EXAMPLES["1000011_2"][:-1]]}
        fields = [*range(27403, 27477), *range(27625, 27699)]
        for field, column in zip(fields, values.T, strict=True):
            columns[f"{field}-2.0"] = column[:-1]
            columns[f"{field}-3.0"] = [column[-1], *[None] * (N_PEOPLE - 2)]
        return pd.DataFrame(columns)

    def adnimerge(self):
        table = self.cohort.table
        more = {
            "PTID": PTIDS,
            "RID": [int(one[-4:]) for one in PTIDS],
            "VISCODE": "bl",
            "EXAMDATE": "2012-02-01",
            "COLPROT": "ADNI2",
            "ORIGPROT": "ADNI2",
            "SITE": [int(one[:3]) for one in PTIDS],
            "DX_bl": table["label"],
            "DX": table["label"].replace("AD", "Dementia"),
            "AGE": table["age"],
            "PTGENDER": table["sex"].map({"M": "Male", "F": "Female"}),
        }
        return pd.DataFrame(more)

    def write_image(self, path, rng):
        labels = [*self.atlas.regions["freesurfer_id"], 8, 47]
        parcellation = np.resize(labels, (12, 12, 12)).astype(np.int32)
        if path.suffix == ".tck":
            ends = rng.uniform(0, 11, (500, 2, 3)).astype(np.float32)
            lines = Tractogram(list(ends), affine_to_rasmm=np.eye(4))
            nibabel.streamlines.save(lines, str(path))
        elif path.suffix == ".mgz":
            nibabel.save(nibabel.MGHImage(parcellation, np.eye(4)), path)
        else:
            values = rng.gamma(9, 1, parcellation.shape)
            nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), path)


class ReadError(Exception):
    """Stands for the study that would be run; holds what was read."""


def test_the_page_has_every_recipe():
    words = ("BIDS", "flat folder", "all connectomes", "everything", "ADNI")
    words += ("UK Biobank", "Images")
    for title, word in zip(RECIPES, words, strict=True):
        assert word in title


def test_files_are_renamed_by_the_nearest_visit(tmp_path, monkeypatch):
    page = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", page)
    (code,) = (block for block in blocks if ".rename(" in block)
    visits = {"bl": "2012-02-01", "m06": "2012-08-04", "m12": "2013-02-10"}
    table = pd.DataFrame({"VISCODE": [*visits], "EXAMDATE": [*visits.values()]})
    table.insert(0, "PTID", "005_S_4010")
    (tmp_path / "study" / "connectomes").mkdir(parents=True)
    table.to_csv(tmp_path / "study" / "ADNIMERGE.csv", index=False)
    # The second is nearer to bl than the first, and the last is near no visit.
    for date in ("2012-02-20", "2012-02-03", "2012-08-01", "2015-01-01"):
        path = tmp_path / "study" / "connectomes" / f"005_S_4010_{date}.csv"
        path.write_text(date)
    monkeypatch.chdir(tmp_path)
    exec(re.sub(r"^ {3}", "", code, flags=re.MULTILINE), {})
    texts = {
        x.stem[11:]: x.read_text() for x in (tmp_path / "study/connectomes").iterdir()
    }
    assert texts["bl"] == "2012-02-03"
    assert texts["m06"] == "2012-08-01"
    assert {*texts} == {"bl", "m06", "2012-02-20", "2015-01-01"}


@pytest.fixture(scope="module")
def copy_study(tmp_path_factory):
    """Return a function that copies the folder of a recipe, made once."""
    made_folders = {}

    def copy(title, folder):
        if title not in made_folders:
            tree, commands, *_ = RECIPES[title]
            atlases = re.findall(r"--atlas (\S+)", commands)
            made_folders[title] = tmp_path_factory.mktemp("recipe")
            Maker(made_folders[title], tree, (atlases or ["destrieux160"])[0])
        shutil.copytree(made_folders[title], folder, dirs_exist_ok=True)

    return copy


@pytest.mark.parametrize("title", RECIPES)
def test_commands_and_code_read_the_same_cohort(
    title, copy_study, tmp_path, monkeypatch, capsys
):
    _, commands, code, printed = RECIPES[title]

    def stop(cohort, *_, **__):
        raise ReadError(cohort)

    stop.__wrapped__ = brainlsap.workflow.run_study
    monkeypatch.setattr("brainlsap.run_study", stop)  # first: it is loaded lazily
    monkeypatch.setattr("brainlsap.workflow.run_study", stop)
    cohorts = []
    for way in ("commands", "code"):
        folder = tmp_path / way
        copy_study(title, folder)
        monkeypatch.chdir(folder)
        with pytest.raises(ReadError) as read:
            if way == "code":
                exec(code, {})
            for line in commands.splitlines():
                capsys.readouterr()
                assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
                if " check " in line:
                    assert_printed(printed, capsys.readouterr().out)
        cohorts.append(read.value.args[0])
    one, two = cohorts
    assert one.n_scans == N_PEOPLE
    np.testing.assert_array_equal(one.connectomes, two.connectomes)
    np.testing.assert_array_equal(one.features, two.features)
    pd.testing.assert_frame_equal(one.table, two.table)
    assert (one.notes, one.classes) == (two.notes, two.classes)


def assert_printed(shown, out):
    """Compare with what the page shows, line by line; "..." stands for any lines."""
    pattern = re.escape(shown).replace(re.escape("..."), "(.|\n)*?")
    assert re.search(f"^{pattern}$", out, re.MULTILINE), out


def plant_faults(folder, prefix):
    """Blank one label, damage one person's data, remove another's; return the ids."""
    (table_path,) = (
        path
        for path in (folder / "study").iterdir()
        if path.name.startswith(("participants.", "people.", "everything."))
    )
    if table_path.suffix == ".xlsx":
        table = pd.read_excel(table_path, dtype=str)
    else:
        sep = "," if table_path.suffix == ".csv" else "\t"
        table = pd.read_csv(table_path, sep=sep, dtype=str)
    head = "Diagnosis" if "Diagnosis" in table else "diagnosis"
    ids = [*table[table.columns[0]]]
    no_label, damaged, missing = ids[:3]
    if head in table:
        table.loc[0, head] = ""
    for path in folder.rglob(f"{no_label}_sessions.tsv"):
        sessions = pd.read_csv(path, sep="\t", dtype=str)
        sessions.assign(**{head: ""}).to_csv(path, sep="\t", index=False)

    def find_connectomes(person):
        names = {person, person.removeprefix("sub-"), person.removeprefix(prefix)}
        is_of_person = re.compile(rf"(?<![0-9A-Za-z])(?:{'|'.join(names)})(?![0-9])")
        return [
            path
            for path in folder.rglob("*")
            if is_of_person.search(str(path.relative_to(folder)))
            and (
                path.name.endswith("connectivity.csv")
                or path.name.startswith("connectome_")
                or path.suffix == ".txt"
            )
        ]

    if find_connectomes(damaged):
        for path in find_connectomes(damaged):
            path.write_text("1,2\n3\n")
        for path in find_connectomes(missing):
            path.unlink()
    else:
        values_path = folder / "study" / "thickness.csv"
        if values_path.is_file():
            values = pd.read_csv(values_path, dtype=str)
            values.iloc[1, -1] = "2.5o"
            values.drop(index=2).to_csv(values_path, index=False)
        else:
            table.iloc[1, -1] = "#DIV/0!"
            table.iloc[2, 4:] = ""
    if table_path.suffix == ".xlsx":
        table.to_excel(table_path, index=False)
    else:
        table.to_csv(table_path, sep=sep, index=False)
    return ids[:4]


@pytest.mark.parametrize("title", RECIPES)
def test_the_flow_of_people_adds_up_with_three_faults(
    title, copy_study, tmp_path, monkeypatch
):
    _, commands, _, _ = RECIPES[title]

    def stop(cohort, *_, **__):
        raise ReadError(cohort)

    stop.__wrapped__ = brainlsap.workflow.run_study
    monkeypatch.setattr("brainlsap.run_study", stop)
    monkeypatch.setattr("brainlsap.workflow.run_study", stop)
    copy_study(title, tmp_path)
    monkeypatch.chdir(tmp_path)
    *earlier_commands, run_command = commands.splitlines()
    for line in earlier_commands:
        if " check " not in line:
            assert main(shlex.split(line)[1:]) == 0
    people = plant_faults(tmp_path, "sub-ADNI")
    arguments = [*shlex.split(run_command)[1:], "--skip-faulty", "--exclude", people[3]]
    with pytest.raises(ReadError) as read:
        main(arguments)
    cohort = read.value.args[0]
    one_fate_a_person = cohort.left_out.drop_duplicates(["participant", "fate"])
    fates = one_fate_a_person.set_index("participant")["fate"]
    assert sorted(fates.index) == sorted(people)
    assert fates[people[0]] == "no label"
    assert fates[people[3]] == "excluded"
    flow = flow_table(cohort.table, cohort.left_out).set_index("fate")
    counts = flow[["participants", "scans"]]
    n_scans_left_out = len(cohort.left_out)
    assert counts.loc["listed", "scans"] == N_PEOPLE
    assert counts.loc["analysed", "scans"] == N_PEOPLE - n_scans_left_out
    n_listed = counts.loc["listed", "participants"]
    assert counts.loc["analysed", "participants"] == n_listed - 4
    assert (counts.drop(index="listed").sum() == counts.loc["listed"]).all()
    is_faulty = cohort.left_out["participant"].isin(people[1:3])
    assert cohort.left_out["reason"][is_faulty].str.len().min() > 0
