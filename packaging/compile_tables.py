"""Compile the LaTeX tables of a results folder, and check that none is too wide.

    python packaging/compile_tables.py RESULTS OUT

needs tectonic or pdflatex (Debian: texlive-latex-base, texlive-latex-recommended), and
pdftoppm (poppler-utils) for images of the pages. OUT gets tables.tex, tables.pdf and a
PNG of each page. Exits with 1 if TeX reports a line that is too wide.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from brainlsap.report import read_results, write_tables

PREAMBLE = r"""\documentclass[10pt,a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[margin=25mm,showframe]{geometry}
\usepackage{booktabs,array}
\extrafloats{100}
\begin{document}
"""


def compile_tables(results: Path, out: Path) -> list[str]:
    """Write and compile all tables; return what TeX says of lines that are too wide."""
    shutil.rmtree(out, ignore_errors=True)
    tables = write_tables(read_results(results), out / "tables")
    names = [path.name for path in tables if path.suffix == ".tex"]
    inputs = "".join(rf"\input{{tables/{name}}}\clearpage" + "\n" for name in names)
    document = out / "tables.tex"
    document.write_text(f"{PREAMBLE}{inputs}\\end{{document}}\n", encoding="utf-8")
    if shutil.which("tectonic"):
        command = ["tectonic", "--keep-logs", document.name]
    else:
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error"]
        command.append(document.name)
    subprocess.run(command, cwd=out, check=True, stdout=subprocess.DEVNULL)
    if shutil.which("pdftoppm"):
        pages = ["pdftoppm", "-r", "80", "-png", "tables.pdf", "page"]
        subprocess.run(pages, cwd=out, check=True)
    log = (out / "tables.log").read_text(encoding="utf-8", errors="replace")
    print(f"{len(names)} tables: {out / 'tables.pdf'}")
    return re.findall(r"Overfull \\hbox.*", log)


if __name__ == "__main__":
    too_wide = compile_tables(Path(sys.argv[1]), Path(sys.argv[2]))
    print("\n".join(too_wide) or "No line is too wide.")
    sys.exit(bool(too_wide))
