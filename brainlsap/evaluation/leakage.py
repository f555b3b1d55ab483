def audit(cohort, splits):
    return None
