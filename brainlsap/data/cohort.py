"""The cohort: scans of people as frozen, aligned arrays with named axes."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from brainlsap.arrays import (
    MAX_ABSOLUTE,
    as_number_array,
    fill_masked_values,
    make_plain_series,
    make_plain_table,
    match_class_name,
    pack_scans,
)
from brainlsap.atlas import Atlas, available_atlases, load_atlas
from brainlsap.atlas.region_names import are_default_row_names, is_non_region_name
from brainlsap.data.connectomes import (
    read_connectome,
    treat_negative_weights_with_notes,
)
from brainlsap.data.covariates import (
    KEY_COLUMNS,
    MISSING_CODES,
    find_covariate_faults,
    unify_number_labels,
)
from brainlsap.data.dates import find_visit_date_columns
from brainlsap.data.find_files import to_bare_id
from brainlsap.data.flow import LEFT_OUT_COLUMNS, NOT_SELECTED, left_out_table
from brainlsap.data.id_columns import (
    are_yes_no,
    choose_person_column,
    find_person_column_names,
    find_session_column_name,
    to_table_cells,
)
from brainlsap.data.order_check import check_arrays
from brainlsap.data.participants import (
    UNLABELLED,
    find_absent_class_faults,
    make_unordered_class_notes,
    order_classes,
    refuse_continuous,
)
from brainlsap.data.reading_options import NO_CONNECTOME, ReadingOptions
from brainlsap.data.tables import (
    ID_COLUMNS,
    MISSING_CELLS,
    PEOPLE_COLUMNS,
    find_column_name,
    is_formula_error,
    is_missing_word,
)
from brainlsap.exceptions import CohortError, ParameterError, convert_reading_errors
from brainlsap.files import replace_when_whole
from brainlsap.findings import (
    ASSUMED,
    CLASSES,
    FAULT,
    LEFT_OUT,
    Finding,
    check_are_faults,
    list_grouped_finding_texts,
    make_fault_findings,
    make_findings,
)
from brainlsap.text import count_text, join_with_and, join_with_commas

NOT_GIVEN = "not given, so every scan counts as a separate person"
COHORT_SUFFIXES = (".h5", ".hdf5")
COHORT_FORMAT, COHORT_FORMAT_VERSION = "brainlsap cohort", 4
# Connectomes of more bytes stay in the file, and are read when they are used.
MAPPED_BYTES = 1_000_000_000
# Two triangles that were averaged or rescaled may differ in float32's last bits.
_SYMMETRY = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Cohort:
    """Scans of people: a connectome, regional features and a label for each.

    The arrays are checked once, here, and cannot be written to afterwards. All of
    them follow the same order of scans (`table`) and of regions (`atlas`).

    Parameters
    ----------
    connectomes : array of shape (n_scans, n_rois, n_rois)
        Symmetric, finite, not negative; kept as float32. One matrix for everybody is
        best given as `np.broadcast_to(matrix, (n_scans, n_rois, n_rois))`, which
        costs the memory of one matrix.
    features : array of shape (n_scans, n_rois, n_features)
        In the units of the files that they come from, float64; NaN where not measured.
    table : DataFrame
        One row per scan: scan (unique), participant (the person), session (visit of
        the person, may be empty) and label, all as text; then any covariates.
    atlas : Atlas
        Names the regions of the second axis.
    feature_names : tuple of str
        Names the last axis of `features`.
    classes : tuple of str
        The labels in order of stage; holds every label of `table`. Those that no scan
        has are left out.
    classes_ordered : bool, optional
        Whether that order is known; by default as :func:`.order_classes` says.
    label_name : str
        Name of the label, for example `"diagnosis"`.
    findings : sequence of Finding or str
        Notes on what was mapped, mirrored or left out while reading. A text is a note.
    provenance : dict
        Origin of the cohort; must be expressible as JSON.
    reading_options : ReadingOptions
        The options with which it was read, as far as they are known.
    truth : DataFrame, optional
        For simulated cohorts: region, seed (bool), effect (float).
    left_out : DataFrame, optional
        Scans of the study's tables that are not in `table`: scan, participant, session,
        fate (why it was left out, in a word) and reason.

    Raises
    ------
    CohortError
        With every fault, where the parts do not fit each other.
    """

    connectomes: np.ndarray
    features: np.ndarray
    table: pd.DataFrame
    atlas: Atlas
    feature_names: tuple[str, ...]
    classes: tuple[str, ...]
    classes_ordered: bool | None = None
    label_name: str = "diagnosis"
    findings: Sequence[Finding | str] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    truth: pd.DataFrame | None = None
    reading_options: ReadingOptions = field(default_factory=ReadingOptions)
    left_out: pd.DataFrame = field(default_factory=left_out_table)

    def __post_init__(self) -> None:
        set_attribute = object.__setattr__
        for array_name, array_dtype in (
            ("connectomes", np.float32),
            ("features", np.float64),
        ):
            number_array = as_number_array(getattr(self, array_name))
            is_broadcast_array = (
                number_array.ndim == 3
                and len(number_array) > 1
                and number_array.strides[0] == 0
            )
            array_shape, number_array = (
                number_array.shape,
                number_array[0] if is_broadcast_array else number_array,
            )
            base_array = number_array.base
            is_read_only = not number_array.flags.writeable and (
                base_array is None
                or (isinstance(base_array, np.memmap) and base_array.mode == "r")
            )
            if (
                not is_read_only or number_array.dtype != array_dtype
            ):  # others could still write to it
                with np.errstate(over="ignore"):  # refused as infinite below
                    number_array = np.array(number_array, dtype=array_dtype, order="C")
                number_array.flags.writeable = False
            set_attribute(
                self,
                array_name,
                np.broadcast_to(number_array, array_shape)
                if is_broadcast_array
                else number_array,
            )
        set_attribute(self, "feature_names", tuple(self.feature_names))
        set_attribute(self, "classes", tuple(map(str, self.classes)))
        set_attribute(self, "findings", make_findings(self.findings))
        if self.classes_ordered is None:
            has_known_order = order_classes(self.classes) == (self.classes, True)
            set_attribute(self, "classes_ordered", has_known_order)
        set_attribute(self, "table", make_plain_table(self.table))
        if fault_findings := _find_cohort_faults(self):
            check_are_faults(fault_findings)
            fault_texts = list_grouped_finding_texts(fault_findings)
            raise CohortError(
                "no cohort can be made from these arguments. Correct these faults",
                fault_texts,
            )
        scan_table = self.table
        for column_name in KEY_COLUMNS:
            scan_table[column_name] = _to_texts(scan_table[column_name])
        covariate_names = [
            column_name
            for column_name in scan_table.columns
            if column_name not in KEY_COLUMNS
        ]
        set_attribute(self, "table", scan_table[[*KEY_COLUMNS, *covariate_names]])
        # chance and scores count the classes that there are
        used_class_names = set(scan_table["label"])
        set_attribute(
            self,
            "classes",
            tuple(
                class_name
                for class_name in self.classes
                if class_name in used_class_names
            ),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for other processes, with a shared connectome once."""
        value_by_attribute = vars(self).copy()
        if self.shares_connectome:
            value_by_attribute["connectomes"] = np.array(self.connectomes[:1])
        return value_by_attribute

    def __sizeof__(self) -> int:
        """Return the bytes of what travels: joblib sends large objects once a worker.

        Dask asks for this size; it would pickle a small object for every task.
        """
        W = self.connectomes[:1] if self.shares_connectome else self.connectomes
        return object.__sizeof__(self) + W.nbytes + self.features.nbytes

    def __setstate__(self, value_by_attribute: dict[str, Any]) -> None:
        W, X = value_by_attribute["connectomes"], value_by_attribute["features"]
        for number_array in (W, X):
            number_array.flags.writeable = False
        if len(W) == 1 < len(X):
            value_by_attribute["connectomes"] = np.broadcast_to(
                W[0], (len(X), *W.shape[1:])
            )
        vars(self).update(value_by_attribute)

    @staticmethod
    def from_arrays(
        connectomes: np.ndarray
        | pd.DataFrame
        | Sequence[pd.DataFrame]
        | Mapping[str, pd.DataFrame]
        | None,
        features: np.ndarray | pd.DataFrame | Mapping[str, np.ndarray | pd.DataFrame],
        labels: Sequence[object] | None,
        *,
        groups: Sequence[object] | None = None,
        covariates: pd.DataFrame | Mapping[str, Sequence[object]] | None = None,
        feature_names: str | Sequence[str] | None = None,
        atlas: str | Path | Atlas | Sequence[str] = "destrieux160",
        classes: Sequence[str] | None = None,
        label_name: str = "diagnosis",
        negative: str = "refuse",
    ) -> "Cohort":
        """Make a cohort of arrays.

        Parameters
        ----------
        connectomes : array of shape (n_scans, n_rois, n_rois) or (n_rois, n_rois)
            One for each scan, or one for everybody; rows in the order of `atlas`. A
            DataFrame, or a list of them, is read by the names of rows and columns; a
            Series or dict of them names scans, as an index does. With None, models
            estimate one connectome from the features of the training people; inside
            scikit-learn, give the classifier `connectome="covariance"`.
        features : array of shape (n_scans, n_rois) or (n_scans, n_rois, n_features)
            NaN where not measured, or masked, or `pd.NA`. The columns of a DataFrame
            are read by name where they do more than count. Of several features also
            `{name: (n_scans, n_rois) array or DataFrame}`.
        labels : sequence of length n_scans
            Class of every scan, read as text; None for new people, to predict.
        groups : sequence of length n_scans, optional
            Person of every scan; by default as a column `participant_id`, `subject` ...
            of `covariates` says (not one of yes and no, or that only counts rows while
            another repeats as ids do), or an index of pandas (`sub-01_ses-M12` and
            `sub-01_ses-M24` are of one person; whole numbers are row numbers, unless
            the index, or one of its levels, has the name of an id, and then they may
            be repeated), else everybody has one.
        covariates : DataFrame or mapping, optional
            Such as age, sex and site, with one entry per scan; of a table of people
            `table.loc[groups]`.
        feature_names : str or sequence of str, optional
            By default those of a mapping, else `feature`, or `feature1` ...
        atlas : str, Path, Atlas or sequence of str
            As :func:`.load_atlas` takes it, such as the names of the regions.
        classes : sequence of str, optional
            Order of the classes, where it is not known by their names.
        label_name : str
            Name of the label.
        negative : {"refuse", "drop", "absolute"}
            Treatment of negative weights, for example of correlations. A fitted model
            stores this value, and :func:`brainlsap.read_new_people` uses it.

        Raises
        ------
        CohortError
            With every fault, where the parts do not fit each other.
        ParameterError
            If an argument cannot be used or has another length or other regions, or
            indexes of pandas name people twice without `groups`, or they or ids of
            `covariates` differ from each other or from `groups`.
        RegionNameError
            If names of columns are not those of all regions.
        FileFormatError
            If connectomes without names fit another order of rows than that of the
            atlas clearly better; name the rows of DataFrames then.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> cohort = Cohort.from_arrays(
        ...     np.ones((3, 3)),
        ...     rng.random((4, 3)),
        ...     ["CN", "AD", "CN", "AD"],
        ...     atlas=["area_L", "area_R", "stem"],
        ... )
        >>> cohort
        Cohort(4 scans of 4 people, 3 regions (own), feature, diagnosis)
        """
        atlas = load_atlas(atlas)
        covariates = _to_covariate_columns(covariates)
        connectomes = _to_connectome_series(connectomes)
        _check_order_of_arguments(connectomes, features)
        W, findings = _stack_weights_and_findings(connectomes, atlas, negative)
        feature_name_list, features_by_argument = _split_names_and_values(
            features, feature_names
        )
        findings = [
            *findings,
            *_make_nonatlas_column_notes(features_by_argument, atlas),
        ]
        features_by_argument = {
            column_name: _order_columns_by_atlas(column_name, x, atlas)
            for column_name, x in features_by_argument.items()
        }
        array_by_argument = {
            column_name: np.asarray(
                _to_number_array(column_name, feature_values), float
            )
            for column_name, feature_values in features_by_argument.items()
        }
        X, *further_feature_arrays = array_by_argument.values()
        labels = [UNLABELLED] * len(X) if labels is None else fill_masked_values(labels)
        groups = fill_masked_values(groups)
        values_by_covariate = {
            column_name: fill_masked_values(column_values)
            for column_name, column_values in covariates.items()
        }
        has_covariate_table = isinstance(
            covariates, pd.DataFrame
        )  # whose columns have one index
        connectome_series = connectomes if isinstance(connectomes, pd.Series) else None
        value_by_indexed_argument = {
            **features_by_argument,
            "labels": labels,
            "groups": groups,
            "connectomes": connectome_series,
            **(
                {"covariates": covariates}
                if has_covariate_table
                else values_by_covariate
            ),
        }
        groups, groups_place, covariate_person_ids = _pop_groups_of_covariates(
            groups, values_by_covariate, labels
        )
        _check_shapes(
            W,
            array_by_argument,
            labels,
            groups,
            values_by_covariate,
            atlas,
            groups_place=groups_place,
        )
        are_groups_in_index = groups is None
        if groups is None:
            groups, groups_place = _find_groups_in_index(value_by_indexed_argument)
        scan_pandas_index = _find_scan_pandas_index(
            value_by_indexed_argument, groups, groups_place
        )
        if X.ndim < 3:
            X = np.stack([X, *further_feature_arrays], axis=-1)
        n_scans = len(X)
        if W.ndim == 2:
            W = np.broadcast_to(W, (n_scans, *W.shape[-2:]))
        connectome_origin = "array" if W.strides[0] == 0 else "one per scan"
        if connectomes is None:
            connectome_origin = NO_CONNECTOME
        if feature_name_list is None:
            feature_name_list = _make_default_feature_names(X.shape[-1])
        scan_names, index_person_ids, session_ids = _split_index_into_ids(
            scan_pandas_index, n_scans
        )
        label_texts = unify_number_labels(_to_texts(labels))
        participant_ids = _to_texts(index_person_ids if groups is None else groups)
        _check_label_words(labels)
        _check_person_ids(
            scan_names,
            participant_ids,
            [index_person_ids, covariate_person_ids],
            groups_place,
        )
        _check_label_column(values_by_covariate, label_name, label_texts, scan_names)
        session_ids, visit_findings = _list_session_ids_and_notes(
            session_ids, values_by_covariate, participant_ids
        )
        findings = [*findings, *visit_findings]
        key_column_lists = (scan_names, participant_ids, session_ids, label_texts)
        scan_table = pd.DataFrame(
            dict(zip(KEY_COLUMNS, key_column_lists, strict=True))
            | {
                # A covariate called label is not the label.
                f"{column_name}_given"
                if column_name == "label"
                else column_name: make_plain_series(column_values)
                for column_name, column_values in values_by_covariate.items()
            }
        )
        ordered_class_names, are_classes_ordered = order_classes(label_texts, classes)
        if classes is None:
            refuse_continuous(label_name, ordered_class_names)
        n_scans_by_class = scan_table["label"].value_counts()
        if absent_class_findings := find_absent_class_faults(
            label_name, ordered_class_names, n_scans_by_class
        ):
            raise CohortError(
                "classes= contains classes that no scan has", absent_class_findings
            )
        if classes is None:
            findings = [*findings, *_make_class_order_notes(ordered_class_names)]
        findings = [*findings, *_list_unknown_side_notes(atlas)]
        are_people_unknown = groups is None and _has_only_row_numbers(scan_pandas_index)
        if are_groups_in_index:
            index_note = "not given, so participant IDs were read from the index"
            people_origin = NOT_GIVEN if are_people_unknown else index_note
            findings = [*findings, Finding(f"groups= {people_origin}")]
        return Cohort(
            connectomes=W,
            features=X,
            table=scan_table,
            atlas=atlas,
            feature_names=tuple(feature_name_list),
            classes=ordered_class_names,
            classes_ordered=are_classes_ordered,
            label_name=label_name,
            findings=(Finding("the cohort was made from arrays"), *findings),
            provenance={
                "connectome": connectome_origin,
                "people": NOT_GIVEN if are_people_unknown else "given",
            },
            reading_options=ReadingOptions(negative=negative),
        )

    def __repr__(self) -> str:
        n_people = self.table["participant"].nunique()
        return (
            f"Cohort({self.n_scans} scans of {n_people} people, {self.n_rois} regions "
            f"({self.atlas.name}), {', '.join(self.feature_names)}, {self.label_name})"
        )

    def _repr_html_(self) -> str:
        """Return a summary for notebooks, without names of people."""
        n_scans_by_label = self.table["label"].value_counts()
        value_by_title = {
            "people": self.table["participant"].nunique(),
            "scans": self.n_scans,
            self.label_name: ", ".join(
                f"{k} {n_scans_by_label.get(k, 0)}" for k in self.classes
            ),
            "features": ", ".join(self.feature_names),
            "feature values not measured": f"{1 - self.measured.mean():.1%}",
            "regions": f"{self.n_rois} ({self.atlas.name})",
            "connectomes": "one for all" if self.shares_connectome else "one per scan",
        }
        return pd.Series(value_by_title, dtype=object).to_frame("Cohort").to_html()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what was mapped, mirrored or left out while reading."""
        return tuple(map(str, self.findings))

    @property
    def n_scans(self) -> int:
        """Number of scans."""
        return self.features.shape[0]

    @property
    def n_rois(self) -> int:
        """Number of regions."""
        return self.features.shape[1]

    @property
    def n_features(self) -> int:
        """Number of features of every region."""
        return self.features.shape[2]

    @property
    def region_names(self) -> tuple[str, ...]:
        """Name of every region, in the order of the arrays."""
        return self.atlas.names

    @property
    def y(self) -> np.ndarray:
        """Label of every scan: object array of str, shape (n_scans,)."""
        return self.table["label"].to_numpy(dtype=object)

    @property
    def groups(self) -> np.ndarray:
        """Participant of every scan: object array of str, shape (n_scans,)."""
        return self.table["participant"].to_numpy(dtype=object)

    @property
    def measured(self) -> np.ndarray:
        """Mask of what was measured, shape (n_scans, n_rois, n_features)."""
        return ~np.isnan(self.features)

    @property
    def shares_connectome(self) -> bool:
        """Whether one matrix in memory serves all scans."""
        return len(self.connectomes) > 1 and self.connectomes.strides[0] == 0

    def select(
        self,
        rows: np.ndarray | Sequence[int] | Sequence[bool],
        *,
        fate: str | Sequence[str] = NOT_SELECTED,
    ) -> "Cohort":
        """Return the cohort of some scans; notes and truth stay, and their classes.

        Parameters
        ----------
        rows : bool array of shape (n_scans,), or int array
            A mask, or positions in the order wanted (each at most once).
        fate : str or sequence of str
            Fate of the other scans in the flow of participants, a key of
            `brainlsap.data.flow.FATE_TITLES`; a sequence has one entry for each scan.

        Returns
        -------
        Cohort

        Raises
        ------
        IndexError
            If `rows` is a mask of another length, or points outside.
        CohortError
            If it selects nothing, or a scan twice.
        """
        scan_indices = np.arange(self.n_scans)[np.asarray(rows)]
        W = self.connectomes
        array_shape = len(scan_indices), *W.shape[1:]
        W = (
            np.broadcast_to(W[0], array_shape)
            if self.shares_connectome
            else W[scan_indices]
        )
        W.flags.writeable = False  # else the new cohort copies it
        features, scan_table = (
            self.features[scan_indices],
            self.table.iloc[scan_indices],
        )
        dropped_table = self.table[["scan", "participant", "session"]].assign(
            fate=fate, reason=""
        )
        dropped_table = dropped_table.drop(index=self.table.index[scan_indices])
        return replace(
            self,
            connectomes=W,
            features=features,
            table=scan_table,
            left_out=pd.concat([self.left_out, dropped_table], ignore_index=True),
        )

    def to_array(self) -> np.ndarray:
        """Pack connectomes and features for scikit-learn.

        Returns
        -------
        float32 array of shape (n_scans, n_rois, n_rois + n_features)
            A copy; the connectome first, NaN where a feature was not measured.
        """
        return pack_scans(self.connectomes, self.features)

    def save(self, path: str | Path) -> Path:
        """Write the cohort to one HDF5 file, whole or not at all.

        The file holds the float32 connectomes (one matrix where all scans share it),
        one after the other with the CRC-32 of each, the features, and the rest as
        JSON. An existing file is replaced.

        Raises ParameterError where the name does not end with .h5 or .hdf5.
        """
        import h5py

        path = Path(path)
        if path.suffix.lower() not in COHORT_SUFFIXES:
            raise ParameterError(
                f"the name of a cohort file must end with .h5 or .hdf5; got "
                f"{path.name!r}."
            )
        W = self.connectomes[:1] if self.shares_connectome else self.connectomes
        attribute_names = ("feature_names", "classes", "classes_ordered", "label_name")
        metadata = {
            attribute_name: getattr(self, attribute_name)
            for attribute_name in (*attribute_names, "provenance")
        }
        metadata |= {
            "findings": [
                finding.to_jsonable() for finding in make_findings(self.findings)
            ],
            "reading_options": self.reading_options.to_jsonable(),
            "atlas": self.atlas.name,
            "regions": _to_json_cells_by_column(self.atlas.regions),
            "table": _to_json_cells_by_column(self.table),
            "truth": None
            if self.truth is None
            else _to_json_cells_by_column(self.truth),
            "left_out": _to_json_cells_by_column(self.left_out),
        }
        with (
            replace_when_whole(path) as partial_path,
            h5py.File(partial_path, "w", locking=False) as hdf_file,
        ):
            hdf_file.attrs["format"] = COHORT_FORMAT
            hdf_file.attrs["format_version"] = COHORT_FORMAT_VERSION
            # checksums turn a damaged file into an error instead of other numbers
            hdf_file["connectomes"] = W
            hdf_file["connectome_checksums"] = [crc32(matrix) for matrix in W]
            hdf_file.create_dataset(
                "features",
                data=self.features,
                chunks=(1, *self.features.shape[1:]),
                fletcher32=True,
            )
            # a dataset, since attributes end at 64 kB
            hdf_file["about"] = json.dumps(metadata)
        return path

    @staticmethod
    def load(path: str | Path) -> "Cohort":
        """Read a cohort that :meth:`save` has written.

        Connectomes of more than 1 GB stay in the file: all are checked once, then read
        when they are used.

        Raises
        ------
        FileFormatError
            If the file is missing, cut short, damaged, or something else.
        """
        import h5py

        path = Path(path)
        with (
            convert_reading_errors(path, "a cohort that Cohort.save wrote"),
            h5py.File(path, "r") as hdf_file,
        ):
            format_and_version = (
                hdf_file.attrs.get("format"),
                hdf_file.attrs.get("format_version"),
            )
            if format_and_version != (COHORT_FORMAT, COHORT_FORMAT_VERSION):
                expected_format_and_version = COHORT_FORMAT, COHORT_FORMAT_VERSION
                raise ValueError(
                    f"the format and version are {format_and_version}; expected "
                    f"{expected_format_and_version}. If another version of brainlsap "
                    "wrote the file, save the cohort again with this version"
                )
            for dataset_name in (
                "connectomes",
                "connectome_checksums",
                "features",
                "about",
            ):
                hdf_dataset = hdf_file[dataset_name]  # a header may promise terabytes
                if (
                    hdf_dataset.id.get_storage_size()
                    < hdf_dataset.size * hdf_dataset.dtype.itemsize
                ):
                    raise ValueError(
                        f"{dataset_name!r} in the file has fewer values than its "
                        "header states"
                    )
            metadata = json.loads(hdf_file["about"][()])
            W = _read_stored_weights(
                path, hdf_file["connectomes"], hdf_file["connectome_checksums"][()]
            )
            X = hdf_file["features"][()]
            for table_name in ("table", "regions", "truth"):
                if metadata[table_name] is not None:
                    metadata[table_name] = pd.DataFrame(metadata[table_name])
            # Files of earlier versions do not say who was left out.
            left_out_cells_by_column = metadata.get("left_out") or {}
            metadata["left_out"] = pd.DataFrame(
                left_out_cells_by_column, columns=LEFT_OUT_COLUMNS, dtype=object
            )
            W.flags.writeable = X.flags.writeable = False
            if len(W) == 1 < len(X):
                W = np.broadcast_to(W[0], (len(X), *W.shape[1:]))
            metadata["findings"] = [
                Finding.from_jsonable(finding) for finding in metadata["findings"]
            ]
            metadata["reading_options"] = ReadingOptions.from_jsonable(
                metadata["reading_options"]
            )
            atlas = Atlas(metadata.pop("atlas"), metadata.pop("regions"))
            if atlas.name in available_atlases():
                shipped_atlas = load_atlas(atlas.name)
                atlas = shipped_atlas if shipped_atlas.names == atlas.names else atlas
            return Cohort(connectomes=W, features=X, atlas=atlas, **metadata)


def _read_stored_weights(
    path: Path, hdf_dataset: Any, connectome_crc32s: np.ndarray
) -> np.ndarray:
    """Return the connectomes of a cohort's file, mapped to it if they are many."""
    byte_offset = hdf_dataset.id.get_offset()
    can_be_mapped = (
        hdf_dataset.nbytes > MAPPED_BYTES
        and hdf_dataset.dtype == np.float32
        and byte_offset is not None
    )
    if can_be_mapped:
        W: np.ndarray = np.memmap(path, np.float32, "r", byte_offset, hdf_dataset.shape)
    else:
        W = hdf_dataset[()]
    for scan_index, (matrix, connectome_crc32) in enumerate(
        zip(W, connectome_crc32s, strict=True)
    ):
        if crc32(matrix) != connectome_crc32:
            raise ValueError(
                f"connectome {scan_index + 1} has changed since the file was written. "
                "Save the cohort again"
            )
    return W


