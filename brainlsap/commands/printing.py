"""What several commands print."""

from pathlib import Path


def print_scores(results: Path) -> None:
    """Print the table of scores of a results folder."""
    table = results / "report" / "tables" / "scores.md"
    if table.is_file():
        print(table.read_text(encoding="utf-8"))
