"""Directives that show formulas made from the laws: of a scenario, and of one law's rules."""

from docutils import nodes
from law_pages import aligned, packet_rules
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import fluidcc as fc
from fluidcc.laws.registry import LAWS
from fluidcc.laws.symbolic import says


class Equations(SphinxDirective):
    """The fluid model of a bundled scenario: ``{equations} misra2003/mixed``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The formulas as a block."""
        text = fc.latex(fc.load(self.arguments[0]))
        return [nodes.math_block(text, text)]


class Rules(SphinxDirective):
    """The rules of one law for packets: ``{rules} window/ecn_mod``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The formulas as a block."""
        kind, name = self.arguments[0].split("/")
        law = LAWS[kind][name]()
        said = says(law) if kind == "queue" else []
        text = aligned(packet_rules(law) + said)
        return [nodes.math_block(text, text)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    app.add_directive("equations", Equations)
    app.add_directive("rules", Rules)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