def check_cohort_given(cohort: object) -> None:
    """Raise where a function got something else, such as arrays, for its cohort."""
    if not hasattr(cohort, "connectomes"):  # of a module loaded anew, too
        raise ParameterError(
            f"cohort must be a Cohort; got {type(cohort).__name__}. Make a cohort with "
            "Cohort.from_arrays or load_cohort."
        )


def _to_covariate_columns(covariates: object) -> Mapping[str, Any] | pd.DataFrame:
    """Return covariates as columns; raise where they have none."""
    if covariates is None:
        return {}
    if not isinstance(covariates, Mapping | pd.DataFrame):
        type_name = type(covariates).__name__
        raise ParameterError(
            f"covariates must be a DataFrame or dict; got {type_name}."
        )
    return covariates


def _to_connectome_series(connectomes: Any) -> Any:
    """Return connectomes; those of a mapping as a Series, whose index names scans."""
    if not isinstance(connectomes, Mapping):
        return connectomes
    connectome_tables = [*connectomes.values()]
    return pd.Series(connectome_tables, [*connectomes], dtype=object)


def _make_default_feature_names(n_features: int) -> list[str]:
    """Return names of features that have none."""
    if n_features <= 1:
        return ["feature"]
    return [f"feature{i + 1}" for i in range(n_features)]


