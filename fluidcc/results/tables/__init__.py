"""What is told of results: lines and tables as data, and how they are written.

`blocks` says what a table is; `rest`, `cycles`, `runs`, `slopes`, `bounds`, `optimum` and `grids`
make tables of results; `told` knows which; `html` and `tex` write them, and `fluidcc.cli.report`
prints them.
"""
