"""Ask an ASGI application without a network."""

import asyncio
import functools
import json
import os
import signal
import socket
import sys
import time
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
import pytest
import uvicorn

import fluidcc as fc
import fluidcc.cli.explore as command
from fluidcc import Fault, ScenarioError
from fluidcc.bundled import scenarios
from fluidcc.explore import answers as maps
from fluidcc.explore import jobs
from fluidcc.explore.controls import Catalogue
from fluidcc.explore.jobs import Worker, prepare
from fluidcc.explore.server import application


class Answer(NamedTuple):
    status: int
    headers: dict
    text: str

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def lines(self):
        return [json.loads(line) for line in self.text.splitlines()]


def ask(app, path, query=(), headers=None, *, host="127.0.0.1:8765"):
    """The answer to a GET; `query` is a dictionary, pairs, or text as it stands in an address."""
    text = query if isinstance(query, str) else urlencode(query)
    told = {"host": host, **(headers or {})}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
        "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "",
        "query_string": text.encode(), "server": ("127.0.0.1", 8765), "client": ("127.0.0.1", 1),
        "headers": [(k.encode(), v.encode()) for k, v in told.items()],
    }  # fmt: skip
    sent = []

    async def run():
        waits = asyncio.Event()  # nobody hangs up

        async def receive():
            await waits.wait()

        async def send(message):
            sent.append(message)

        await app(scope, receive, send)

    asyncio.run(run())
    start = sent[0]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    found = {k.decode(): v.decode() for k, v in start["headers"]}
    return Answer(start["status"], found, body.decode())


# -- The explorer's answers, asked without a browser
SLOW = {"scenario": "hollot2001/slow"}
W_Q = "links.bottleneck.queue.w_q"


@pytest.fixture(scope="module")
def app():
    prepare()
    return application(Catalogue())


def controls(app, **state):
    return ask(app, "/api/controls", state).json


def flat(answer):
    return {c["path"]: c for group in answer["groups"] for c in group["controls"]}


def test_what_is_shown_is_what_the_library_finds(app):
    state = {**SLOW, W_Q: "1e-5", "flow.n": "45", "link.capacity": "16 Mbit/s"}
    found = ask(app, "/api/present", state).json
    net = fc.replace(fc.load("hollot2001/slow"), {W_Q: 1e-5, "flow.n": 45, "link.capacity": 4000})
    expected = fc.stability(net)
    assert found["equilibrium"] == expected.equilibrium.to_dict()
    assert found["stability"]["roots"] == expected.to_dict()["roots"]
    assert found["stability"]["phase_margin"] == expected.phase_margin
    assert found["numbers"] == {W_Q: 1e-5}  # short paths are for people, who have no sliders there


@pytest.mark.parametrize("name", ["hollot2001/slow", "misra2003/mixed", "qazi2010/three_flows"])
def test_a_state_is_its_address(app, name):
    """What the sliders are at goes out as an address, and comes back as the same network."""
    found = flat(controls(app, scenario=name))
    sliders = [(p, c) for p, c in found.items() if c["span"] and c["value"]]
    assert len(sliders) > 5
    moved = {p: c["value"] + 1 if c["whole"] else 0.999 * c["value"] for p, c in sliders}
    text = ask(app, "/api/scenario.toml", {"scenario": name, **moved})
    assert text.headers["content-disposition"].endswith(".toml")
    again = fc.loads(text.text)
    assert {p: fc.number_at(again, p) for p in moved} == pytest.approx(moved)
    assert fc.dumps(again) == text.text


@pytest.mark.parametrize("name", scenarios())
def test_every_scenario_has_controls_within_their_ranges(app, name):
    answer = controls(app, scenario=name)
    found = flat(answer)
    assert found
    for path, control in found.items():
        if control["options"]:
            assert control["options"][control["value"]] == "", path
        elif control["span"]:
            span = control["span"]
            assert span["low"] <= control["value"] <= span["high"], path
            assert span["low"] < span["high"] and (span["low"] > 0 or not span["log"]), path
            assert control["meaning"], path
            assert path.endswith(".seed") or control["symbol"].startswith("<math"), path
    assert all(found[axis["path"]]["span"] for axis in answer["axes"])
    assert len(answer["axes"]) >= 2 and answer["until"] > 0