def _split_index_into_ids(
    scan_pandas_index: pd.Index | None, n_scans: int
) -> tuple[list[str], list[str], list[str]]:
    """Return scan, person and session of every scan, as the index names them."""
    if scan_pandas_index is None:
        n_digits = len(str(n_scans))
        scan_ids = [f"scan{i:0{n_digits}d}" for i in range(1, n_scans + 1)]
        return scan_ids, scan_ids, [""] * n_scans
    scan_ids = [
        "_".join(map(str, np.atleast_1d(index_entry)))
        for index_entry in scan_pandas_index
    ]
    scan_id_partitions = [scan_id.partition("_ses-") for scan_id in scan_ids]
    return (
        scan_ids,
        [participant_id for participant_id, *_ in scan_id_partitions],
        [session_id for *_, session_id in scan_id_partitions],
    )


def _list_session_ids_and_notes(
    index_session_ids: list[str],
    values_by_covariate: Mapping[str, Any],
    participant_ids: Sequence[str],
) -> tuple[list[str], list[Finding]]:
    """Return the visit of every scan by the index or covariates, or a note.

    Without names of visits, the first scan of a person is not known.
    """
    if any(index_session_ids):
        return index_session_ids, []
    column_by_text = {str(name): name for name in values_by_covariate}
    session_column_name = find_session_column_name(column_by_text)
    if session_column_name is not None:
        session_values = values_by_covariate[column_by_text[session_column_name]]
        session_ids = [
            (cell_text or "").removesuffix(" 00:00:00").removesuffix(".0")
            for cell_text in to_table_cells(session_values)
        ]
        scan_keys = {*zip(participant_ids, session_ids, strict=True)}
        if len(scan_keys) == len(session_ids):
            return session_ids, []
    n_people = sum(n_scans > 1 for n_scans in Counter(participant_ids).values())
    if not n_people:
        return index_session_ids, []
    reason_text = "no column of covariates= names the visits of"
    if session_column_name is not None:
        reason_text = (
            f"the column {session_column_name} of covariates= has the same visit twice "
            "in some of"
        )
    advice = "Name the visits of the scans in a column session"
    date_column_names = find_visit_date_columns(column_by_text)
    if date_column_names:
        advice = f"{advice}, for example rename {date_column_names[0]} to session"
    message = (
        f"{reason_text} {count_text(n_people, 'person')} with several scans, so the "
        "first row of a person counts as the first visit"
    )
    return index_session_ids, [Finding(message, kind=ASSUMED, advice=advice)]


