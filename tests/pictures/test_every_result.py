"""Every public result has a picture with labels and units, or says in a sentence why not."""

import dataclasses
import functools
import inspect
import io

import numpy as np
import pytest
from result_cases import INPUTS, NET, NUMBERS, RESULTS, made

import fluidcc as fc
from fluidcc.results.axes import wrapped

REFUSED = {"EquationEquilibrium", "Gradient", "LawReport"}
BARE = {
    "state", "quantity", "link", "group of flows", "bound", "Number of flows $N$",
    "Weight of one sample in the average $w_q$",
    "value over bound, at the worst case found", "real part of the loop gain",
    "imaginary part of the loop gain", "unstable roots", r"Mark probability $p$ of bottleneck",
    r"Utilization $\rho$ of bottleneck", "r", "tau",
}  # fmt: skip
"""Labels of what has no dimension."""


def test_every_public_class_is_known_here():
    classes = {name for name in dir(fc) if inspect.isclass(getattr(fc, name))}
    assert classes - INPUTS <= {*RESULTS, *NUMBERS}
    assert all(type(make()).__name__ == name for name, make in NUMBERS.items())


def _labels(ax):
    """Both labels; panels above each other may share the horizontal one."""
    shared = [other.get_xlabel() for other in ax.get_shared_x_axes().get_siblings(ax)]
    return ax.get_xlabel() or next(filter(None, shared), ""), ax.get_ylabel()


@pytest.mark.parametrize("width", [7.0, 3.5])
@pytest.mark.parametrize("name", sorted({*RESULTS} - REFUSED))
def test_pictures_have_labels_with_units(name, width):
    figure = fc.plot(made(name), width=width)
    assert figure.get_figwidth() == width
    axes = [ax for ax in figure.get_axes() if ax.get_visible() and ax.get_label() != "<colorbar>"]
    assert axes
    for ax in axes:
        assert ax.get_lines() or ax.patches or ax.collections or ax.containers
        for label in _labels(ax):
            words = label.replace("\n", " ")
            assert words in BARE or (words.endswith("]") and "[" in words), (name, words)
    figure.draw_without_rendering()  # warnings about the layout are errors
    box = figure.get_tightbbox()
    assert box.x0 > -0.02 and box.x1 < width + 0.02  # nothing is cut


def test_the_title_of_the_scenario_stands_above_wide_pictures_once():
    rest, run = made("Equilibrium"), made("Trajectory")
    both = fc.plot(rest, run)
    titles = [part.get_suptitle() for part in both.subfigs]
    assert titles[0].startswith(f"{NET.title}\nqueue and") and titles[1] == ""
    assert NET.title not in fc.plot(rest, width=3.5).subfigs[0].get_suptitle()
    assert fc.plot(made("FrequencyResponse")).subfigs[0].get_suptitle() == NET.title
    for name in ("PacketRuns", "TrainRuns"):
        assert made(name).plot().subfigs[0].get_suptitle().startswith(f"{NET.title}\nmean")


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_no_picture_says_why(name):
    with pytest.raises(TypeError, match=f"plot: {name} has no picture: .*draw"):
        fc.plot(made(name))


def test_margins_are_marked_where_the_loop_passes():
    """The marks lie on the drawn loop, and the labels have the margins with units."""
    found = made("Stability")
    loop = fc.plot(found).get_axes()[1]
    lines = {line.get_label(): np.column_stack(line.get_data()) for line in loop.get_lines()}
    curve = lines["L(iω), cut at bottleneck"]
    marks = {label: xy[0] for label, xy in lines.items() if len(xy) and "margin" in str(label)}
    gain, phase = (next(v for k, v in marks.items() if k.startswith(w)) for w in ("gain", "phase"))
    assert gain == pytest.approx([-1 / found.gain_margin, 0.0])
    assert np.hypot(*phase) == pytest.approx(1.0)
    for place in (gain, phase):
        assert np.min(np.hypot(*(curve - place).T)) < 0.01
    assert any(f"{found.phase_margin:.3g} deg at" in label for label in marks)


