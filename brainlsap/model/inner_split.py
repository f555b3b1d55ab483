"""The slice of the training scans that chooses the epoch; people stay whole."""

import warnings

import numpy as np

# With fewer people that slice is noise and is not cut.
FEWEST_PEOPLE = 20


def inner_split(
    codes: np.ndarray, groups: np.ndarray, fraction: float, start: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Divide training scans into those to learn from and those to watch.

    Starts of one fit watch different slices, so together they learn from everybody.

    Parameters
    ----------
    codes : int array of shape (n_scans,)
        Class of every scan.
    groups : array of shape (n_scans,)
        Participant of every scan.
    fraction : float
        Share of the people to watch.
    start : int
        Which start of the fit, from 0.
    seed : int
        Of the division.

    Returns
    -------
    learn, watch : int array
        Rows; `watch` is empty with fewer than 20 people, or where a class has
        fewer than two.

    Examples
    --------
    >>> learn, watch = inner_split(np.arange(40) % 2, np.arange(40), 0.2, 0, 0)
    >>> len(learn), len(watch)
    (32, 8)
    """
    from sklearn.model_selection import StratifiedGroupKFold

    everybody = np.arange(len(codes))
    _, people = np.unique(groups, return_inverse=True)
    rarest = min(len(set(people[codes == code])) for code in set(codes))
    if people.max() + 1 < FEWEST_PEOPLE or rarest < 2:
        return everybody, everybody[:0]
    commonest = max(len(set(people[codes == code])) for code in set(codes))
    n_slices = min(max(2, round(1 / fraction)), commonest)
    dealer = StratifiedGroupKFold(
        n_slices, shuffle=True, random_state=seed + start // n_slices
    )
    with warnings.catch_warnings():
        # a class with fewer people than slices is missing from some; that is fine
        warnings.simplefilter("ignore", UserWarning)
        slices = list(dealer.split(codes, codes, people))
    learn, watch = slices[start % n_slices]
    if len(set(codes[learn])) < len(set(codes)):
        return everybody, everybody[:0]
    return learn, watch