def _list_unknown_side_notes(atlas: Atlas) -> list[Finding]:
    """Return the note that no region has a hemisphere, if so."""
    if (atlas.regions["hemisphere"] != "M").any():
        return []
    return [
        Finding(
            f"the hemispheres of all {len(atlas)} regions are unknown (first "
            f"{atlas.names[0]}), so all count as midline regions. Give "
            'Atlas.from_names(names, hemispheres=["L", "R", ...]), or names such as '
            "lh_insula"
        )
    ]


def _make_class_order_notes(classes: Sequence[str]) -> list[Finding]:
    """Return a note if three or more classes have no order, or the order of numbers.

    The names of stages, which are ordered as well, end in letters.
    """
    if order_notes := make_unordered_class_notes(classes):
        return order_notes
    if len(classes) <= 2 or not classes[0][-1].isdecimal():
        return []
    message = (
        f"the classes {' < '.join(classes)} are numbers, so they were treated as "
        "ordered. If they have no order, write them as words"
    )
    return [Finding(message, kind=CLASSES)]


def _stack_weights_and_findings(
    connectomes: Any, atlas: Atlas, negative: str
) -> tuple[np.ndarray, Sequence[Finding | str]]:
    """Return the weights in the order of the atlas, and notes; tables by their names.

    The array has two axes for one connectome for everybody, and zeros without any.
    """
    if connectomes is None:
        zero_matrix = np.zeros((len(atlas), len(atlas)), dtype=np.float32)
        return zero_matrix, [
            Finding(
                "no connectomes were given, so models estimate one connectome from "
                "the features of the training people; inside scikit-learn, give the "
                "classifier connectome='covariance'"
            )
        ]
    if isinstance(connectomes, pd.DataFrame):
        if len({*connectomes.shape}) > 1:
            raise ParameterError(
                "connectomes is a DataFrame, so it must be square; got shape "
                f"{connectomes.shape}. For several scans, give a list of "
                "DataFrames, or a dict {scan: DataFrame}."
            )
        shared_connectome_record = read_connectome(
            connectomes, atlas, negative=negative
        )
        return shared_connectome_record.matrix, shared_connectome_record.findings
    matrices = connectomes
    if isinstance(connectomes, pd.Series):
        matrices = [*connectomes]
    if any(isinstance(connectome_table, pd.DataFrame) for connectome_table in matrices):
        connectome_records = [
            read_connectome(connectome_table, atlas, negative=negative)
            for connectome_table in matrices
        ]
        findings = list[Finding]()
        for connectome_record in connectome_records:
            findings += [
                finding
                for finding in connectome_record.findings
                if finding not in findings
            ]
        return np.array(
            [connectome_record.matrix for connectome_record in connectome_records]
        ), findings
    W = _to_number_array("connectomes", matrices)
    n_rois = len(atlas)
    if W.ndim not in (2, 3) or W.shape[-2:] != (n_rois, n_rois):
        return W, []  # the error of the shape comes before that of the weights
    check_arrays(W, atlas)
    return treat_negative_weights_with_notes(W, negative)