def test_parameters_are_named_in_words_and_drawn_in_their_unit():
    """A rate is typed in bit/s, kept in packets, and drawn as it was typed."""
    for path, values, label in (
        ("link.capacity", ("20 Mbit/s", "30 Mbit/s"), "Link rate $C$ [Mbit/s]"),
        ("link.delay", ("20 ms", "30 ms"), "One-way propagation $d$ [ms]"),
    ):
        swept = fc.sweep(NET, {path: values}, fc.equilibrium)
        ax = [ax for ax in fc.plot(swept, width=3.5).get_axes() if ax.get_xlabel()][-1]
        assert ax.get_xlabel() == label
        assert ax.get_lines()[0].get_xdata() == pytest.approx([20, 30])


def test_labels_are_broken_between_words_only():
    label = "bottleneck_with_a_name_that_is_far_too_long_for_it: mark probability"
    assert wrapped(label, 1.0).replace("\n", " ") == label
    assert max(map(len, wrapped("least and greatest queue of a link", 1.0).split("\n"))) < 18


def test_the_stable_region_of_a_boundary_is_shaded():
    """The state of y' = -r y(t - tau) (1 + y) is stable at 0 below r tau = pi/2."""
    ax = fc.plot(made("Boundary")).get_axes()[0]
    mesh = ax.collections[0]
    corners, shown = mesh.get_coordinates(), np.asarray(mesh.get_array())
    r, tau = np.moveaxis((corners[1:, 1:] + corners[:-1, :-1]) / 2, -1, 0)
    clear = abs(r * tau - np.pi / 2) > 0.03
    assert clear.mean() > 0.9
    assert np.array_equal(shown[clear], (r * tau > np.pi / 2)[clear])
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "stable" in words
    assert any(word.startswith("Hopf, ") and word.endswith(" rad/s") for word in words)


def test_a_sweep_of_comparisons_has_all_levels_in_one_panel():
    verb = functools.partial(fc.compare, until=5, levels=("mean", "population"), trajectory=False)
    swept = fc.sweep(NET, {"flow.n": [40, 60]}, verb)
    printed = str(swept).splitlines()
    assert max(map(len, printed)) <= 100  # a table for each quantity
    assert "links.bottleneck.queue, 2 points" in printed
    data = fc.SweepData(swept.axes, swept.units, swept.to_xarray(), NET)
    for found in (swept, data):
        axes = {ax.get_ylabel().replace("\n", " "): ax for ax in fc.plot(found).get_axes()}
        lines = axes["Queue $q$ of bottleneck [packet]"].containers
        rows = [{row.name: row for row in p.result.rows}["links.bottleneck.queue"]
                for p in swept.points]  # fmt: skip
        shown = {line.get_label(): line[0].get_ydata() for line in lines}
        assert shown["mean"] == pytest.approx([row.equilibrium for row in rows])
        assert shown["population"] == pytest.approx([row.population for row in rows])


LINK = """
[links.bottleneck]
capacity = "10 Mbit/s"
packet_size = "1000 B"
buffer = "100 packet"
queue = { law = "droptail" }
[flows.tcp]
n = 3
rtt = "40 ms"
window = { law = "newreno" }
"""


def _words(ax):
    return [text.get_text() for text in ax.texts]


def test_changes_of_a_link_are_marked_at_their_times():
    schedule = 'schedule = [{ at = "4 s", capacity = "5 Mbit/s", delay = "30 ms" }]\n[flows.tcp]'
    net = fc.loads(LINK.replace("[flows.tcp]", schedule))
    runs = fc.simulate_packets(net, until=8, warmup=1, seeds=(1,), sample=0.05)
    for ax in fc.plot(runs).get_axes():
        assert _words(ax) == ["5 Mbit/s, 30 ms"] and ax.texts[0].xy[0] == 4.0
        assert any(list(line.get_xdata()) == [4.0, 4.0] for line in ax.get_lines())


def test_peaks_that_leave_the_picture_are_named():
    """Slow start takes the first of ten flows far above the windows that it has later."""
    net = fc.load("durresi2001/ten_tail_59ms")
    runs = fc.simulate_packets(net, until=20, warmup=10, seeds=(1,), sample=0.05)
    windows = fc.plot(runs).get_axes()[1]
    run = runs.series.isel(seed=0)
    late = float(run.group_window.where(run.time >= 10).max())
    peak = float(run.group_window.max())
    assert peak > 4 * late and windows.get_ylim() == pytest.approx((0, 1.3 * late))
    assert _words(windows) == [f"up to {peak:.4g}"]


