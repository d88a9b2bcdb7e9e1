"""The command `cycle`: its JSON, and points that follow their neighbours."""

import json

import pytest
from typer.testing import CliRunner

from fluidcc.cli.app import app


def run(*words):
    result = CliRunner().invoke(app, [*words, "--no-fast-cpu"])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout


@pytest.mark.slow
def test_the_cycle_is_one_json_object_and_one_table(tmp_path):
    """Half a minute."""
    code, out = run("cycle", "hollot2001/fast", "--json", "--out", str(tmp_path / "cycle.csv"))
    found = json.loads(out)
    assert code == 0 and {"period", "links", "flows", "floquet"} <= set(found)
    (low, high), (least, most) = (found["links"]["bottleneck"][k] for k in ("queue", "average"))
    assert low < least < most < high
    assert found["flows"]["tcp"]["window"] == [pytest.approx([13.413, 17.733], abs=1e-3)]
    assert found["floquet"][0] == [pytest.approx(1.0), 0.0] and found["stable"]
    lines = (tmp_path / "cycle.csv").read_text().splitlines()
    assert len([line for line in lines if not line.startswith("#")]) == 402
    over = ("--over", "link.queue.w_q=0.002,0.0021")
    code, out = run("cycle", "hollot2001/fast", *over, "--json")
    first, second = json.loads(out)["points"]
    assert code == 0 and first["period"] == pytest.approx(found["period"], rel=1e-7)
    assert second["set"] == {"link.queue.w_q": 0.0021} and second["period"] < first["period"]
