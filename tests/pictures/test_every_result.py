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