def _check_order_of_arguments(connectomes: object, features: object) -> None:
    """Raise if features come first, as the data come in scikit-learn."""
    connectomes_shape: tuple[int, ...] = getattr(connectomes, "shape", ())
    features_shape: tuple[int, ...] = getattr(features, "shape", ())
    if len(connectomes_shape) == 2 and features_shape == (
        *connectomes_shape,
        connectomes_shape[1],
    ):
        raise ParameterError(
            "connectomes must have shape (n_scans, n_rois, n_rois); got "
            f"{connectomes_shape}. The argument features has such a shape: "
            f"{features_shape}. Give connectomes first, then features."
        )


def _split_names_and_values(
    features: Any, feature_names: str | Sequence[str] | None
) -> tuple[Sequence[str] | None, dict[str, Any]]:
    """Return the names of features, if they are known, and the values by argument."""
    feature_name_list = (
        [feature_names] if isinstance(feature_names, str) else feature_names
    )
    if not isinstance(features, Mapping):
        return feature_name_list, {"features": features}
    feature_name_list = (
        [*features] if feature_name_list is None else [*feature_name_list]
    )
    if {*feature_name_list} != {*features}:
        raise ParameterError(
            f"features contains {', '.join(map(str, features))}; expected "
            f"{', '.join(feature_name_list)}. Use the name of each feature as the key "
            "of its array."
        )
    return feature_name_list, {
        f"features[{feature_name!r}]": features[feature_name]
        for feature_name in feature_name_list
    }


def _check_shapes(
    W: np.ndarray,
    features_by_argument: Mapping[str, np.ndarray],
    labels: Sequence[object],
    groups: Sequence[object] | None,
    values_by_covariate: Mapping[str, Any],
    atlas: Atlas,
    *,
    groups_place: str,
) -> None:
    """Raise unless all arrays are of as many scans as labels and of the regions.

    `groups_place` is the argument, or the covariate, that the groups are from.
    """
    n_scans, n_rois = len(labels), len(atlas)
    scan_region_shape = (n_scans, n_rois)
    shapes_by_argument: dict[str, list[tuple[int, ...]]] = {
        argument_name: [scan_region_shape] for argument_name in features_by_argument
    }
    shapes_by_argument["connectomes"] = [
        (*scan_region_shape, n_rois),
        (n_rois, n_rois),
    ]
    if "features" in features_by_argument:
        X = features_by_argument["features"]
        feature_axis_shape = (
            X.shape[2:3] if X.shape[:2] == scan_region_shape else ("n_features",)
        )
        shapes_by_argument["features"] = [
            scan_region_shape,
            (*scan_region_shape, *feature_axis_shape),
        ]
    array_by_argument: dict[str, Any] = {
        "connectomes": W,
        **features_by_argument,
        "labels": labels,
    }
    if groups is not None:
        array_by_argument[groups_place] = groups
    array_by_argument |= {
        f"covariates[{argument_name!r}]": covariate_values
        for argument_name, covariate_values in values_by_covariate.items()
    }
    # With one scan, the first axis of the features would be taken for scans.
    for argument_name, feature_values in features_by_argument.items():
        if np.shape(feature_values) == (n_rois,) == (n_scans,):
            raise ParameterError(
                f"{argument_name} must have shape (n_scans, {n_rois}), with one row "
                f"for each scan; got shape {np.shape(feature_values)}. For one scan, "
                f"give {argument_name}[np.newaxis]."
            )
    _check_number_of_labels(array_by_argument, is_connectome_shared=np.ndim(W) == 2)
    for argument_name, argument_array in array_by_argument.items():
        allowed_shapes = dict.fromkeys(
            shapes_by_argument.get(argument_name, [(n_scans,)])
        )
        if np.shape(argument_array) not in allowed_shapes:
            expected_text = " or ".join(map(str, allowed_shapes)).replace("'", "")
            argument_shape = np.shape(argument_array)
            advice_text = (
                "For regions of another atlas, name it with the argument atlas."
            )
            if argument_name.startswith(("groups", "covariates[")):
                advice_text = _scan_column_advice(argument_name, groups_place, n_scans)
            elif argument_shape[1:] in [shape[1:] for shape in allowed_shapes]:
                advice_text = (
                    f"Give one entry of {argument_name} for each of the {n_scans} "
                    "labels."
                )
            raise ParameterError(
                f"{argument_name} must have shape {expected_text}, for {n_scans} "
                f"scans and {n_rois} regions ({atlas.name}); got {argument_shape}. "
                f"{advice_text}"
            )


def _scan_column_advice(argument_name: str, groups_place: str, n_scans: int) -> str:
    """Return the advice on an argument that needs one entry for each scan."""
    if argument_name == "groups":
        return f"Give the participant ID of each of the {n_scans} scans."
    if groups_place != "groups":
        return f"Give covariates with one row for each of the {n_scans} scans."
    return (
        "If the table has one row per person, use table.loc[groups] to make one row "
        "per scan."
    )


def _check_number_of_labels(
    array_by_argument: Mapping[str, Any], *, is_connectome_shared: bool
) -> None:
    """Raise if labels alone have another number of entries than all other arrays.

    `is_connectome_shared` says that one connectome is of all scans.
    """
    argument_names_by_length: dict[int, list[str]] = {}
    for argument_name, argument_array in array_by_argument.items():
        is_per_scan = not (is_connectome_shared and argument_name == "connectomes")
        if argument_name != "labels" and is_per_scan and np.ndim(argument_array):
            first_axis_length = np.shape(argument_array)[0]
            argument_names_by_length.setdefault(first_axis_length, []).append(
                argument_name
            )
    n_labels = len(array_by_argument["labels"])
    if len(argument_names_by_length) != 1 or n_labels in argument_names_by_length:
        return
    [(n_scans, argument_names)] = argument_names_by_length.items()
    if len(argument_names) < 2:
        return
    raise ParameterError(
        f"labels has {n_labels} entries; {join_with_and(argument_names)} have "
        f"{n_scans}. Give one label for each scan."
    )


def _check_label_words(label_cells: Sequence[object]) -> None:
    """Raise if a label is a word that counts as missing."""
    label_texts = [
        label_text for label_text in label_cells if isinstance(label_text, str)
    ]
    label_texts = [
        label_text for label_text in label_texts if label_text.lower() != "nan"
    ]  # NumPy's, of text
    if missing_words := list(filter(is_missing_word, label_texts)):
        raise ParameterError(
            f"labels= contains {missing_words[0]!r} for "
            f"{count_text(missing_words.count(missing_words[0]), 'scan')}. This word "
            f"means that a label is missing. If {missing_words[0]!r} is the name of a "
            "class, rename the class. Otherwise, leave these scans out."
        )


def _check_person_ids(
    scan_ids: Sequence[str],
    participant_ids: Sequence[str],
    person_id_lists: Sequence[Sequence[object]],
    groups_place: str,
) -> None:
    """Raise if an index or ids name other people of a cohort, or people are scans."""
    participant_id_set = {*participant_ids}
    groups_text = _groups_text(groups_place)
    other_place_text = "an index"
    if groups_place == "groups":
        other_place_text = "an index or in the ID column of covariates"
    for person_ids in person_id_lists:
        for scan_id, person_id, participant_id in zip(
            scan_ids, person_ids, participant_ids, strict=False
        ):
            if person_id != participant_id and person_id in participant_id_set:
                raise ParameterError(
                    f"the scan {scan_id} has the participant ID {participant_id!r} in "
                    f"{groups_text}, but {person_id!r} in {other_place_text}. Use the "
                    "same participant IDs in all arguments.",
                    kind="other participant",
                    values={
                        "scan": scan_id,
                        "id_in_groups": participant_id,
                        "id_in_index": person_id,
                    },
                )
    scan_like_ids = [
        participant_id
        for participant_id in participant_ids
        if "_ses-" in participant_id
    ]
    if scan_like_ids:
        participant_id = scan_like_ids[0].partition("_ses-")[0]
        raise ParameterError(
            f"{groups_text} must contain participant IDs, for example "
            f"{participant_id}; got the scan name {scan_like_ids[0]}."
        )


