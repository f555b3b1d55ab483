"""Read the files of an atlas: `atlas.json`, annotations and meshes.

`atlas.json` says what tools call the atlas; it is checked by key and by value.
Annotations are FreeSurfer's, meshes are GIFTI surfaces.
"""

import difflib
import json
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Annotated, NamedTuple, TypedDict, cast, get_type_hints

import numpy as np

from brainlsap.atlas.region_names import as_text
from brainlsap.exceptions import FileFormatError, convert_reading_errors

SPACES = ("MNI152", "MNI305")
"""Spaces that the coordinates of an atlas may have."""


class _ValueCheck(NamedTuple):
    """Description of valid values, for messages, and the function that checks them."""

    expected_text: str
    is_valid_function: Callable[[object], bool]


def _is_text(json_value: object) -> bool:
    return isinstance(json_value, str) and bool(json_value.strip())


def _is_index(json_value: object) -> bool:
    return (
        isinstance(json_value, int)
        and not isinstance(json_value, bool)
        and json_value >= 0
    )


def _is_list_of_texts(json_value: object) -> bool:
    return isinstance(json_value, list) and all(map(_is_text, json_value))


def _is_list_of_lower_case_texts(json_value: object) -> bool:
    return (
        _is_list_of_texts(json_value)
        and json_value != []
        and str(json_value) == str(json_value).lower()
    )


def _is_dict_of_texts(json_value: object) -> bool:
    return isinstance(json_value, dict) and all(
        map(_is_text, (*json_value, *json_value.values()))
    )


def _is_dict_by_size(json_value: object) -> bool:
    return (
        isinstance(json_value, dict)
        and _is_dict_of_texts(json_value)
        and all(
            size_text.isascii() and size_text.isdecimal() for size_text in json_value
        )
    )


def _is_permutation_from_one(json_value: object) -> bool:
    return (
        isinstance(json_value, list)
        and all(map(_is_index, json_value))
        and sorted(json_value) == list(range(1, len(json_value) + 1))
    )


def _is_pair_of_numbers(json_value: object) -> bool:
    return (
        isinstance(json_value, list)
        and len(json_value) == 2
        and all(map(_is_index, json_value))
    )


def _is_dict_of_text_lists(json_value: object) -> bool:
    return isinstance(json_value, dict) and all(
        _is_text(key_text) and _is_list_of_texts(value_texts)
        for key_text, value_texts in json_value.items()
    )


def _is_dict_of_number_pairs(json_value: object) -> bool:
    return isinstance(json_value, dict) and all(
        _is_text(measure_name) and _is_pair_of_numbers(field_numbers)
        for measure_name, field_numbers in json_value.items()
    )


def _is_medial_wall_record(json_value: object) -> bool:
    if not isinstance(json_value, dict) or json_value.keys() != {"size", "rows"}:
        return False
    n_matrix_rows, row_index_pairs = json_value["size"], json_value["rows"]
    if not _is_index(n_matrix_rows) or not isinstance(row_index_pairs, list):
        return False
    return all(
        _is_pair_of_numbers(row_index_pair) and max(row_index_pair) < n_matrix_rows
        for row_index_pair in row_index_pairs
    )


_TEXT = _ValueCheck("a text", _is_text)
_TEXTS = _ValueCheck("a list of texts", _is_list_of_texts)
_WORDS = _ValueCheck("a list of words in lower case", _is_list_of_lower_case_texts)
_TEXT_BY_TEXT = _ValueCheck("a dictionary from text to text", _is_dict_of_texts)
_TEXT_BY_SIZE = _ValueCheck(
    "a dictionary from a number of rows to text, for example {'68': 'cortex only'}",
    _is_dict_by_size,
)
_TEXTS_BY_TEXT = _ValueCheck(
    "a dictionary from text to lists of texts", _is_dict_of_text_lists
)
_FIELDS = _ValueCheck(
    "the first UK Biobank field of the left and of the right cortex, for each "
    "measure, for example {'thickness': [27403, 27625]}",
    _is_dict_of_number_pairs,
)
_SPACE = _ValueCheck(" or ".join(SPACES), lambda value: value in SPACES)
_SWITCH = _ValueCheck("true or false", lambda value: isinstance(value, bool))
_INDEX = _ValueCheck("a whole number of at least 0", _is_index)
_ORDER = _ValueCheck(
    "a list of the numbers from 1 to the number of parcels, each once",
    _is_permutation_from_one,
)
_WALLS = _ValueCheck(
    "{'size': number of rows of the matrix, 'rows': [[left, right], ...]}, with "
    "rows counted from 0",
    _is_medial_wall_record,
)


