"""How `make docs` builds the documentation; pages made from the code come first."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
NEEDED = ("ipykernel", "latex2mathml", "nbclient", "numpydoc", "pydata_sphinx_theme")
if missing := [name for name in NEEDED if find_spec(name) is None]:
    raise SystemExit(
        f"make docs: {', '.join(missing)} not installed; say pip install --group docs"
    )
sys.path.insert(0, str(HERE))
os.environ.setdefault("MPLBACKEND", "Agg")

import gallery  # noqa: E402
import pages_from_code  # noqa: E402

import brainlsap  # noqa: E402

pages_from_code.write_pages(HERE / "generated")
gallery.write_gallery(
    HERE.parent / "tutorials",
    HERE / "generated" / "gallery",
    # Building while writing text: BRAINLSAP_TUTORIALS=show leaves the code unrun.
    run=os.environ.get("BRAINLSAP_TUTORIALS", "run") == "run",
)

project = "brainlsap"
author = project_copyright = "the authors of brainlsap"
version = release = brainlsap.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "sphinx.ext.viewcode",
    "numpydoc",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["gallery.css"]
html_title = "brainlsap"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
html_show_sourcelink = False

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
add_module_names = False
nitpicky = True  # a reference to what is not there is a warning
nitpick_ignore_regex = [("py:.*", r"(nilearn|sklearn|numpy|pandas|torch)\..*")]
numpydoc_show_class_members = False
numpydoc_validation_checks = set()
viewcode_line_numbers = True


def leave_out(app, what, name, obj, skip, options):  # noqa: ARG001
    """Leave out what is inherited from scikit-learn."""
    own = getattr(obj, "__module__", "") or ""
    foreign = own.startswith("sklearn.") or name.endswith("_request")
    return True if foreign else skip


def source_module(app, module_name, attribute):  # noqa: ARG001
    """Give names of the package itself no page of source: their own package has it.

    Else the link back from the source leads to an entry that only refers to another.
    """
    return module_name if module_name == brainlsap.__name__ else None


def setup(app):
    """Connect what is above."""
    app.connect("autodoc-skip-member", leave_out)
    app.connect("viewcode-follow-imported", source_module)