def _groups_text(groups_place: str) -> str:
    """Return the name of the argument or covariate with the participant IDs."""
    return "groups=" if groups_place == "groups" else groups_place


def _check_label_column(
    values_by_covariate: Mapping[str, Any],
    label_name: str,
    label_texts: Sequence[str],
    scan_names: Sequence[str],
) -> None:
    """Raise if covariates have the label, in another order of scans."""
    label_column_name = find_column_name(values_by_covariate, [label_name])
    if not label_column_name:
        return
    covariate_cell_texts = _to_texts(values_by_covariate[label_column_name])
    differing_indices = [
        i
        for i, label_text in enumerate(label_texts)
        if match_class_name(covariate_cell_texts[i], [label_text]) != label_text
    ]
    if differing_indices and {*covariate_cell_texts} & {*label_texts}:
        raise ParameterError(
            f"{scan_names[differing_indices[0]]}: the label is "
            f"{covariate_cell_texts[differing_indices[0]]!r} in column "
            f"{label_column_name} of covariates, but "
            f"{label_texts[differing_indices[0]]!r} in labels=. The "
            f"two labels differ for {len(differing_indices)} of {len(label_texts)} "
            "scans. Put the rows of labels= and of covariates in the same order, or "
            f"remove column {label_column_name} from covariates."
        )


def _to_texts(cell_values: Sequence[object] | pd.Series) -> list[str]:
    """Return words without blanks around them, empty where missing."""
    cell_texts = [
        "" if pd.isna(cell_value) else str(cell_value).strip()
        for cell_value in cell_values
    ]
    return [
        ""
        if cell_value.lower() in MISSING_CELLS or is_formula_error(cell_value)
        else cell_value
        for cell_value in cell_texts
    ]


def _pop_groups_of_covariates(
    groups: Sequence[object] | None,
    values_by_covariate: dict[str, Any],
    labels: Sequence[object],
) -> tuple[Sequence[object] | None, str, Sequence[object]]:
    """Return the groups, the argument that has them, and other ids of covariates.

    Without `groups`, those are removed from the covariates, which then have no others.
    """
    person_column_name = _find_person_column_name(
        values_by_covariate, labels, is_person_column_needed=groups is None
    )
    if person_column_name is None:
        return groups, "groups", ()
    if groups is not None:
        return groups, "groups", values_by_covariate[person_column_name]
    groups_place = f"covariates[{person_column_name!r}]"
    return values_by_covariate.pop(person_column_name), groups_place, ()


def _find_person_column_name(
    values_by_covariate: Mapping[str, Any],
    labels: Sequence[object],
    *,
    is_person_column_needed: bool,
) -> str | None:
    """Return the covariate that says whose scans are, None where there is none.

    Raise, where it is needed, if it is not clear which that is, or whether one is.
    """
    if any(
        np.shape(covariate_values) != (len(labels),)
        for covariate_values in values_by_covariate.values()
    ):
        return find_column_name(
            values_by_covariate, PEOPLE_COLUMNS
        )  # refused by its length
    column_name_by_text = {
        str(column_name): column_name for column_name in values_by_covariate
    }
    cells_by_column = {
        column_name: to_table_cells(
            values_by_covariate[column_name_by_text[column_name]]
        )
        for column_name in column_name_by_text
    }
    person_column_choice = choose_person_column(cells_by_column)
    if person_column_choice.column_name is not None:
        return column_name_by_text[person_column_choice.column_name]
    message = person_column_choice.no_choice_reason
    for column_name in find_person_column_names(cells_by_column):
        # without a choice these are groups, of which yes and no, and labels, are clear
        is_label_column = cells_by_column[column_name] == to_table_cells(labels)
        if not (message or is_label_column or are_yes_no(cells_by_column[column_name])):
            n_distinct_values = len({*cells_by_column[column_name]})
            message = (
                f"the column {column_name!r} has {n_distinct_values} different values "
                f"for {len(labels)} scans"
            )
    if message and is_person_column_needed:
        raise ParameterError(
            f"covariates: {message}, so it is unknown which person each scan belongs "
            "to. Use groups= to give the participant ID of every scan."
        )
    return None


def _to_number_array(argument_name: str, array_like: ArrayLike) -> np.ndarray:
    """Return an array of numbers; raise where there are others in it, or none."""
    try:
        return as_number_array(array_like)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"{argument_name} must be an array of numbers, got "
            f"{type(array_like).__name__}: {error}."
        ) from error


def _find_nonatlas_column_names(
    argument_table: pd.DataFrame, atlas: Atlas
) -> list[object]:
    """Return columns that atlases leave out on purpose, such as the cerebellum."""
    return [
        column_name
        for column_name in argument_table
        if is_non_region_name(str(column_name)) and atlas.find(str(column_name)) is None
    ]


def _make_nonatlas_column_notes(
    value_by_argument: Mapping[str, Any], atlas: Atlas
) -> list[Finding]:
    """Return notes on columns of tables that atlases leave out on purpose."""
    return [
        Finding(
            f"{argument_name}: columns that are not regions of the atlas {atlas.name} "
            f"are left out: {join_with_commas(nonatlas_column_names, 5)}",
            LEFT_OUT,
        )
        for argument_name, argument_value in value_by_argument.items()
        if isinstance(argument_value, pd.DataFrame)
        and (
            nonatlas_column_names := _find_nonatlas_column_names(argument_value, atlas)
        )
    ]


def _order_columns_by_atlas(
    argument_name: str, argument_value: Any, atlas: Atlas
) -> Any:
    """Return values with the columns of a table in the order of the atlas."""
    if isinstance(argument_value, pd.DataFrame):
        if are_default_row_names([*map(str, argument_value)]):
            return argument_value
        argument_value = argument_value.drop(
            columns=_find_nonatlas_column_names(argument_value, atlas)
        )
        return argument_value.iloc[:, atlas.match_all(argument_value).argsort()]
    if isinstance(argument_value, Sequence) and any(
        hasattr(argument_item, "iloc") for argument_item in argument_value
    ):
        raise ParameterError(
            f"{argument_name} is a list of tables. An array made of this list would "
            "have no row and column names. For one feature, give one DataFrame whose "
            "rows are scans and whose columns are regions. For several features, give "
            "{name: DataFrame}."
        )
    return argument_value


def _find_groups_in_index(
    value_by_argument: Mapping[str, Any],
) -> tuple[list[object] | None, str]:
    """Return the IDs in an index that says by its name that it has them, and its place.

    An index of one level with different entries names the scans, too, and is left to
    `_find_scan_pandas_index`.
    """
    for argument_name, argument_value in value_by_argument.items():
        if not hasattr(argument_value, "iloc"):
            continue
        argument_pandas_index = argument_value.index
        if argument_pandas_index.nlevels == 1 and argument_pandas_index.is_unique:
            continue
        person_level_names = find_person_column_names(
            str(name) for name in argument_pandas_index.names if name is not None
        )
        for level_number, level_name in enumerate(argument_pandas_index.names):
            if str(level_name) in person_level_names[:1]:
                person_ids = argument_pandas_index.get_level_values(level_number)
                return list(person_ids), f"the index {level_name!r} of {argument_name}"
    return None, "groups"


