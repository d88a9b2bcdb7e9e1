"""Commands run in a folder of their own."""

import pytest
from typer.testing import CliRunner

from fluidcc.cli.app import app


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a command; its exit code, standard output and standard error."""
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def call(*words, heavy=True):
        extra = ["--no-fast-cpu"] if heavy else []
        result = CliRunner().invoke(app, [*words, *extra])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return call