class MedialWallRows(TypedDict):
    """Size of matrices that keep the medial walls, and the rows of these, from 0."""

    size: int
    rows: list[list[int]]


class AtlasSettings(TypedDict, total=False):
    """Contents of `atlas.json`: every key with its type and the check of its value.

    `atlases/README.md` explains the keys.
    """

    citation: Annotated[str, _TEXT]
    space: Annotated[str, _SPACE]
    annotation: Annotated[str, _TEXT]
    segmentation: Annotated[str, _TEXT]
    file_words: Annotated[list[str], _WORDS]
    other_words: Annotated[list[str], _WORDS]
    image_patterns: Annotated[list[str], _TEXTS]
    mrtrix: Annotated[str, _TEXT]
    ukbiobank: Annotated[str, _TEXT]
    ukbiobank_fields: Annotated[dict[str, list[int]], _FIELDS]
    ukbiobank_volumes: Annotated[dict[str, str], _TEXT_BY_TEXT]
    surfaces: Annotated[str, _TEXT]
    parts: Annotated[dict[str, list[str]], _TEXTS_BY_TEXT]
    order_17networks: Annotated[list[int], _ORDER]
    unnamed_rows: Annotated[bool, _SWITCH]
    wall: Annotated[int, _INDEX]
    walls: Annotated[MedialWallRows, _WALLS]
    sizes: Annotated[dict[str, str], _TEXT_BY_SIZE]
    atlas_by_size: Annotated[dict[str, str], _TEXT_BY_SIZE]
    ucsf_structures: Annotated[dict[str, str], _TEXT_BY_TEXT]
    remake_connectome: Annotated[str, _TEXT]
    remake_values: Annotated[str, _TEXT]
    notes: Annotated[list[str], _TEXTS]


_CORTEX_SIZE_BY_NODE_TABLE = {"fs_default.txt": 68, "fs_a2009s.txt": 148}
"""Numbers of cortical nodes of the tables that come with MRtrix, by table."""

_VALUE_CHECKS: dict[str, _ValueCheck] = {
    setting_name: annotated_type.__metadata__[0]
    for setting_name, annotated_type in get_type_hints(
        AtlasSettings, include_extras=True
    ).items()
}


def read_atlas_settings(path: Path, n_cortical_regions: int) -> AtlasSettings:
    """Read and check `atlas.json` of an atlas with so many cortical regions.

    Raises
    ------
    FileFormatError
        If the file is no JSON object, a key is unknown or stands twice, or a value is
        not what its key needs.
    """
    with convert_reading_errors(path, "JSON"):
        atlas_settings = json.loads(
            path.read_text(encoding="utf-8"),
            object_pairs_hook=partial(_build_dict_without_repeats, path),
        )
    if not isinstance(atlas_settings, dict):
        raise FileFormatError(
            "the file must contain a JSON object, {...}. See atlases/README.md for "
            "its keys.",
            path=path,
        )
    for setting_name, setting_value in atlas_settings.items():
        value_check = _VALUE_CHECKS.get(setting_name)
        if value_check is None:
            (nearest_key,) = difflib.get_close_matches(
                setting_name, _VALUE_CHECKS, 1, cutoff=0.0
            )
            raise FileFormatError(
                f"the key {setting_name!r} is unknown, and the most similar valid "
                f"key is {nearest_key!r}. Correct the key, or remove it "
                "(atlases/README.md explains all keys).",
                path=path,
            )
        if not value_check.is_valid_function(setting_value):
            raise FileFormatError(
                f"{setting_name} must be {value_check.expected_text}",
                path=path,
                got=repr(setting_value)[:80],
            )
    n_ordered_parcels = len(
        atlas_settings.get("order_17networks", range(n_cortical_regions))
    )
    if n_ordered_parcels != n_cortical_regions:
        raise FileFormatError(
            f"order_17networks must have {n_cortical_regions} numbers, one for each "
            "cortical region",
            path=path,
            got=str(n_ordered_parcels),
        )
    node_table_name = str(atlas_settings.get("mrtrix"))
    n_cortical_nodes = _CORTEX_SIZE_BY_NODE_TABLE.get(
        node_table_name, n_cortical_regions
    )
    if n_cortical_nodes != n_cortical_regions:
        raise FileFormatError(
            f"the nodes of MRtrix's {node_table_name} are not the regions of this "
            f"atlas: expected {n_cortical_nodes} cortical regions",
            path=path,
            got=str(n_cortical_regions),
            advice="Remove `mrtrix`, or write the table that makes these nodes",
            kind="other nodes",
        )
    return cast(AtlasSettings, atlas_settings)