@pytest.mark.parametrize(
    "name",
    ["../pyproject", "/etc/passwd", "hollot2001/../hollot2001/slow", "pyproject.toml", "",
     "hollot2001/slow.toml", "..%2f..%2fetc%2fpasswd", "models/hollot2001/slow.toml"],
)  # fmt: skip
def test_only_scenarios_that_are_listed_can_be_read(app, name):
    answer = ask(app, "/api/controls", {"scenario": name})
    if name == "":  # nothing named: the one to start with
        assert answer.json["title"] == "TCP over RED, slow filter"
    else:
        assert answer.status == 422 and "root:" not in answer.text


@pytest.mark.parametrize("path", ["/../state.py", "/static/app.js", "/app.js/../../state.py"])
def test_only_the_files_of_the_page_are_served(app, path):
    assert ask(app, path).status == 404


@pytest.mark.parametrize("path", ["/", "/style.css", "/app.js", "/plotly.js", "/api/scenarios"])
def test_answers_forbid_what_the_page_does_not_need(app, path):
    answer = ask(app, path)
    assert answer.status == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_has_no_inline_script(app):
    page = ask(app, "/").text
    assert "<script>" not in page and "onclick" not in page and "http" not in page


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8765", 200), ("localhost", 200), ("[::1]:8765", 200), ("192.0.2.7:80", 200),
     ("evil.example", 421), ("127.0.0.1.evil.example:8765", 421), ("", 421)],
)  # fmt: skip
def test_names_that_do_not_belong_here_are_refused(app, host, status):
    assert ask(app, "/api/scenarios", host=host).status == status


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [("sec-fetch-site", "cross-site", 403), ("sec-fetch-site", "same-origin", 200),
     ("origin", "http://evil.example", 403), ("origin", "null", 403), ("origin", "http://[", 403),
     ("origin", "http://127.0.0.1:1234", 403), ("origin", "http://127.0.0.1:8765", 200),
     ("referer", "http://evil.example/page", 403), ("referer", "http://127.0.0.1:8765/", 200)],
)  # fmt: skip
def test_other_pages_cannot_ask(app, name, value, status):
    headers = {name: value}
    assert ask(app, "/api/scenarios", headers=headers).status == status
    assert ask(app, "/", headers=headers).status == 200


