"""Simulated people: who has which stage, age, sex and site, and when they come.

Numbers are those of the FDG rows of the demographics in Sim et al. 2024 (AAAI,
"Learning to Approximate Adaptive Kernel Convolution on Graphs"): 345 CN, 186 SMC,
461 EMCI, 231 LMCI and 162 AD. One is changed: the paper prints an age of 73.0 +- 1.3
for CN, so narrow that age alone would tell who is healthy; 6.0 is used.
"""

from collections.abc import Mapping, Sequence
from operator import index
from zlib import crc32

import numpy as np
import pandas as pd

from brainlsap.data.classes import STAGES
from brainlsap.exceptions import ParameterError

PAPER_SHARES = {"CN": 345, "SMC": 186, "EMCI": 461, "LMCI": 231, "AD": 162}
MALE_SHARE = {
    "CN": 173 / 345,
    "SMC": 66 / 186,
    "EMCI": 262 / 461,
    "LMCI": 152 / 231,
    "AD": 102 / 162,
}
AGE = {
    "CN": (73.0, 6.0),
    "SMC": (71.7, 5.2),
    "EMCI": (71.7, 7.8),
    "LMCI": (71.1, 7.0),
    "AD": (74.9, 8.8),
}
VISIT_SHARES = (0.40, 0.35, 0.25)
MONTHS_BETWEEN = 12


def random_stream(random_state: int, name: str, *keys: int) -> np.random.Generator:
    """Return the generator of one named purpose, the same in whatever order asked.

    Parameters
    ----------
    random_state : int
        Seed of the whole cohort, at least 0.
    name : str
        What is drawn, for example `"network"`.
    *keys : int
        For whom: number of the person, of the visit.

    Returns
    -------
    numpy.random.Generator

    Raises
    ------
    ParameterError
        Where `random_state` is not a whole number of at least 0.

    Examples
    --------
    >>> a = random_stream(0, "network", 7).normal()
    >>> a == random_stream(0, "network", 7).normal()
    True
    """
    try:
        seed = index(random_state)
    except TypeError:
        seed = -1
    if seed < 0:
        raise ParameterError(
            f"random_state must be a whole number of at least 0, got {random_state!r}."
        )
    # Entropy is padded with zeros, so without their number no key is the key 0.
    return np.random.default_rng([seed, crc32(name.encode()), len(keys), *keys])


def divide(n_people: int, shares: Sequence[float]) -> np.ndarray:
    """Divide people by shares: largest remainders, no positive share left empty.

    Parameters
    ----------
    n_people : int
        Number of people.
    shares : sequence of float
        Of any sum; 0 for a group that nobody is in.

    Returns
    -------
    int array of shape (n_groups,)
        Sums to `n_people`.

    Raises
    ------
    ParameterError
        Where a share is negative, all are 0, or there are fewer people than groups.

    Examples
    --------
    >>> divide(400, [0.27, 0.14, 0.33, 0.14, 0.12])
    array([108,  56, 132,  56,  48])
    """
    parts = np.asarray(shares, dtype=float)
    if not (np.isfinite(parts).all() and (parts >= 0).all() and parts.sum() > 0):
        raise ParameterError(
            "shares must be finite, not negative and not all 0, "
            f"got {[float(part) for part in parts]}."
        )
    wanted = parts > 0
    if n_people < wanted.sum():
        raise ParameterError(
            f"n_people must be at least {wanted.sum()}, one for every group with a "
            f"share, got {n_people}."
        )
    exact = n_people * parts / parts.sum()
    counts = np.floor(exact).astype(int)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: n_people - counts.sum()]] += 1
    while (empty := np.flatnonzero(wanted & (counts == 0))).size:
        counts[counts.argmax()] -= 1
        counts[empty[0]] += 1
    return counts


def draw_stages(
    n_people: int, shares: Mapping[str, float] | None, random_state: int
) -> np.ndarray:
    """Give every person a stage, 0 (CN) to 4 (AD), in shuffled order.

    Parameters
    ----------
    n_people : int
        Number of people.
    shares : mapping of str to float or None
        Share of every stage; those not named have nobody. None: the paper's.
    random_state : int
        Seed of the whole cohort.

    Returns
    -------
    int array of shape (n_people,)

    Raises
    ------
    ParameterError
        Where `shares` names a stage that does not exist.
    """
    shares = PAPER_SHARES if shares is None else shares
    unknown = [stage for stage in shares if stage not in STAGES]
    if unknown:
        raise ParameterError(
            f"shares must name stages among {', '.join(STAGES)}; got {unknown[0]!r}."
        )
    counts = divide(n_people, [shares.get(stage, 0.0) for stage in STAGES])
    stages = np.repeat(np.arange(len(STAGES)), counts)
    return random_stream(random_state, "stages").permutation(stages)


def make_people(
    n_people: int,
    *,
    shares: Mapping[str, float] | None = None,
    visits: Sequence[float] = VISIT_SHARES,
    n_sites: int = 4,
    conversion: float = 0.0,
    random_state: int = 0,
) -> pd.DataFrame:
    """Draw people and their visits.

    Sites are drawn without regard to the stage, so that they are no confound.

    Parameters
    ----------
    n_people : int
        Number of people.
    shares : mapping of str to float, optional
        Share of every stage; the paper's by default.
    visits : sequence of float
        Share of the people who come once, twice, three times ..., 12 months apart.
    n_sites : int
        Number of sites.
    conversion : float
        Probability that a person is one stage further at the next visit.
    random_state : int
        Seed of the whole cohort.

    Returns
    -------
    DataFrame, one row per scan
        Columns person and visit (numbers from 0), stage (0 to 4, at this visit),
        start (stage at the first visit), age (years, at this visit), sex (M or F) and
        site (number from 0).

    Raises
    ------
    ParameterError
        Where shares, the number of people or sites, or the conversion are impossible.

    Examples
    --------
    >>> people = make_people(120)
    >>> people["person"].nunique(), len(people)
    (120, 222)
    """
    if n_sites < 1:
        raise ParameterError(f"n_sites must be at least 1, got {n_sites}.")
    if not 0 <= conversion <= 1:
        raise ParameterError(f"conversion must be between 0 and 1, got {conversion}.")
    stages = draw_stages(n_people, shares, random_state)
    n_visits = np.repeat(np.arange(len(visits)) + 1, divide(n_people, visits))
    n_visits = random_stream(random_state, "visits").permutation(n_visits)
    rows = []
    for person, (start, times) in enumerate(zip(stages, n_visits, strict=True)):
        rng = random_stream(random_state, "person", person)
        mean, deviation = AGE[STAGES[start]]
        age = float(np.clip(rng.normal(mean, deviation), 55, 92))
        sex = "M" if rng.random() < MALE_SHARE[STAGES[start]] else "F"
        site = int(rng.integers(n_sites))
        further = np.concatenate([[0], rng.random(times - 1) < conversion]).cumsum()
        rows += [
            {
                "person": person,
                "visit": visit,
                "stage": int(min(start + further[visit], len(STAGES) - 1)),
                "start": int(start),
                "age": round(age + visit * MONTHS_BETWEEN / 12, 1),
                "sex": sex,
                "site": site,
            }
            for visit in range(times)
        ]
    return pd.DataFrame(rows)
