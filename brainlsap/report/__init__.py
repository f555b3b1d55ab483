"""Room 5: numbers become tables, figures and one page; the only room that draws."""

from brainlsap.report.audit_tables import audit_table, info_sheet
from brainlsap.report.common_regions import common_region_table, short_region_table
from brainlsap.report.comparison_tables import (
    chosen_table,
    classification_table,
    comparison_numbers,
)
from brainlsap.report.demographics import demographics_tests
from brainlsap.report.exports import export_results, write_region_maps
from brainlsap.report.figures import plot_calibration, plot_confusion, plot_scores
from brainlsap.report.folder import check_results_folder
from brainlsap.report.glass_brain import plot_glass_brain
from brainlsap.report.interactive import interactive_html, write_interactive
from brainlsap.report.map_comparison import compare_maps, read_maps
from brainlsap.report.network_figures import plot_connectome, plot_ring
from brainlsap.report.page import remake_report, write_report
from brainlsap.report.quality_page import write_quality_page
from brainlsap.report.ranking_figures import plot_ranks, plot_scales
from brainlsap.report.ranking_files import write_ranking
from brainlsap.report.reach_figure import plot_reach
from brainlsap.report.score_tables import score_numbers, score_table
from brainlsap.report.statistics_tables import (
    class_rate_table,
    comparison_table,
    division_table,
    interval_table,
)
from brainlsap.report.stored import StoredResults, read_results
from brainlsap.report.surface import plot_regions
from brainlsap.report.tables import (
    demographics_table,
    region_table,
    seed_table,
)
from brainlsap.report.text_tables import table_text
from brainlsap.report.training_animation import write_training_animation
from brainlsap.report.training_figures import (
    plot_training_scales,
    plot_trajectories,
    scales_at_quarters,
)

__all__ = [
    "StoredResults",
    "audit_table",
    "check_results_folder",
    "chosen_table",
    "class_rate_table",
    "classification_table",
    "common_region_table",
    "compare_maps",
    "comparison_numbers",
    "comparison_table",
    "demographics_table",
    "demographics_tests",
    "division_table",
    "export_results",
    "info_sheet",
    "interactive_html",
    "interval_table",
    "plot_calibration",
    "plot_confusion",
    "plot_connectome",
    "plot_glass_brain",
    "plot_ranks",
    "plot_reach",
    "plot_regions",
    "plot_ring",
    "plot_scales",
    "plot_scores",
    "plot_training_scales",
    "plot_trajectories",
    "read_maps",
    "read_results",
    "region_table",
    "remake_report",
    "scales_at_quarters",
    "score_numbers",
    "score_table",
    "seed_table",
    "short_region_table",
    "table_text",
    "write_interactive",
    "write_quality_page",
    "write_ranking",
    "write_region_maps",
    "write_report",
    "write_training_animation",
]