def _find_scan_pandas_index(
    value_by_argument: Mapping[str, Any],
    groups: Sequence[object] | None,
    groups_place: str,
) -> pd.Index | None:
    """Return the index that names scans, None where there is none.

    Raise where tables are in different orders, or `groups` are needed. An index that
    only counts names nobody, unless it has the name of an ID, or another has the same
    entries.
    """
    pandas_index_by_argument = {
        argument_name: argument_value.index
        for argument_name, argument_value in value_by_argument.items()
        if hasattr(argument_value, "iloc")
    }
    index_texts_by_argument = {
        argument_name: [*map(str, argument_pandas_index)]
        for argument_name, argument_pandas_index in pandas_index_by_argument.items()
    }
    indexed_argument_names = [
        argument_name
        for argument_name, index_texts in index_texts_by_argument.items()
        if not are_default_row_names(index_texts)
        or _has_id_name(pandas_index_by_argument[argument_name])
    ]
    person_ids_by_argument = {
        argument_name: [*map(_find_person_id, argument_pandas_index)]
        for argument_name, argument_pandas_index in pandas_index_by_argument.items()
    }
    for (first_argument_name, first_index_texts), (
        second_argument_name,
        second_index_texts,
    ) in combinations(index_texts_by_argument.items(), 2):
        has_different_people = {first_argument_name, second_argument_name} <= {
            *indexed_argument_names
        } and person_ids_by_argument[first_argument_name] != person_ids_by_argument[
            second_argument_name
        ]
        if first_index_texts != second_index_texts and (
            has_different_people
            or sorted(first_index_texts) == sorted(second_index_texts)
        ):
            row_index = next(
                i
                for i, index_text_pair in enumerate(
                    zip(first_index_texts, second_index_texts, strict=True)
                )
                if len({*index_text_pair}) > 1
            )
            raise ParameterError(
                f"Row {row_index + 1} of {first_argument_name} and row {row_index + 1} "
                f"of {second_argument_name} belong to different people: "
                f"{first_index_texts[row_index]!r} and "
                f"{second_index_texts[row_index]!r}. Bring both tables into the same "
                "row order (.reindex). If the rows are already in the same order, drop "
                "one of the two indexes (.reset_index(drop=True))."
            )
    person_ids_from_groups = [] if groups is None else [*map(_find_person_id, groups)]
    # Numbers from 1 may be the IDs of people if groups have the same IDs.
    numbered_argument_names = [
        argument_name
        for argument_name, argument_pandas_index in pandas_index_by_argument.items()
        if argument_name not in indexed_argument_names
        and not isinstance(argument_pandas_index, pd.RangeIndex)
        and person_ids_by_argument[argument_name][0] == "1"
        and {*person_ids_by_argument[argument_name]} == {*person_ids_from_groups}
    ]
    groups_text = _groups_text(groups_place)
    for argument_name in (
        (*indexed_argument_names, *numbered_argument_names)
        if person_ids_from_groups
        else ()
    ):
        person_ids_from_index = person_ids_by_argument[argument_name]
        if person_ids_from_index != person_ids_from_groups and {
            *person_ids_from_index
        } <= {*person_ids_from_groups}:
            row_index = int(
                np.argmax(np.array(person_ids_from_index) != person_ids_from_groups)
            )
            raise ParameterError(
                f"Row {row_index + 1} of {argument_name} has the index "
                f"{person_ids_from_index[row_index]!r}, but {groups_text} names "
                f"{person_ids_from_groups[row_index]!r} for this row. Sort the rows in "
                f"the order of {groups_text}. If they are already in this order, drop "
                "the index (.reset_index(drop=True))."
            )
        if (
            pd.Series(person_ids_from_groups)
            .groupby(person_ids_from_index)
            .nunique()
            .max()
            > 1
        ):
            raise ParameterError(
                f"According to the index of {argument_name}, several scans belong to "
                f"one person, but {groups_text} gives these scans different "
                "participant IDs. Give all scans of a person the same ID in "
                f"{groups_text}.",
                kind="several IDs of a person",
                values={"argument": argument_name},
            )
    if not indexed_argument_names:
        return None
    # An index with the name of an id says more than the same numbers without a name.
    indexed_argument_names.sort(
        key=lambda argument_name: _has_only_row_numbers(
            pandas_index_by_argument[argument_name]
        )
    )
    argument_pandas_index, index_texts = (
        pandas_index_by_argument[indexed_argument_names[0]],
        index_texts_by_argument[indexed_argument_names[0]],
    )
    has_sorted_row_numbers = are_default_row_names(
        sorted(index_texts, key=lambda index_text: (len(index_text), index_text))
    )
    if (
        len(indexed_argument_names) == 1
        and has_sorted_row_numbers
        and not _has_id_name(argument_pandas_index)
    ):
        raise ParameterError(
            f"The index of {indexed_argument_names[0]} "
            f"({join_with_commas(index_texts, 3)}) shows that its rows were reordered. "
            "The other arrays have no index, so it is unknown whether their rows have "
            f"the same order. Sort the rows of {indexed_argument_names[0]} in the "
            "order of the other arrays, for example by .sort_index(). Then drop the "
            "index (.reset_index(drop=True)).",
            kind="rows reordered",
            values={"argument": indexed_argument_names[0]},
        )
    has_unique_flat_index = (
        argument_pandas_index.is_unique and argument_pandas_index.nlevels == 1
    )
    if groups is None and not has_unique_flat_index:
        raise ParameterError(
            f"the index of {indexed_argument_names[0]} has several levels or a "
            "repeated entry, so it does not identify the scans. Use groups= to give "
            "the participant ID of every scan."
        )
    return (
        argument_pandas_index
        if argument_pandas_index.is_unique
        and (
            _has_id_name(argument_pandas_index)
            or not isinstance(argument_pandas_index, pd.RangeIndex)
        )
        else None
    )


def _has_only_row_numbers(scan_pandas_index: pd.Index | None) -> bool:
    """Return whether an index names nobody: whole numbers without the name of an id.

    They have gaps where rows of a table were selected.
    """
    if scan_pandas_index is None:
        return True
    return pd.api.types.is_integer_dtype(scan_pandas_index.dtype) and not _has_id_name(
        scan_pandas_index
    )


def _has_id_name(scan_pandas_index: pd.Index) -> bool:
    """Return whether the name of an index is that of IDs of people or scans."""
    index_names = [str(name) for name in scan_pandas_index.names if name is not None]
    return bool(find_person_column_names(index_names)) or (
        find_column_name(index_names, ID_COLUMNS) is not None
    )


def _find_person_id(index_entry: object) -> str:
    """Return the person of an entry of an index: sub-01_ses-M00, or (01, M00)."""
    first_level_entry = (
        index_entry[0] if isinstance(index_entry, tuple) else index_entry
    )
    return str(first_level_entry).partition("_ses-")[0].removeprefix("sub-")


def _to_json_cells_by_column(table: pd.DataFrame) -> dict[str, list[object]]:
    """Return the columns of a table as JSON takes them; None where missing."""
    return table.astype(object).where(table.notna(), None).to_dict("list")


def find_missing_code_faults(
    X: np.ndarray,
    all_scan_names: Sequence[str],
    all_region_names: Sequence[str],
    feature_names: Sequence[str],
) -> list[Finding]:
    """Return faults of features with a code for missing values, such as 9999."""
    fault_findings = list[Finding]()
    for feature_name, feature_values in zip(
        feature_names, np.moveaxis(X, -1, 0), strict=True
    ):
        missing_code_mask, measured_value_mask = (
            np.isin(feature_values, MISSING_CODES),
            ~np.isnan(feature_values),
        )
        if missing_code_mask.any() and (measured_value_mask & ~missing_code_mask).any():
            # a few scans in another unit may not hide a code
            overall_percentile_5, overall_percentile_95 = np.nanpercentile(
                feature_values[~missing_code_mask], (5, 95)
            )
            plausible_margin = 2 * (overall_percentile_95 - overall_percentile_5)
            missing_code_mask &= (
                feature_values < overall_percentile_5 - plausible_margin
            ) | (feature_values > overall_percentile_95 + plausible_margin)
            for missing_value_code in np.unique(feature_values[missing_code_mask]):
                scan_indices, region_indices = np.nonzero(
                    feature_values == missing_value_code
                )
                scan_names_text = join_with_commas(
                    dict.fromkeys(np.array(all_scan_names)[scan_indices].tolist()), 5
                )
                message = (
                    f"{feature_name} is {missing_value_code:g} (first in "
                    f"{all_region_names[region_indices[0]]}), but most other values "
                    f"lie between {overall_percentile_5:g} and "
                    f"{overall_percentile_95:g}; write n/a for a value that was not "
                    "measured"
                )
                first_region_names = (all_region_names[region_indices[0]],)
                fault_findings.append(
                    Finding(
                        message, FAULT, scan=scan_names_text, regions=first_region_names
                    )
                )
    return fault_findings


