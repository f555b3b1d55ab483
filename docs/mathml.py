"""Formulas as MathML, which every browser draws: the pages fetch nothing."""

from docutils import nodes
from latex2mathml.converter import convert


def setup(app):
    """Offer the renderer to Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def inline(writer, node):
    """Write a formula in a line of text."""
    writer.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def block(writer, node):
    """Write a displayed formula; lines of an `aligned` block stay together."""
    writer.body.append(writer.starttag(node, "div", CLASS="formula"))
    latex = node.astext()
    if "\\\\" in latex and "\\begin" not in latex:
        latex = "\\begin{aligned}" + latex + "\\end{aligned}"
    writer.body.append(convert(latex, display="block"))
    writer.body.append("</div>\n")
    raise nodes.SkipNode
