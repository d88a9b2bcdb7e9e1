"""The explorer's answers, asked without a browser."""

import pytest
from explore.asgi import ask

import fluidcc as fc
from fluidcc.bundled import scenarios
from fluidcc.explore.jobs import prepare
from fluidcc.explore.server import application
from fluidcc.explore.state import Catalogue

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


def test_addresses_have_a_limit(app):
    assert ask(app, "/api/present", "x" * 20_000).status == 414


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
    queue = expected.series["link_system"].isel(seed=0, link=0)
    assert run["links"]["bottleneck"]["queue"] == queue.values.tolist()
