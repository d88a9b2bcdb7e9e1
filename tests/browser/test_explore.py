"""The explorer in Debian's Chromium: a slider moved, numbers read, files saved and read again."""

import contextlib
import csv
import http.server
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

import numpy as np
import pytest

import fluidcc as fc

pytestmark = pytest.mark.browser

W_Q = "links.bottleneck.queue.w_q"
LONG = 180_000  # ms, where something is compiled


@contextlib.contextmanager
def served(*options):
    """Where a server of its own answers."""
    command = [sys.executable, "-c", "from fluidcc.cli import main; main()", "explore"]
    command += ["--no-browser", "--port", "0", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    told = server.stdout.readline()
    try:
        yield told.split()[2]
    finally:
        server.terminate()
        server.wait(20)
        server.stdout.close()


@pytest.fixture(scope="module")
def address():
    with served() as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium")
    assert path, "run tests/browser/run, which installs Chromium"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser, address):
    """Open a state; whatever the console complains about fails the test."""
    complaints, contexts = [], []

    def call(query=None, width=1400, height=900, scheme="light"):
        size = {"width": width, "height": height}
        context = browser.new_context(
            viewport=size, color_scheme=scheme, permissions=["clipboard-read", "clipboard-write"]
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: m.type in ("error", "warning") and complaints.append(m.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address + ("?" + urllib.parse.urlencode(query) if query else ""))
        page.locator("body[data-shown]").wait_for(timeout=LONG)
        return page

    yield call
    for context in contexts:
        context.close()
    refusals = "status of 422"  # the browser's note of a fault that the page shows
    assert not [text for text in complaints if refusals not in text]


def number(page, key):
    """A number of the equilibrium or of stability, as the page shows it."""
    return float(page.locator(f'tr[data-value="{key}"] td').inner_text().split()[0])


def control(page, path):
    return page.locator(f'.control[data-path="{path}"]')


def shown(page, text):
    """Wait until what is shown is of a state whose address has this text."""
    page.locator(f'body[data-shown*="{text}"]').wait_for(timeout=LONG)


def saved(page, selector, tmp_path):
    with page.expect_download() as waiting:
        page.locator(selector).click()
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    return file


def table(file):
    lines = [x for x in file.read_text().splitlines() if not x.startswith("#")]
    return list(csv.DictReader(lines))


def test_a_slider_moves_the_numbers(opened):
    page = opened({"scenario": "hollot2001/slow"})
    row = control(page, "flows.tcp.n")
    slider = row.locator('input[type="range"]')
    slider.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    n = float(row.locator('input[type="text"]').input_value())
    assert n > 60
    shown(page, f"flows.tcp.n={n:g}")
    expected = fc.stability(fc.replace(fc.load("hollot2001/slow"), {"flow.n": n}))
    queue = expected.equilibrium.links["bottleneck"].queue
    assert number(page, "links.bottleneck.queue") == pytest.approx(queue, rel=1e-3)
    assert number(page, "phase_margin") == pytest.approx(expected.phase_margin, rel=1e-3)
    assert "Stable" in page.locator("#stability .verdict").inner_text()
    page.locator("#status", has_text="phase margin").wait_for()
    row.locator(".undo").click()
    shown(page, "scenario=hollot2001%2Fslow")
    page.locator('body:not([data-shown*="flows.tcp.n"])').wait_for()
    assert row.locator('input[type="text"]').input_value() == "60"


def test_files_are_what_is_shown(opened, tmp_path):
    page = opened({"scenario": "hollot2001/slow", W_Q: "2e-5"})
    scenario = fc.load(saved(page, "#toml", tmp_path))
    assert fc.number_at(scenario, W_Q) == 2e-5
    assert fc.equilibrium(scenario).links["bottleneck"].queue == pytest.approx(
        number(page, "links.bottleneck.queue"), rel=1e-3
    )
    rest = {r["quantity"]: r["value"] for r in table(saved(page, "#equilibrium button", tmp_path))}
    exact = fc.equilibrium(scenario).links["bottleneck"].queue
    assert float(rest["links.bottleneck.queue"]) == pytest.approx(exact, rel=1e-12)
    roots = table(saved(page, '#roots [data-export="csv"]', tmp_path))
    assert [float(r["real (1/s)"]) for r in roots] == pytest.approx(
        fc.stability(scenario).roots.real.tolist(), rel=1e-6
    )
    curve = table(saved(page, '#nyquist [data-export="csv"]', tmp_path))
    assert len(curve) > 100
    picture = saved(page, '#nyquist [data-export="png"]', tmp_path).read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) > 5000


