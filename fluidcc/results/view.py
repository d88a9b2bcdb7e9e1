"""How a result is shown: as lines and tables, as a few numbers, and in a picture."""

from typing import TYPE_CHECKING, Any

from fluidcc.results.blocks import Block, Measured

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure


class View:
    """How one result is shown; each class of results names its own (`fluidcc.result.Result`)."""

    height: Any = 4.0
    """Of the picture [inch]."""
    panels: Any = 1
    """Beside each other; below each other in a narrow picture."""
    instead = ""
    """Why there is no picture, and what to draw."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def tables(self, rows: int | None = None) -> list[Block]:
        """Lines and tables, as `Result.tables` has them."""
        raise NotImplementedError

    def numbers(self) -> dict[str, Measured]:
        """The few numbers that stand for the result in a sweep; none by default."""
        return {}

    def draw(self, figure: "SubFigure") -> None:
        """Draw the picture."""
        raise TypeError(f"plot: {type(self.found).__name__} has no picture: {self.instead}")
