"""Write combat.npz: what neuroCombat 0.2.12 makes of drawn features.

    pip install neuroCombat; python make_combat_reference.py

neuroCombat stops its iteration early (1e-4); `tight` is its result with 1e-13.
"""

from pathlib import Path

import numpy as np
import pandas as pd


def main():
    from neuroCombat import neuroCombat
    from neuroCombat.neuroCombat import it_sol

    rng = np.random.default_rng(7)
    site = np.repeat(["north", "south", "west"], [9, 14, 11])
    age = rng.integers(50, 90, len(site)).astype(float)
    sex = np.where(rng.uniform(size=len(site)) < 0.5, "F", "M")
    shift = {"north": 0.0, "south": 1.5, "west": -0.7}
    spread = {"north": 1.0, "south": 1.8, "west": 0.6}
    n_values = 12
    own = rng.normal(size=(3, n_values))
    place = np.unique(site, return_inverse=True)[1]
    values = 5 - 0.02 * age[:, None] + 0.4 * (sex == "M")[:, None]
    values = values + np.array([shift[one] for one in site])[:, None] + 0.3 * own[place]
    noise = rng.normal(size=(len(site), n_values))
    values = values + np.array([spread[one] for one in site])[:, None] * noise
    table = pd.DataFrame({"site": site, "age": age, "sex": sex})

    def combat(**covariates):
        return neuroCombat(values.T.copy(), table, "site", **covariates)["data"].T

    both = {"categorical_cols": ["sex"], "continuous_cols": ["age"]}
    found = {"early": combat(**both)}
    it_sol.__defaults__ = (1e-13,)
    found |= {"tight": combat(**both), "plain": combat()}
    np.savez_compressed(
        Path(__file__).with_name("combat.npz"),
        values=values,
        site=site,
        age=age,
        sex=sex,
        **found,
    )


if __name__ == "__main__":
    main()
