"""`brainlsap predict`: classes of new people by a stored model."""

import argparse
from typing import Any

from brainlsap.options import COHORT, PLACES, add_reading, given


def add(commands: Any) -> None:
    """Add the command and its options."""
    predict = commands.add_parser(
        "predict",
        help="predict the people of a cohort by a stored model; no labels needed",
        description="The cohort is read as that of the fit was; options that are not "
        "given are taken from the model. Regions and features are matched by name.",
    )
    predict.add_argument("model", help="file that brainlsap fit wrote")
    predict.add_argument("cohort", help="folder of subjects, or a cohort's file (.h5)")
    predict.add_argument("--out", required=True, help="table to write (.tsv); private")
    add_reading(predict, from_model=True)


def call(options: argparse.Namespace) -> None:
    """Run the command."""
    from brainlsap.model import load_model
    from brainlsap.study import predict_people, read_people, write_predictions

    model = load_model(options.model)
    cohort = read_people(
        model, options.cohort, **given(options, COHORT + PLACES), verbose=True
    )
    people = len(set(cohort.groups))
    print(f"Cohort: {cohort.n_scans} scans of {people} people", flush=True)
    table = predict_people(model, cohort)
    counts = table["predicted"].value_counts()
    told = ", ".join(f"{name} {count}" for name, count in counts.items())
    print(f"Predicted: {told}")
    print(f"Table: {write_predictions(table, options.out)}")