def test_axes_have_whole_ticks_for_counts_powers_in_units_and_no_panels_of_zeros():
    swept = fc.sweep(NET, {"flow.n": [58, 59, 60]}, fc.stability)
    assert swept.points[0].result.unstable == 0
    figure = fc.plot(swept)
    labels = [ax.get_ylabel() for ax in figure.get_axes()]
    assert "Unstable roots" not in labels and "Growth rate [1/s]" in labels
    assert "0 at all points: Unstable roots" in figure.subfigs[0].get_suptitle()
    assert all(tick == round(tick) for tick in figure.get_axes()[-1].get_xticks())
    few = fc.sweep(NET, {"flow.n": [1, 2]}, fc.equilibrium)
    figure = fc.plot(few)
    ax = next(a for a in figure.get_axes() if "Mark probability" in a.get_ylabel())
    assert ax.get_ylabel().endswith("[$10^{-5}$]") and not ax.yaxis.get_offset_text().get_visible()
    shown = few.points[1].result.links["bottleneck"].mark_probability
    low, high = ax.get_ylim()
    assert low < shown < high
    figure.draw_without_rendering()
    tick = ax.yaxis.get_major_ticks()[-1]
    assert f"{{{1e5 * tick.get_loc():.1f}}}" in tick.label1.get_text()


def test_intervals_of_what_is_not_negative_end_at_zero():
    verb = functools.partial(fc.simulate_packets, until=3, warmup=1, seeds=(1, 2))
    swept = fc.sweep(fc.load("misra2003/mixed"), {"flows.mod.n": [2, 10]}, verb)
    halves = [p.result.ci95["flows"]["mod"]["goodput"] for p in swept.points]
    means = [p.result.mean["flows"]["mod"]["goodput"] for p in swept.points]
    assert any(half > mean for half, mean in zip(halves, means, strict=True))
    for ax in fc.plot(swept).get_axes():
        for bars in (b for c in ax.containers for b in c[2]):
            assert all(segment[:, 1].min() >= 0 for segment in bars.get_segments())


def test_saved_samples_are_drawn_and_other_files_name_the_command(tmp_path):
    run, rest = made("Trajectory"), made("Equilibrium")
    run.save(tmp_path / "run.nc")
    figure = fc.plot(fc.load_result(tmp_path / "run.nc"))
    (ax,) = (a for a in figure.get_axes() if a.get_ylabel().startswith("Queue $q$"))
    (line,) = ax.get_lines()
    assert np.array_equal(line.get_ydata(), run.links["bottleneck"].queue)
    data = rest.to_xarray().assign_attrs(command="fluidcc equilibrium mine.toml")
    with pytest.raises(TypeError, match=r"`fluidcc equilibrium mine\.toml --plot FILE\.png` draws"):
        fc.plot(data)


def test_a_cycle_that_is_none_has_no_picture():
    with pytest.raises(ValueError, match="no picture: no cycle"):
        fc.plot(fc.cycle(fc.load("hollot2001/slow")))


def test_fonts_are_embedded_as_truetype():
    file = io.BytesIO()
    with fc.style():
        fc.plot(made("Crossings"), width=3.5).savefig(file, format="pdf")
    assert b"/FontFile2" in file.getvalue() and b"/Type3" not in file.getvalue()


def test_a_map_of_populations_shows_verdicts_where_it_has_no_rates():
    net = dataclasses.replace(fc.load("hollot2001/slow"), closure="population")
    found = fc.stability_map(net, {"link.queue.w_q": [1e-5, 1e-3], "flow.n": [60, 200, 1000]})
    ax = fc.plot(found).get_axes()[0]
    shown = ax.collections[0].get_array().filled(np.nan).reshape(3, 2).T
    assert np.array_equal(np.sign(shown), [[-1, -1, np.nan], [1, -1, np.nan]], equal_nan=True)
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(words) == ["stable", "undetermined", "unstable"]
    assert found.grid("stable").tolist() == [[1, 1, -1], [0, 1, -1]]
