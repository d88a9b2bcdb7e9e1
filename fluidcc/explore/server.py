"""The routes of the explorer, and what keeps other pages and other machines away from it."""

import dataclasses
import functools
import ipaddress
import threading
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fluidcc.explore.controls import controls
from fluidcc.explore.jobs import Progress, Worker, spare_the_collector, told
from fluidcc.explore.maps import axes, heavy, stability_grid
from fluidcc.explore.present import numbers_at, present
from fluidcc.explore.runs import duration, packets, trajectory
from fluidcc.explore.state import Catalogue, State, parse
from fluidcc.network import Network
from fluidcc.results import to_json
from fluidcc.scenario.files import dumps
from fluidcc.typed import Faults, count, seconds

_LONGEST_ADDRESS = 16_384
_LONGEST_RUN = "(0, 100000]"
_LARGEST_SEED = 10**9 - 1

_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    **dict.fromkeys(
        ("app.js", "controls.js", "longer.js", "plots.js", "tables.js", "theme.js"),
        "text/javascript; charset=utf-8",
    ),
}

_HEADERS = {
    # plotly sets attributes `style` on what it draws
    "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


class Guard:
    """Refuses what other pages send, names that may lead here by mistake, and long addresses.

    A page elsewhere can make its own name point to this machine, but no number: so a host must be
    an address in numbers, `localhost`, or the name that the explorer was told to listen on.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app, self._names = app, {"localhost", host.lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(k.encode(), v.encode()) for k, v in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        refused = self._refused(scope)
        answer = self._app if refused is None else refused
        await answer(scope, receive, with_headers)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._known(headers.get("host", "")):
            return PlainTextResponse("this name does not belong to the explorer", 421)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            if scope["path"] != "/":  # a link from elsewhere may open the page, nothing more
                return PlainTextResponse("other pages may not ask this", 403)
        if len(scope["query_string"]) > _LONGEST_ADDRESS:
            return PlainTextResponse(f"addresses have at most {_LONGEST_ADDRESS} bytes", 414)
        return None

    def _known(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        name = name.strip("[]").lower()
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True


class Explorer:
    """What is asked of the explorer; it keeps nothing of any page."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue, self._worker, self._turn = catalogue, Worker(), threading.Lock()

    def scenarios(self, state: State) -> dict[str, Any]:
        """Every scenario's name and title, and the one to start with."""
        named = [{"name": n, "title": t} for n, t in self._catalogue.titles().items()]
        return {"start": self._catalogue.start, "scenarios": named}

    def controls(self, state: State) -> dict[str, Any]:
        """The controls of a state, what a map may run over, and how long runs are."""
        base, net = self._catalogue.changed(state)
        return {
            "title": net.title,
            "groups": [dataclasses.asdict(group) for group in controls(base, net)],
            "axes": [{"path": c.path, "name": c.name} for c in axes(base, net)],
            "until": duration(net),
            "heavy": heavy(net),
        }

    def present(self, state: State) -> dict[str, Any]:
        """Equilibrium, roots, margins, Nyquist curves."""
        _, net = self._catalogue.changed(state)
        with self._turn:  # the same thing is not compiled twice
            return {**present(net), "numbers": numbers_at(net, state.changes)}

    def map(self, state: State) -> Callable[[Progress], dict[str, Any]]:
        """The stability map."""
        base, net = self._catalogue.changed(state)
        across, up = state.options.get("map.x"), state.options.get("map.y")
        return functools.partial(stability_grid, base, net, across, up)

    def trajectory(self, state: State) -> Callable[[Progress], dict[str, Any]]:
        """A fluid run."""
        _, net = self._catalogue.changed(state)
        faults = Faults()
        until = _until(state, net, faults)
        faults.finish()
        return lambda _: trajectory(net, until)

    def packets(self, state: State) -> Callable[[Progress], dict[str, Any]]:
        """A packet run."""
        _, net = self._catalogue.changed(state)
        faults = Faults()
        until = _until(state, net, faults)
        text = state.options.get("seed", "1")
        seed = count("seed", text, faults, least=0, most=_LARGEST_SEED)
        faults.finish()
        return functools.partial(packets, net, until, seed)

    def toml(self, state: State) -> tuple[str, str]:
        """The scenario file of a state: its name, and its text."""
        name = "".join(c if c.isalnum() else "_" for c in state.scenario or "scenario")
        return f"{name}.toml", dumps(self._catalogue.changed(state)[1])

    def warm(self) -> None:
        """Compile what the first page will ask for."""

        def work() -> None:
            self.present(State(self._catalogue.start, {}, {}))
            spare_the_collector()

        threading.Thread(target=work, daemon=True).start()

    def lines(self, work: Callable[[Progress], dict[str, Any]]) -> StreamingResponse:
        """The answer to a request for longer work, line by line."""
        return StreamingResponse(self._worker.lines(work), media_type="application/x-ndjson")


def _until(state: State, net: Network, faults: Faults) -> float:
    """The end of a run [s]."""
    text = state.options.get("until") or repr(duration(net))
    return seconds("until", text, faults, within=_LONGEST_RUN)


def _route(path: str, question: Callable[[State], Any], answer: Callable[[Any], Response]) -> Route:
    """A route that answers what is found, beside the event loop, at the state of the address."""

    async def route(request: Request) -> Response:
        try:
            state = parse(request.query_params.multi_items())
            found = await run_in_threadpool(question, state)
        except Exception as fault:
            return _json(told(fault), 422)
        return answer(found)

    return Route(f"/api/{path}", route)


def _json(value: dict[str, Any], status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")


def _download(file: tuple[str, str]) -> Response:
    name, text = file
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="application/toml", headers=headers)


def _file(text: bytes, kind: str) -> Callable[..., Any]:
    async def route(request: Request) -> Response:
        return Response(text, media_type=kind)

    return route


def _static() -> list[Route]:
    """The files of the page, each by its own route: there is no folder to climb out of."""
    own, routes = files("fluidcc") / "explore" / "static", []
    for name, kind in _TYPES.items():
        path = "/" if name == "index.html" else f"/{name}"
        routes.append(Route(path, _file((own / name).read_bytes(), kind)))
    plotly = files("plotly") / "package_data" / "plotly.min.js"
    return [*routes, Route("/plotly.js", _file(plotly.read_bytes(), _TYPES["app.js"]))]


def application(catalogue: Catalogue, *, host: str = "127.0.0.1", warm: bool = False) -> ASGIApp:
    """The explorer as an ASGI application.

    Parameters
    ----------
    catalogue
        The scenarios that a page may choose from.
    host
        The name that the server listens on, which requests may name.
    warm
        Whether to compile what the first page asks for before it does.
    """
    explorer = Explorer(catalogue)
    if warm:
        explorer.warm()
    plain, longer = ("scenarios", "controls", "present"), ("map", "trajectory", "packets")
    routes = [_route(name, getattr(explorer, name), _json) for name in plain]
    routes += [_route(name, getattr(explorer, name), explorer.lines) for name in longer]
    routes.append(_route("scenario.toml", explorer.toml, _download))
    return Guard(Starlette(routes=[*routes, *_static()]), host)
