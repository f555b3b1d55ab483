"""Columns of a table as numbers, learned on training scans: age, sex, volume."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainlsap.exceptions import ParameterError

ALIASES = {
    "etiv": ("icv", "tiv", "estimatedtotalintracranialvol", "intracranialvolume"),
    "sex": ("gender", "ptgender"),
}
"""Other names that a column may have; case, spaces and underscores do not count."""


@dataclass(frozen=True, eq=False)
class CovariateDesign:
    """How columns become numbers: centred values, and one column for each category.

    A number that is missing counts as the training scans' mean, a category that is
    missing or was not seen in training as their mixture: both say nothing.

    Parameters
    ----------
    columns : tuple of str
        As they are called in the table of the fit.
    means : dict of str to float
        Mean of every column of numbers.
    shares : dict of str to dict of str to float
        Share of every category of every other column; the first has no column.

    Examples
    --------
    >>> table = pd.DataFrame({"age": [60, 70], "sex": ["F", "M"]})
    >>> design = CovariateDesign.learn(("age", "sex"), table)
    >>> design.apply(table)
    array([[-5. , -0.5],
           [ 5. ,  0.5]])
    """

    columns: tuple[str, ...]
    means: dict[str, float]
    shares: dict[str, dict[str, float]]

    @classmethod
    def learn(cls, names: Sequence[str], table: pd.DataFrame) -> "CovariateDesign":
        """Learn from the training scans.

        Parameters
        ----------
        names : sequence of str
            Columns wanted, in any case.
        table : DataFrame of n_scans rows
            Of the training scans.

        Returns
        -------
        CovariateDesign

        Raises
        ------
        ParameterError
            Where the table has no such column, or nothing is known in it.
        """
        columns = tuple(find_column(table, name) for name in names)
        means: dict[str, float] = {}
        shares: dict[str, dict[str, float]] = {}
        for column in columns:
            values = table[column]
            if values.notna().sum() == 0:
                raise ParameterError(
                    f"the covariate {column!r} is missing in every training scan; "
                    "leave it out."
                )
            numbers = pd.to_numeric(values, errors="coerce")
            if numbers.notna().sum() == values.notna().sum():
                means[column] = float(numbers.mean())
            else:
                known = values.dropna().astype(str).value_counts(normalize=True)
                shares[column] = {
                    str(name): float(share)
                    for name, share in known.sort_index().items()
                }
        return cls(columns, means, shares)

    def apply(self, table: pd.DataFrame) -> np.ndarray:
        """Return the columns of some scans as numbers, centred as in training.

        Parameters
        ----------
        table : DataFrame of n_scans rows

        Returns
        -------
        array of shape (n_scans, n_columns)

        Raises
        ------
        ParameterError
            Where a column of numbers in training holds words only, or the other way
            round.
        """
        parts = []
        for column in self.columns:
            values = table[find_column(table, column)]
            self._check_coding(column, values.dropna())
            if column in self.means:
                numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)
                parts.append(np.nan_to_num(numbers - self.means[column], nan=0.0))
                continue
            shares = self.shares[column]
            text = values.astype(object).where(values.notna(), "").astype(str)
            told = text.isin(list(shares)).to_numpy()
            for name in list(shares)[1:]:
                centred = (text == name).to_numpy() - shares[name]
                parts.append(np.where(told, centred, 0.0))
        return np.stack(parts, axis=1) if parts else np.zeros((len(table), 0))

    def _check_coding(self, column: str, given: pd.Series) -> None:
        """Refuse another coding: 1 and 2 for F and M would count as not known."""
        is_number = pd.to_numeric(given, errors="coerce").notna()
        if column in self.means:
            wrong, told = given[~is_number], "numbers"
        else:
            known = list(self.shares[column])
            worded = pd.to_numeric(pd.Series(known), errors="coerce").isna().all()
            strange = is_number & ~given.astype(str).isin(known)
            wrong, told = given[strange & worded], " or ".join(known[:4])
        if 0 < len(given) == len(wrong):
            raise ParameterError(
                f"the covariate {column!r} was {told} in training, got "
                f"{str(wrong.iloc[0])!r}. Write it in the same way."
            )


def find_column(table: pd.DataFrame, name: str) -> str:
    """Return the column of a table that is meant, whatever its case.

    Parameters
    ----------
    table : DataFrame
        Of the scans.
    name : str
        For example "eTIV", which also finds "etiv" and "ICV".

    Returns
    -------
    str

    Raises
    ------
    ParameterError
        Where there is none, or more than one.

    Examples
    --------
    >>> find_column(pd.DataFrame(columns=["AGE", "estimated_total_ICV"]), "age")
    'AGE'
    """
    if name in table.columns:
        return name
    wanted = {_plain(name)}
    for key, others in ALIASES.items():
        family = {key, *others}
        if _plain(name) in family:
            wanted = family
    found = [str(one) for one in table.columns if _plain(one) in wanted]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(map(str, table.columns))
    raise ParameterError(
        f"covariates have {'no' if not found else 'more than one'} column {name!r}; "
        f"there are {listed}."
    )


def check_covariates(covariates: object, n_scans: int, who: str) -> pd.DataFrame:
    """Raise unless covariates are a table with one row for each scan.

    Parameters
    ----------
    covariates : object
        As given to `fit` or `transform`.
    n_scans : int
        How many there are.
    who : str
        Name of the transformer, for the message.

    Returns
    -------
    DataFrame

    Raises
    ------
    ParameterError
    """
    if not isinstance(covariates, pd.DataFrame) or len(covariates) != n_scans:
        came = f"{type(covariates).__name__}"
        if isinstance(covariates, pd.DataFrame):
            came += f" of {len(covariates)} rows"
        raise ParameterError(
            f"{who} needs covariates: a DataFrame with a row for each of the {n_scans} "
            f"scans, such as cohort.table; got {came}. cross_validate hands them on."
        )
    return covariates


def _plain(name: object) -> str:
    return "".join(filter(str.isalnum, str(name).lower()))
