"""The routes of the explorer, and its guard against other pages and other machines."""

import dataclasses
import functools
import ipaddress
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fluidcc.explore import answers
from fluidcc.explore.controls import Catalogue, State, controls, parse
from fluidcc.explore.jobs import KINDS, Job, Work, Worker, describe_fault
from fluidcc.results.export import to_json
from fluidcc.scenario.files import dumps
from fluidcc.scenario.parsing import Faults, count, seconds

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

_Answer = Callable[[Request, Any], Awaitable[Response]]

_HEADERS = {
    # plotly sets `style` attributes on its elements
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
    """Refuses requests of other pages, unknown host names, and long addresses.

    Another page can make its own name point to this machine (DNS rebinding), but not an IP address:
    so a host must be an IP address, `localhost`, or the name that the explorer listens on.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app, self._names = app, {"localhost", host.lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(k.encode(), v.encode()) for k, v in _HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        refusal = self._refusal(scope)
        answer = self._app if refusal is None else refusal
        await answer(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._is_known(headers.get("host", "")):
            return PlainTextResponse("this name does not belong to the explorer", 421)
        if scope["path"] != "/" and _is_foreign(headers):
            # a link from elsewhere may open the page, nothing more
            return PlainTextResponse("other pages may not ask this", 403)
        if len(scope["query_string"]) > _LONGEST_ADDRESS:
            return PlainTextResponse(f"addresses have at most {_LONGEST_ADDRESS} bytes", 414)
        return None

    def _is_known(self, host: str) -> bool:
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        name = name.strip("[]").lower()
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in self._names
        return True


def _is_foreign(headers: Headers) -> bool:
    """Whether another page sent the request, by the headers of the browser.

    To addresses that are no secure context, such as those of a local network, browsers send no
    `Sec-Fetch-Site`, but `Origin` or `Referer` if the page does not forbid it.
    """
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return True
    page = headers.get("origin") or headers.get("referer")
    if page is None:
        return False
    try:
        return urlsplit(page).netloc.lower() != headers.get("host", "").lower()
    except ValueError:  # not a URL
        return True


class Task(NamedTuple):
    """Work of a kind, for a process with compiled programs for the structure."""

    kind: str
    work: Work
    structure: tuple[object, ...]


class Explorer:
    """Answers to requests; it stores nothing about any page."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._workers = {kind: Worker() for kind in KINDS}

    def scenarios(self, state: State) -> dict[str, Any]:
        """Every scenario's name and title, and the one to start with."""
        scenarios = [{"name": n, "title": t} for n, t in self._catalogue.titles().items()]
        return {"start": self._catalogue.start, "scenarios": scenarios}

    def controls(self, state: State) -> dict[str, Any]:
        """The controls of a state, the possible axes of a map, and the default length of runs."""
        base, net = self._catalogue.base_and_changed(state)
        return {
            "title": net.title,
            "groups": [dataclasses.asdict(group) for group in controls(base, net)],
            "axes": [{"path": c.path, "name": c.name} for c in answers.map_axes(base, net)],
            "until": answers.default_duration(net),
            "heavy": answers.is_heavy(net),
        }

    def task(self, kind: str, state: State) -> Task:
        """The work that computes an answer of a kind; raises ScenarioError if it takes too long."""
        base, net = self._catalogue.base_and_changed(state)
        options, faults = state.options, Faults()
        if kind == "present":
            answers.check_present(net)
            work = functools.partial(answers.present, net, state.changes)
        elif kind == "map":
            answers.check_map(net)
            across, up = options.get("map.x"), options.get("map.y")
            work = functools.partial(answers.stability_grid, base, net, across, up)
        else:
            until = options.get("until") or repr(answers.default_duration(net))
            end = seconds("until", until, faults, within=_LONGEST_RUN)
            text = options.get("seed", "1") if kind == "packets" else "1"
            seed = count("seed", text, faults, least=0, most=_LARGEST_SEED)
            faults.finish()
            if kind == "trajectory":
                answers.check_trajectory(net, end)
                work = functools.partial(answers.trajectory, net, end)
            else:
                answers.check_packets(net, end)
                work = functools.partial(answers.packets, net, end, seed)
        return Task(kind, work, answers.structure(net))

    def toml(self, state: State) -> tuple[str, str]:
        """The scenario file of a state: its name, and its text."""
        name = "".join(c if c.isalnum() else "_" for c in state.scenario or "scenario")
        return f"{name}.toml", dumps(self._catalogue.base_and_changed(state)[1])

    def warm(self) -> None:
        """Compile the programs of the first page."""
        task = self.task("present", State(self._catalogue.start, {}, {}))
        job = Job(task.work, task.structure, lambda *_: None)
        self._workers[task.kind].put(job)

    def answers(self, task: Task) -> AsyncGenerator[tuple[str, str]]:
        """Progress of a task and last its result or error, as `Worker.answers` has them."""
        return self._workers[task.kind].answers(task.work, task.structure)

    async def whole_answer(self, request: Request, task: Task) -> Response:
        """The answer to a request when it is complete; empty if its client has left."""
        last = "", ""
        async with aclosing(self.answers(task)) as answers:
            async for answer in answers:
                last = answer
                if await request.is_disconnected():
                    break
        event, text = last
        return _json_response(text, 422 if event == "error" else 200)

    async def stream(self, request: Request, task: Task) -> Response:
        """The answer to a request for longer work, line by line."""
        return StreamingResponse(_lines(self.answers(task)), media_type="application/x-ndjson")


async def _lines(answers: AsyncGenerator[tuple[str, str]]) -> AsyncGenerator[str]:
    """Answers as lines of JSON."""
    async with aclosing(answers):
        async for event, text in answers:
            if event == "error":
                yield text + "\n"
            else:
                yield f'{{"{event}": {text}}}\n' if event else "{}\n"


def _route(path: str, question: Callable[[State], Any], answer: _Answer) -> Route:
    """A route that answers a question about the state of the address, in a thread."""

    async def route(request: Request) -> Response:
        try:
            state = parse(request.query_params.multi_items())
            value = await run_in_threadpool(question, state)
        except Exception as fault:
            return _json_response(to_json(describe_fault(fault)), 422)
        return await answer(request, value)

    return Route(f"/api/{path}", route)


def _json_response(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="application/json")


async def _json(request: Request, value: dict[str, Any]) -> Response:
    return _json_response(to_json(value))


async def _download(request: Request, file: tuple[str, str]) -> Response:
    name, text = file
    headers = {"content-disposition": f"attachment; filename*=utf-8''{quote(name)}"}
    return Response(text, media_type="application/toml", headers=headers)


def _file(text: bytes, kind: str) -> Callable[..., Any]:
    async def route(request: Request) -> Response:
        return Response(text, media_type=kind)

    return route


def _static() -> list[Route]:
    """The files of the page, each by its own route: there is no folder to climb out of."""
    folder, routes = files("fluidcc") / "explore" / "static", []
    for name, kind in _TYPES.items():
        path = "/" if name == "index.html" else f"/{name}"
        routes.append(Route(path, _file((folder / name).read_bytes(), kind)))
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
        Whether to compile the programs of the first page before it asks.
    """
    explorer = Explorer(catalogue)
    if warm:
        explorer.warm()
    routes = [_route(name, getattr(explorer, name), _json) for name in ("scenarios", "controls")]
    kinds = dict.fromkeys(KINDS, explorer.stream) | {"present": explorer.whole_answer}
    routes += [_route(k, functools.partial(explorer.task, k), kinds[k]) for k in KINDS]
    routes.append(_route("scenario.toml", explorer.toml, _download))
    return Guard(Starlette(routes=[*routes, *_static()]), host)
