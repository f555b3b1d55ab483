"""Tables, figures and the page of a report; the only package that draws."""

from brainlsap import make_lazy_module_attributes

# Modules are imported on first use, because matplotlib and plotly load slowly.
_NAMES = {
    "brain": "plot_effects plot_regions plot_scales_at_quarters",
    "brain_interactive": "interactive_brain write_interactive",
    "demographics": "demographics_table",
    "checklist": "checklist_table",
    "exports": "export_maps",
    "conclusions": "draw_conclusions list_headline_lines",
    "methods": "list_methods_paragraphs score_remarks list_supplement_paragraphs",
    "plots": "plot_calibration plot_confusion plot_connectome_gain plot_contributions "
    "plot_directions plot_flow plot_learning_curve plot_region_tests plot_roc "
    "plot_scales "
    "plot_scores plot_subgroups plot_training",
    "regions": "region_group_table region_tests_table",
    "report": "check_results_folder read_results write_figures write_report "
    "write_tables",
    "tables": "added_value_text_table audit_table class_difference_table "
    "class_rate_table common_region_table comparison_table connectome_gain_table "
    "direction_table fit_table interval_table region_table score_table "
    "subgroup_text_table table_text unusual_scans_table",
}
__all__, __getattr__, __dir__ = make_lazy_module_attributes(__name__, _NAMES)
