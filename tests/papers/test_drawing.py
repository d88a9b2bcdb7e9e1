"""How figures show where the model holds."""

import io

import numpy as np

from fluidcc.bundled.paper_figs.drawing.draw import draw, rows
from fluidcc.bundled.paper_figs.drawing.figure import Panel, modelled, recipes

RECIPE = recipes("becn")["2"]


def drawn(*valid):
    """A curve of five points, as a picture and as a table."""
    curve = modelled("red", np.arange(5), [1, 3, 2, 4, 1], valid=np.array(valid))
    panel, picture = Panel("x", "y", [curve]), io.BytesIO()
    draw(RECIPE, [panel]).savefig(picture, format="raw")
    return picture.getvalue(), rows(RECIPE, [panel])


def test_a_single_valid_point_is_seen():
    none, (_, *table) = drawn(0, 0, 0, 0, 0)
    middle, (head, *marked) = drawn(0, 0, 1, 0, 0)
    pair, _ = drawn(0, 0, 1, 1, 0)
    assert len({none, middle, pair}) == 3
    place = head.index("valid")
    assert [row[place] for row in table] == [0, 0, 0, 0, 0]
    assert [row[place] for row in marked] == [0, 0, 1, 0, 0]