def test_an_address_is_a_state(opened):
    page = opened({"scenario": "hollot2001/fast"})
    box = control(page, "links.bottleneck.capacity").locator('input[type="text"]')
    box.fill("18 Mbit/s")
    box.press("Enter")
    shown(page, "18+Mbit")
    before = number(page, "flows.tcp.window")
    page.locator("#link").click()
    page.locator("#status", has_text="clipboard").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(link).query))
    assert query == {"scenario": "hollot2001/fast", "links.bottleneck.capacity": "18 Mbit/s"}
    again = opened(query)
    assert number(again, "flows.tcp.window") == before
    assert control(again, "links.bottleneck.capacity").get_attribute("class").endswith("changed")


def test_the_map_the_run_and_packets_beside_it(opened, tmp_path):
    page = opened({"scenario": "hollot2001/slow", "until": "5"})
    page.locator("#map .heatmaplayer image").wait_for(state="attached", timeout=LONG)
    page.locator("#trajectory .js-line").first.wait_for(state="attached", timeout=LONG)
    points = table(saved(page, '#map [data-export="csv"]', tmp_path))
    assert len(points) == 32 * 32
    one = points[500]
    here = fc.replace(
        fc.load("hollot2001/slow"), {W_Q: float(one[W_Q]), "flow.n": float(one["flows.tcp.n"])}
    )
    assert int(one["stable"]) == int(fc.stability(here).stable)
    page.locator("#packets").click()
    page.locator("#trajectory .legend", has_text="packets").wait_for(timeout=LONG)
    assert page.locator("#trajectory .legend", has_text="population ±").count() == 1
    runs = table(saved(page, '#trajectory [data-export="csv"]', tmp_path))
    fluid = np.array([float(r["fluid.links.bottleneck.queue (packet)"]) for r in runs])
    net = fc.load("hollot2001/slow")
    expected = fc.simulate(net, until=5.0, points=np.linspace(0, 5, 601))
    assert fluid == pytest.approx(expected.links["bottleneck"].queue, rel=1e-6)
    run = fc.simulate_packets(net, until=5.0, seeds=(1,), sample=5 / 600)
    packets = [float(r["packets.links.bottleneck.queue (packet)"]) for r in runs]
    assert packets == run.series["link_number_in_system"].isel(seed=0, link=0).values.tolist()


class _Elsewhere(http.server.BaseHTTPRequestHandler):
    """A page of another server."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()

    def log_message(self, *args):
        pass


def test_other_pages_are_refused_on_a_local_network_too(browser):
    """There browsers send no `Sec-Fetch-Site`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has no address but the loopback")
        here = way.getsockname()[0]
    with served("--host", here) as address, http.server.HTTPServer((here, 0), _Elsewhere) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://{here}:{other.server_port}/")
        for mode in ("cors", "no-cors"):
            with page.expect_event("requestfailed") as failed:
                page.evaluate(
                    "([url, mode]) => fetch(url, { mode }).catch(() => 0)",
                    [f"{address}api/controls", mode],
                )
            # the browser may hide the answer: what it sent is sent again
            sent = failed.value.all_headers()
            assert "sec-fetch-site" not in sent
            with pytest.raises(urllib.error.HTTPError, match="403") as refused:
                urllib.request.urlopen(urllib.request.Request(failed.value.url, headers=sent))
            refused.value.close()
        page.goto(address)
        page.locator("body[data-shown]").wait_for(timeout=LONG)
        page.close()
        other.shutdown()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_every_width_in_light_and_dark(opened, width, scheme, tmp_path):
    page = opened({"scenario": "hollot2001/slow"}, width, 740, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    picture = page.locator("#roots .main-svg").first
    drawn = picture.evaluate("e => getComputedStyle(e).backgroundColor")
    dark = [sum(map(int, c[4:-1].split(", "))) < 200 for c in (ground, drawn)]
    assert dark == [scheme == "dark"] * 2
    page.screenshot(path=tmp_path / f"{width}_{scheme}.png", full_page=True)