def test_a_file_is_one_of_the_scenarios(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(fc.dumps(fc.replace(fc.load("hollot2001/slow"), {"flow.n": 33})))
    app = application(Catalogue(str(file)))
    assert ask(app, "/api/scenarios").json["start"] == "mine.toml"
    assert flat(controls(app, scenario="mine.toml"))["flows.tcp.n"]["value"] == 33
    assert flat(controls(app, scenario="hollot2001/slow"))["flows.tcp.n"]["value"] == 60
    assert ask(app, "/api/controls", {"scenario": str(file)}).status == 422


@pytest.mark.parametrize(
    ("name", "query", "words"),
    [
        ("present", {"flows.mod.n": "3000"}, ["at most 200", "got 3011"]),
        ("map", {"flows.mod.n": "100"}, ["at most 60", "got 111"]),
        ("trajectory", {"until": "100000"}, ["until", "at most 3e+07 steps", "got 2.688e+09"]),
        ("packets", {"until": "100000", "link.capacity": "1e6"}, ["until", "3e+08", "got 1e+11"]),
    ],
)
def test_what_would_take_too_long_is_refused_with_what_it_would_take(app, name, query, words):
    answer = ask(app, f"/api/{name}", {"scenario": "misra2003/mixed", **query})
    assert answer.status == 422
    assert all(word in answer.json["error"] for word in words)


def test_a_run_comes_in_lines(app):
    lines = ask(app, "/api/packets", {**SLOW, "until": "2 s", "seed": "3"}).lines
    shares = [line["share"] for line in lines if "share" in line]
    assert shares[0] == 0 and shares == sorted(shares)
    run = lines[-1]["result"]
    assert run["until"] == 2 and run["seed"] == 3
    expected = fc.simulate_packets(
        fc.load("hollot2001/slow"), until=2.0, seeds=(3,), sample=2 / 600
    )
    assert expected.series is not None
    queue = expected.series["link_number_in_system"].isel(seed=0, link=0)
    assert run["links"]["bottleneck"]["queue"] == queue.values.tolist()
    noise = fc.fluctuations(fc.load("hollot2001/slow")).links["bottleneck"].queue
    assert run["noise"] == {
        "links": {"bottleneck": {"mean": noise.mean, "std": noise.std}}, "message": ""
    }  # fmt: skip


def test_a_run_has_the_reason_against_fluctuations(app):
    run = ask(app, "/api/packets", {"scenario": "misra2003/mixed", "until": "2 s"}).lines[-1]
    noise = run["result"]["noise"]
    assert not noise["links"] and "links.bottleneck" in noise["message"]


# -- The map of the explorer
def test_the_map_tells_what_stability_tells(monkeypatch):
    monkeypatch.setattr(maps, "_GRID", 3)
    net, told = fc.load("hollot2001/slow"), []
    found = maps.stability_grid(net, net, None, None, told.append)
    x, y = found["x"], found["y"]
    assert (x["path"], y["path"]) == ("links.bottleneck.queue.w_q", "flows.tcp.n")
    assert told[-1] == 1
    assert set(np.unique(found["stable"])) == {-1, 0, 1}
    for row, n in enumerate(y["values"]):
        for column, w_q in enumerate(x["values"]):
            here = fc.stability(fc.replace(net, {x["path"]: float(w_q), y["path"]: float(n)}))
            assert found["stable"][row, column] == (-1 if here.stable is None else here.stable)
            assert bool(found["message"][row, column]) == (here.stable is None)


# -- The command `fluidcc explore`
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


# -- What is computed by processes: in turn, given up when unwanted, ended at last
@pytest.fixture(scope="module")
def worker():
    jobs.prepare()
    return Worker()


async def collect(worker, work, structure="one"):
    answers = [answer async for answer in worker.answers(work, structure)]
    return [(word, json.loads(text)) for word, text in answers if word]


def told_by(worker, work, structure="one"):
    return asyncio.run(collect(worker, work, structure))


def answer(progress):
    progress(0.5)
    return {"answer": 42}


def process(progress):
    return os.getpid()


def endless(progress, tells):
    progress(0.25)
    while True:
        time.sleep(0.01)
        if tells:
            progress(0.5)


def fail(progress, fault):
    raise fault()


def die(progress):
    os.kill(os.getpid(), signal.SIGKILL)


async def abandon(worker, work):
    """Ask, and leave when it has begun."""
    answers = worker.answers(work, "one")
    async for word, text in answers:
        if (word, text) == ("share", "0.25"):
            break
    await answers.aclose()


def test_answers_end_with_the_result(worker):
    expected = [("share", 0.0), ("share", 0.5), ("result", {"answer": 42})]
    assert told_by(worker, answer) == expected


@pytest.mark.parametrize("tells", [True, False])
def test_what_nobody_waits_for_ends_and_the_next_begins(worker, monkeypatch, tells):
    monkeypatch.setattr(jobs, "_GRACE", 60.0 if tells else 0.2)
    before = told_by(worker, process)[-1]
    asyncio.run(abandon(worker, functools.partial(endless, tells=tells)))
    after = told_by(worker, process)[-1]
    assert (after == before) == tells  # what tells of its progress keeps its process


def test_a_process_that_dies_is_told_and_replaced(worker):
    assert "has died" in told_by(worker, die)[-1][1]["error"]
    assert told_by(worker, answer)[-1] == ("result", {"answer": 42})


@pytest.mark.parametrize(
    ("fault", "values", "told"),
    [
        (ScenarioError, [[Fault("", "n", "more", "less")]], "n: expected more, got less"),
        (ValueError, ["no flows"], "no flows"),
        (MemoryError, [], "there is not enough memory for this: take fewer flows"),
        (KeyError, ["secret"], "a fault of fluidcc itself (KeyError); see the terminal"),
    ],
)
def test_faults_are_told_and_tracebacks_are_not(worker, fault, values, told):
    word, line = told_by(worker, functools.partial(fail, fault=functools.partial(fault, *values)))[
        -1
    ]
    assert word == "error" and line["error"].startswith(told)