def _find_cohort_faults(cohort: Cohort) -> list[Finding]:
    """List contradictions between the parts, and invalid values."""
    scan_table = cohort.table
    classes = cohort.classes
    feature_names = cohort.feature_names
    axis_lengths = (len(scan_table), len(cohort.atlas), len(feature_names))
    column_names = [str(column_name) for column_name in scan_table]
    has_key_columns = {*KEY_COLUMNS} <= {*column_names}
    has_unique_columns = len({*column_names}) == len(column_names)
    if not (has_key_columns and has_unique_columns and len(scan_table)):
        message = (
            f"table must have a row for every scan and the columns "
            f"{', '.join(KEY_COLUMNS)}, each once"
        )
        columns_text = (
            f"{len(scan_table)} rows with the columns {', '.join(column_names)}"
        )
        return [Finding(message, FAULT, got=columns_text)]
    texts_by_key_column = {
        key_column_name: _to_texts(scan_table[key_column_name])
        for key_column_name in KEY_COLUMNS
    }
    fault_texts = list[str]()
    argument_name_by_key = {
        "scan": "scans",
        "participant": "participant_ids",
        "label": "labels",
    }
    for key_column_name, argument_name in argument_name_by_key.items():
        row_numbers = [
            row_number
            for row_number, key_text in enumerate(texts_by_key_column[key_column_name])
            if not key_text
        ]
        if row_numbers:
            fault_texts.append(
                f"the {key_column_name} is missing in "
                f"{count_text(len(row_numbers), 'row')} (counted from 0): "
                f"{join_with_commas(row_numbers, 8)}. Leave these rows out of every "
                f"array: array[keep], with keep = pd.notna({argument_name})"
            )
    n_rows_by_scan_name = Counter(texts_by_key_column["scan"])
    repeated_scan_names = [
        scan_name
        for scan_name, n_rows_of_scan in n_rows_by_scan_name.items()
        if n_rows_of_scan > 1
    ]
    fault_texts += [
        f"scan {scan_name!r} occurs more than once in table"
        for scan_name in repeated_scan_names
    ]
    names_by_argument = {
        "classes": classes,
        "feature_names": feature_names,
        "people (groups)": tuple(dict.fromkeys(texts_by_key_column["participant"])),
    }
    for argument_name, argument_names in names_by_argument.items():
        normalized_names = [to_bare_id(str(name)) for name in argument_names]
        n_uses_by_name = Counter(normalized_names)
        repeated_names = [
            name
            for name, normalized_name in zip(
                argument_names, normalized_names, strict=True
            )
            if n_uses_by_name[normalized_name] > 1
        ]
        if repeated_names or not normalized_names:
            repeated_names_text = join_with_commas(repeated_names, 8) or "none"
            rule_text = "must differ in more than case and leading zeros"
            fault_texts.append(
                f"{argument_name} {rule_text}; got {repeated_names_text}"
            )
    fault_texts += [
        f"label {class_name!r} of {count_text(n_scans, 'scan')} is not among the "
        f"classes {', '.join(classes)}; add this label to classes=, or leave the "
        "scans with this label out of every array"
        for class_name, n_scans in sorted(Counter(texts_by_key_column["label"]).items())
        if class_name and class_name not in classes
    ]
    expected_shape_by_argument = {
        "connectomes": (*axis_lengths[:2], axis_lengths[1]),
        "features": axis_lengths,
    }
    fault_texts += [
        f"{argument_name} must have shape {argument_shape}, for {axis_lengths[0]} "
        f"scans, the {axis_lengths[1]} regions of {cohort.atlas.name} (atlas=) and "
        f"{axis_lengths[2]} feature names; got {array_shape}"
        for argument_name, argument_shape in expected_shape_by_argument.items()
        if (array_shape := getattr(cohort, argument_name).shape) != argument_shape
    ]
    if fault_texts:  # values are only worth reading where the axes agree
        return make_fault_findings(fault_texts)
    all_scan_names = np.array(texts_by_key_column["scan"], dtype=object)
    return [
        *_find_connectome_faults(cohort, all_scan_names),
        *_find_feature_faults(cohort, all_scan_names),
    ]


def _find_connectome_faults(
    cohort: Cohort, all_scan_names: np.ndarray
) -> list[Finding]:
    """Return the faults of connectomes: weights that cannot be, or no connection."""
    W = cohort.connectomes
    region_names = cohort.atlas.names
    fault_findings = list[Finding]()
    is_connectome_shared = W.strides[0] == 0  # one matrix for all scans in memory
    scan_names = ["all scans"] if is_connectome_shared else list(all_scan_names)
    for scan_name, weight_matrix in zip(scan_names, W, strict=False):
        if not (weight_matrix.min() >= 0 and weight_matrix.max() <= MAX_ABSOLUTE):
            expected_text = f"finite and not negative, and at most {MAX_ABSOLUTE:g}"
            invalid_weight_mask = ~(
                (weight_matrix >= 0) & (weight_matrix <= MAX_ABSOLUTE)
            )
        elif not is_connectome_shared and not weight_matrix.any() and len(W) > 1:
            # A matrix for everybody may be none.
            message = "the connectome has no connection. Leave this scan out"
            fault_findings.append(Finding(message, FAULT, scan=scan_name))
            continue
        elif (
            asymmetry_matrix := np.abs(weight_matrix - weight_matrix.T)
        ).max() > _SYMMETRY * weight_matrix.max():
            expected_text, invalid_weight_mask = (
                "symmetric",
                asymmetry_matrix == asymmetry_matrix.max(),
            )
        else:
            continue
        i, j = np.argwhere(invalid_weight_mask)[0]
        diagonal_hint = (
            " (a weight on the diagonal is not; set the diagonal to 0)"
            if i == j
            else ""
        )
        triangle_hint = ""
        is_triangular = (
            not np.tril(weight_matrix, -1).any() or not np.triu(weight_matrix, 1).any()
        )
        if expected_text == "symmetric" and is_triangular:
            triangle_hint = (
                " (only one triangle is filled; mirror it by "
                "np.maximum(W, np.swapaxes(W, -1, -2)))"
            )
        weights_text = (
            f"{weight_matrix[i, j]:g} from {region_names[i]} to {region_names[j]} "
            f"and {weight_matrix[j, i]:g} in the opposite direction"
        )
        message = (
            f"connection weights must be {expected_text}{diagonal_hint}{triangle_hint}"
        )
        fault_findings.append(Finding(message, FAULT, scan=scan_name, got=weights_text))
    return fault_findings


def _find_feature_faults(cohort: Cohort, all_scan_names: np.ndarray) -> list[Finding]:
    """Return the faults of features, labels and covariates."""
    X = cohort.features
    feature_names, region_names = cohort.feature_names, cohort.atlas.names
    fault_findings = list[Finding]()
    too_large_value_mask = np.abs(X) > MAX_ABSOLUTE
    for scan_index, region_index, feature_index in np.argwhere(too_large_value_mask)[
        :1
    ]:
        message = (
            f"feature values must lie between -{MAX_ABSOLUTE:g} and "
            f"{MAX_ABSOLUTE:g}, or be NaN if they were not measured"
        )
        value_text = (
            f"{X[scan_index, region_index, feature_index]:g} for "
            f"{feature_names[feature_index]} in the region "
            f"{region_names[region_index]} of the scan "
            f"{all_scan_names[scan_index]!r}"
        )
        fault_findings.append(Finding(message, FAULT, got=value_text))
    fault_findings += find_missing_code_faults(
        X, list(all_scan_names), region_names, feature_names
    )
    has_class_order = bool(cohort.classes_ordered)
    fault_findings += find_covariate_faults(
        cohort.table, cohort.label_name, has_class_order=has_class_order
    )
    missing_scan_feature_mask = np.isnan(X).all(axis=1)
    for feature_name in np.array(feature_names)[missing_scan_feature_mask.all(axis=0)]:
        message = f"{feature_name} has no value in any scan; leave this feature out"
        fault_findings.append(Finding(message, FAULT))
    for scan_name in all_scan_names[
        missing_scan_feature_mask.all(axis=1) & ~missing_scan_feature_mask.all()
    ]:
        message = f"{scan_name} has no value of any feature; leave the scan out"
        fault_findings.append(Finding(message, FAULT))
    return fault_findings
