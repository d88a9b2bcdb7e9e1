"""The command that opens the explorer in a browser."""

import os
import socket
import sys
import threading
from typing import TYPE_CHECKING

import typer

from fluidcc.cli.options import Option, begin, completed, flag, takes, word
from fluidcc.errors import Fault, ScenarioError

if TYPE_CHECKING:
    import uvicorn

_LOCAL = ("127.0.0.1", "::1", "localhost")


@takes(
    scenario=word(
        None, "Bundled scenario or a TOML file to begin with.", str | None, None,
        autocompletion=completed,
    ),
    host=Option("Address to listen on; 0.0.0.0 lets other machines in.", str, "127.0.0.1"),
    port=Option("Port; 0 takes any free port.", int, 8765, "", {"min": 0, "max": 65535}),
    no_browser=flag("Print the address; open no browser."),
)  # fmt: skip
def explore(scenario: str | None, host: str, port: int, no_browser: bool) -> None:
    """A page in the browser: sliders, equilibrium, roots, margins, maps, runs."""
    begin(True)
    from fluidcc.errors import extra

    for module in ("starlette", "uvicorn", "plotly"):
        extra(module, "web", what="the explorer")
    from fluidcc.explore.jobs import prepare

    prepare()
    from fluidcc.explore.controls import Catalogue

    catalogue = Catalogue(scenario)
    listening = _listening(host, port)
    from fluidcc.explore.server import application

    app = application(catalogue, host=host, warm=True)
    import uvicorn

    number = listening.getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{number}/"
    typer.echo(f"fluidcc explore: {address} (Ctrl-C ends it)")
    if host not in _LOCAL:
        typer.echo("note: other machines can reach this; there is no password", err=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    serve(uvicorn.Server(config), listening, None if no_browser else address)


def serve(server: "uvicorn.Server", listening: socket.socket, address: str | None) -> None:
    """Answer until Ctrl-C, which ends the process; open a browser at `address`, if any."""
    if address is not None:
        import webbrowser

        # the socket listens already; a browser in the terminal would not return
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    sys.stdout.flush()
    os._exit(0)  # processes that compute end with this one


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises ScenarioError if the host or the port is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        if not host.strip():  # for a socket: all addresses of the machine
            raise ValueError("no address: 0.0.0.0 stands for all")
        listening.bind((host, port))
        listening.listen()
    except (OSError, ValueError) as error:  # a name may be unknown
        listening.close()
        reason = f"{host}:{port} ({getattr(error, 'strerror', None) or error})"
        expected = "an address of this machine and a free port (0 takes any)"
        raise ScenarioError([Fault("--host, --port", "", expected, reason)]) from None
    return listening
