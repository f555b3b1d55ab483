"""Made-up tables with ADNI's columns, and empty images in LONI's folders."""

import numpy as np
import pandas as pd

MERGE_COLUMNS = (
    "RID,COLPROT,ORIGPROT,PTID,SITE,VISCODE,EXAMDATE,DX_bl,AGE,PTGENDER,PTEDUCAT,"
    "APOE4,MMSE,DX,FLDSTRENG,Month"
)
PEOPLE = {
    "295": ("002_S_0295", "ADNI1", "2", "LMCI", 70.0, "Male"),
    "4010": ("005_S_4010", "ADNI2", "5", "SMC", 66.5, "Female"),
    "4020": ("005_S_4020", "ADNI2", "5", "EMCI", 72.0, "Female"),
    "6030": ("011_S_6030", "ADNI3", "11", "MCI", 75.2, "Male"),
    "6040": ("011_S_6040", "ADNI3", "11", "CN", 68.0, "Female"),
    "700": ("099_S_0700", "ADNI1", "99", "AD", 80.0, "Male"),
}
# RID, phase, visit, day, diagnosis in words
VISITS = [
    ("295", "ADNI1", "bl", "2006-04-18", "MCI"),
    ("295", "ADNI1", "m06", "2006-10-20", "MCI"),
    ("295", "ADNI1", "m12", "2007-05-01", "MCI to Dementia"),
    ("4010", "ADNI2", "bl", "2012-02-01", "CN"),
    ("4010", "ADNI3", "m72", "2018-03-01", "CN"),
    ("4020", "ADNI2", "bl", "2012-06-01", "MCI"),
    ("4020", "ADNI2", "m24", "2014-06-15", "CN"),
    ("6030", "ADNI3", "bl", "2018-09-01", "MCI"),
    ("6040", "ADNI3", "bl", "2018-10-01", "CN"),
    ("6040", "ADNI3", "m12", "", ""),
    ("700", "ADNI1", "bl", "2006-01-10", "Dementia"),
]
# PTID, description, day, number
IMAGES = [
    ("002_S_0295", "Axial_DTI", "2006-05-02_08_20_30.0", "I100"),
    ("002_S_0295", "Axial_DTI", "2006-04-20_08_20_30.0", "I101"),
    ("002_S_0295", "ADNI_Brain_PET__Raw_FDG", "2006-11-02_10_00_00.0", "I102"),
    ("002_S_0295", "Sagittal_3D_FLAIR", "2006-05-02_08_20_30.0", "I103"),
    ("005_S_4010", "Axial_DTI", "2012-07-30_09_00_00.0", "I110"),
    ("005_S_4010", "AV45_Coreg,_Avg", "2012-07-31_09_00_00.0", "I111"),
    ("005_S_4010", "Axial_DTI", "2018-02-20_09_00_00.0", "I112"),
    ("005_S_4020", "Axial_DTI", "2014-06-01_09_00_00.0", "I120"),
    ("011_S_6030", "Axial_MB_DTI", "2018-09-01_09_00_00.0", "I130"),
    ("011_S_6040", "Accelerated_Sagittal_MPRAGE", "2018-10-09_09_00_00.0", "I140"),
    ("123_S_9999", "Axial_DTI", "2018-10-09_09_00_00.0", "I150"),
]


def merge_table():
    rows = []
    for rid, phase, code, day, words in VISITS:
        ptid, first, site, stage, age, sex = PEOPLE[rid]
        month = 0 if code == "bl" else int(code[1:])
        scores = ["16", "1", "28", words, "3 Tesla MRI", str(month)]
        rows.append(
            [rid, phase, first, ptid, site, code, day, stage, age, sex, *scores]
        )
    return pd.DataFrame(rows, columns=MERGE_COLUMNS.split(","))


CODES = {"CN": 1, "MCI": 2, "Dementia": 3, "MCI to Dementia": 3, "": -4}
ARM_CODES = {"LMCI": 5, "SMC": 11, "EMCI": 10, "AD": 3, "CN": 4}


def dxsum_table():
    rows = [
        [phase, rid, site_of(rid), code, code, day, CODES[words]]
        for rid, phase, code, day, words in VISITS
    ]
    heads = "PHASE,RID,SITEID,VISCODE,VISCODE2,EXAMDATE,DIAGNOSIS"
    return pd.DataFrame(rows, columns=heads.split(","))


def arm_table():
    rows = [
        [first, rid, site, "bl", "2010-01-01", ARM_CODES.get(stage, 2), 1]
        for rid, (_, first, site, stage, _, _) in PEOPLE.items()
    ]
    heads = "PHASE,RID,SITEID,VISCODE,USERDATE,ARM,ENROLLED"
    return pd.DataFrame(rows, columns=heads.split(","))


def demography_table():
    rows = [
        [rid, ptid, 1 if sex == "Male" else 2, 16, 1936, 4]
        for rid, (ptid, _, _, _, _, sex) in PEOPLE.items()
    ]
    heads = "RID,PTID,PTGENDER,PTEDUCAT,PTDOBYY,PTDOBMM"
    return pd.DataFrame(rows, columns=heads.split(","))


def site_of(rid):
    return PEOPLE[rid][2]


def write_image(root, ptid, description, day, number, name="scan.nii"):
    folder = root / ptid / description / day / number
    folder.mkdir(parents=True)
    (folder / name).write_bytes(b"nothing was measured")
    return folder


def write_images(root, images=IMAGES):
    for one in images:
        write_image(root, *one)
    return root


def replace_by_connectomes(root, atlas):
    """Put a named connectome where each diffusion image was."""
    names = list(atlas.names)
    for seed, place in enumerate(sorted(root.glob("*/*DTI*/*/I*"))):
        (place / "scan.nii").unlink()
        W = np.random.default_rng(seed).poisson(9.0, (len(names), len(names)))
        table = pd.DataFrame((W + W.T).astype(float), names, names)
        table.to_csv(place / "my_connectivity.csv")
