"""Numbers become tables, figures and one page; the only package that draws."""

from importlib import import_module
from typing import Any

# Public name -> its module, imported when the name is first used: matplotlib, plotly
# and nilearn are heavy.
_MODULES = {
    "StoredResults": "stored",
    "audit_table": "audit_tables",
    "check_results_folder": "folder",
    "chosen_table": "comparison_tables",
    "class_rate_table": "statistics_tables",
    "classification_table": "comparison_tables",
    "common_region_table": "common_regions",
    "comparison_numbers": "comparison_tables",
    "comparison_table": "statistics_tables",
    "demographics_table": "tables",
    "demographics_tests": "demographics",
    "division_table": "statistics_tables",
    "export_maps": "exports",
    "info_sheet": "audit_tables",
    "interactive_brain": "brain_interactive",
    "interval_table": "statistics_tables",
    "plot_calibration": "figures",
    "plot_confusion": "figures",
    "plot_connectome": "connectome_plots",
    "plot_matrix": "connectome_plots",
    "plot_ranks": "ranking_figures",
    "plot_regions": "brain",
    "plot_scales": "ranking_figures",
    "plot_scales_at_quarters": "brain",
    "plot_scores": "figures",
    "read_map": "exports",
    "read_results": "stored",
    "region_table": "tables",
    "remake_report": "page",
    "score_numbers": "score_tables",
    "score_table": "score_tables",
    "seed_table": "tables",
    "short_region_table": "common_regions",
    "table_text": "text_tables",
    "write_interactive": "brain_interactive",
    "write_quality_page": "quality_page",
    "write_ranking": "ranking_files",
    "write_report": "page",
}
__all__ = [*sorted(_MODULES)]  # noqa: PLE0604 (the names are those of _MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
