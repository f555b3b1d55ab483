"""Numbers become tables, figures and one page; the only package that draws."""

from importlib import import_module
from typing import Any

# Public name -> its module, imported when the name is first used: matplotlib, plotly
# and nilearn are heavy.
_MODULES = {
    "audit_table": "tables",
    "check_results_folder": "report",
    "class_rate_table": "tables",
    "classification_table": "tables",
    "common_region_table": "tables",
    "comparison_table": "tables",
    "demographics_table": "tables",
    "demographics_tests": "tables",
    "export_maps": "exports",
    "fit_table": "tables",
    "headline": "methods",
    "interactive_brain": "brain_interactive",
    "interval_table": "tables",
    "methods_text": "methods",
    "plot_calibration": "plots",
    "plot_confusion": "plots",
    "plot_connectome": "connectome_plots",
    "plot_matrix": "connectome_plots",
    "plot_ranks": "plots",
    "plot_regions": "brain",
    "plot_scales": "plots",
    "plot_scales_at_quarters": "brain",
    "plot_scores": "plots",
    "read_results": "report",
    "region_table": "tables",
    "score_table": "tables",
    "table_text": "tables",
    "unusual_scans_table": "tables",
    "write_interactive": "brain_interactive",
    "write_report": "report",
}
__all__ = [*sorted(_MODULES)]  # noqa: PLE0604 (the names are those of _MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
