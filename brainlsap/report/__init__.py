"""Numbers become tables, figures and one page; the only package that draws."""

from importlib import import_module
from typing import Any

# Imported when a name is first used: matplotlib, plotly and nilearn are heavy.
_NAMES = {
    "brain": "plot_regions plot_scales_at_quarters",
    "brain_interactive": "interactive_brain write_interactive",
    "connectome_plots": "plot_connectome plot_matrix",
    "exports": "export_maps",
    "methods": "headline methods_text",
    "plots": "plot_calibration plot_confusion plot_directions plot_roc plot_scales "
    "plot_scores plot_training",
    "report": "check_results_folder read_results write_figures write_report "
    "write_tables",
    "tables": "audit_table class_differences class_rate_table common_region_table "
    "comparison_table demographics_table direction_table fit_table "
    "interval_table region_table score_table table_text unusual_scans_table",
}
_MODULES = {name: module for module, some in _NAMES.items() for name in some.split()}
__all__ = [*sorted(_MODULES)]  # noqa: PLE0604 (the names are those of _MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
