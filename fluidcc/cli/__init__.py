"""The command line."""

from fluidcc.cli.app import main as main
