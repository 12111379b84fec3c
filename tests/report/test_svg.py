"""Parts of charts, on values that are computed by hand."""

import xml.etree.ElementTree as ET

import pytest

from treetop.report import charts, svg
from treetop.report.charts import Measured, Series


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.31, 0.74, [0.4, 0.5, 0.6, 0.7]),
        (0, 730, [0, 200, 400, 600]),
        (0, 0, [0]),
        (0, 0.0009, [0, 0.0002, 0.0004, 0.0006, 0.0008]),
    ],
)
def test_ticks_are_round(low, high, ticks):
    assert svg.ticks_between(low, high) == ticks


def test_values_have_places():
    axes = svg.Axes((0, 0), (10, 1))
    assert (axes.x(0), axes.x(10)) == (svg.LEFT, svg.WIDTH - svg.RIGHT)
    assert (axes.y(0), axes.y(1)) == (svg.HEIGHT - svg.BOTTOM, svg.TOP)
    assert svg.Axes((0, 0), (0, 0)).x(0) == svg.LEFT  # an axis without extent


HOSTILE = '<script>alert("1")</script>&'


@pytest.mark.parametrize(
    "chart",
    [
        charts.lines_chart([Series(HOSTILE, [0, 1], [0, 1])], HOSTILE, HOSTILE, HOSTILE, dots=True),
        charts.lines_chart([], "x", "y", "nothing", percent=False),
        charts.lines_chart([Series("a", [3], [0])], "x", "y", "one point", percent=False),
        charts.estimates_chart({HOSTILE: [Measured(0.5, 0.4, 0.6)] * 2}, [HOSTILE, "b"], HOSTILE),
        charts.estimates_chart({}, [], "nothing"),
        charts.groups_chart({HOSTILE: [0.0]}, [HOSTILE], HOSTILE, HOSTILE, HOSTILE),
        charts.groups_chart({}, [], "x", "y", "nothing"),
        charts.durations_chart({HOSTILE: (1.0, HOSTILE), "b": (0.0, "0 s")}, HOSTILE),
        charts.durations_chart({}, "nothing"),
    ],
)
def test_charts_are_well_formed_and_escape_what_they_show(chart):
    root = ET.fromstring(chart)
    assert root.tag == "svg"
    assert root.attrib["role"] == "img"
    assert {element.tag for element in root.iter()} <= {
        "svg",
        "path",
        "text",
        "polyline",
        "circle",
        "rect",
        "title",
    }
    assert "NaN" not in chart
    assert "nan" not in chart


def test_bars_are_as_high_as_their_values():
    chart = charts.groups_chart({"a": [0.5], "b": [1.0]}, ["m"], "x", "y", "two bars")
    small, large = (float(bar.attrib["height"]) for bar in ET.fromstring(chart).iter("rect"))
    assert large == pytest.approx(2 * small, abs=0.2)
