"""The command `fluidcc explore`."""

import socket
import sys

import pytest
import uvicorn

import fluidcc.cli.explore as command


@pytest.fixture
def served(monkeypatch):
    """What would be served, in place of serving it."""
    calls = []
    monkeypatch.setattr(command, "serve", lambda *args: calls.append(args))
    yield calls
    for _, listening, _ in calls:
        listening.close()


def test_it_listens_on_this_machine_alone(run, served):
    code, out, err = run("explore", "--port", "0", "--no-browser", heavy=False)
    assert (code, err) == (0, "")
    server, listening, address = served[0]
    assert isinstance(server, uvicorn.Server) and address is None
    host, port = listening.getsockname()
    assert host == "127.0.0.1" and f"http://127.0.0.1:{port}/" in out


def test_a_port_that_is_taken(run, served):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        code, _, err = run("explore", "--port", str(taken), heavy=False)
    assert code == 2 and f"127.0.0.1:{taken}" in err and not served


@pytest.mark.parametrize("host", ["", " "])
def test_no_address_is_not_every_address(run, served, host):
    code, _, err = run("explore", "--host", host, "--port", "0", heavy=False)
    assert code == 2 and "expected an address" in err and not served


def test_what_must_be_installed_is_told(run, served, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = run("explore", heavy=False)
    assert code == 2 and "pip install 'fluidcc[web]'" in err and not served