def _build_dict_without_repeats(
    path: Path, key_value_pairs: list[tuple[str, object]]
) -> dict[str, object]:
    """Return pairs of a JSON object as a dictionary; refuse a key that stands twice."""
    json_keys = [json_key for json_key, _ in key_value_pairs]
    repeated_keys = [
        json_key for json_key in json_keys if json_keys.count(json_key) > 1
    ]
    if repeated_keys:
        raise FileFormatError(
            f"the key {repeated_keys[0]} is repeated. Keep only one of its entries.",
            path=path,
        )
    return dict(key_value_pairs)


def read_annotation(path: str | Path) -> tuple[np.ndarray, list[str]]:
    """Read a `.annot` file.

    Return the name index of every vertex (-1: none), and the names. nibabel drops names
    if the indices of the table are out of order or have gaps, so it is not used.
    """
    with convert_reading_errors(path, "a FreeSurfer annotation"):
        byte_stream = BytesIO(Path(path).read_bytes())

        def read_integers(n_integers: int) -> np.ndarray:
            return np.frombuffer(
                byte_stream.read(4 * n_integers), ">i4", n_integers
            ).astype(int)

        n_vertices = read_integers(1)[0]
        vertex_color_codes = read_integers(2 * n_vertices).reshape(-1, 2)[:, 1]
        _, n_names = read_integers(2)  # the first says that a table of names follows
        # Newer files have minus their version here. The largest index then comes before
        # the table's file name, the number of names after it, and each name's index
        # before the name.
        is_new_format = n_names < 0
        # Skip the file name of the table.
        byte_stream.read(read_integers(1 + is_new_format)[-1])
        if is_new_format:
            n_names = read_integers(1)[0]
        region_names: list[str] = []
        name_index_by_color = {0: -1}
        clash_text_by_color: dict[int, str] = {}
        for i in range(n_names):
            name_bytes = byte_stream.read(read_integers(1 + is_new_format)[-1])
            region_names.append(as_text(name_bytes.rstrip(b"\0")))
            color_code = int(read_integers(4)[:3] @ [1, 2**8, 2**16])
            if name_index_by_color.setdefault(color_code, i) not in (-1, i):
                clash_text_by_color[color_code] = (
                    f"{region_names[name_index_by_color[color_code]]} and "
                    f"{region_names[i]}"
                )
        used_color_codes, vertex_color_indices = np.unique(
            vertex_color_codes, return_inverse=True
        )
        for color_code, clashing_names_text in clash_text_by_color.items():
            if color_code in used_color_codes:
                raise ValueError(
                    f"{clashing_names_text} have the same colour. Give each region a "
                    "different colour."
                )
        if not set(used_color_codes.tolist()) <= set(name_index_by_color):
            raise ValueError("a vertex has a label that has no name in the file")
    used_color_name_indices = np.array(
        [name_index_by_color[color_code] for color_code in used_color_codes.tolist()]
    )
    return used_color_name_indices[vertex_color_indices], region_names


def read_mesh(mesh_path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Read vertices (n_vertices, 3) and faces (n_faces, 3) of a GIFTI surface."""
    from nibabel.gifti import GiftiImage

    with convert_reading_errors(mesh_path, "a GIFTI surface"):
        gifti_image = GiftiImage.from_filename(mesh_path)
        vertices, faces = gifti_image.agg_data(("pointset", "triangle"))
        return vertices.astype(float).reshape(-1, 3), faces.astype(int).reshape(-1, 3)


def read_fsaverage5_mesh(
    hemisphere: str, surface_kind: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return vertices (mm) and faces of fsaverage5's white, pial, infl or sphere."""
    # Read nilearn's files without importing nilearn, which would import matplotlib.
    nilearn_spec = find_spec("nilearn")
    nilearn_folder = Path(
        nilearn_spec.origin if nilearn_spec and nilearn_spec.origin else "nilearn"
    ).parent
    side_word = {"L": "left", "R": "right"}[hemisphere]
    mesh_path = (
        nilearn_folder
        / "datasets"
        / "data"
        / "fsaverage5"
        / f"{surface_kind}_{side_word}.gii.gz"
    )
    return read_mesh(mesh_path)
