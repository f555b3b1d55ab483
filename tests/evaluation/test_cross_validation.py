def test_an_evaluation_has_one_row_for_every_scan_model_and_repeat(example_evaluation):
    table, cohort = example_evaluation.predictions, example_evaluation.cohort
    assert len(table) == 2 * 5 * cohort.n_scans
