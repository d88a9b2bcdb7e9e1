"""Results as tables: in notebooks, and for papers."""

_ROWS = 12  # of a grid that a notebook shows


class Shown:
    """A result that shows itself as tables; they are made of what it knows, nothing is computed."""

    def to_latex(self) -> str:
        r"""Tables with units for a paper, to be read with ``\input``.

        They need the package booktabs; tables of more than 60 rows are longtables, which need the
        package longtable and stand outside of floats. Numbers have the significant digits of the
        printed tables; a mean with its interval is rounded to the place of the second digit of
        the half width. Verdicts and messages are comments.
        """
        from fluidcc.results.tables.tex import latex
        from fluidcc.results.tables.told import told

        return latex(told(self))

    def _repr_html_(self) -> str:
        from fluidcc.results.tables.html import html
        from fluidcc.results.tables.told import told

        return html(told(self, rows=_ROWS))
