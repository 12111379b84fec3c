"""Progress in a notebook: one output that is updated in place."""

import sys
import types

import pytest

from treetop import Runtime
from treetop.runtime import notebook
from treetop.runtime.notebook import NotebookReporter, progress_reporter, reporting, seconds_text
from treetop.runtime.progress import Reporter


class Display:
    """A stand-in for IPython's display: remembers what each output showed last, and how often."""

    def __init__(self):
        self.outputs, self.updates = [], 0

    def __call__(self, thing, display_id):
        assert display_id is True
        self.outputs.append(thing._repr_html_())
        return self

    def update(self, thing):
        self.outputs[-1] = thing._repr_html_()
        self.updates += 1


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until the test moves it."""
    clock = types.SimpleNamespace(now=100.0)
    monkeypatch.setattr(notebook.time, "perf_counter", lambda: clock.now)
    return clock


def test_steps_are_rows_of_one_output(clock):
    display = Display()
    reporter = NotebookReporter(display)
    advance = reporter.step("rankers", 4)
    clock.now += 10
    advance()
    reporter.figures("loss 0.5 <")
    assert 'rankers</td><td style="text-align:left"><progress value="1" max="4"' in display.outputs[0]
    assert "10.0 s, 30.0 s left" in display.outputs[0]
    clock.now += 60
    reporter.step("saving")
    reporter.note("the GPU failed: continuing on the CPU")
    clock.now += 1
    reporter.close()
    assert len(display.outputs) == 1
    html = display.outputs[0]
    assert html.count("<tr>") == 2
    assert "1 min 10 s" in html
    assert "loss 0.5 &lt;" in html
    assert "left</td>" not in html
    assert html.endswith("<p>treetop: the GPU failed: continuing on the CPU</p>")
    assert repr(reporter) == "rankers: 1 min 10 s\nsaving: 1.0 s"


def test_a_step_of_unknown_length_shows_that_it_runs(clock):
    display = Display()
    NotebookReporter(display).step("label tree")
    assert '<progress max="1"' in display.outputs[0]


def test_the_page_is_not_updated_more_often_than_people_can_read(clock):
    display = Display()
    reporter = NotebookReporter(display)
    advance = reporter.step("rankers", 1000)
    for _ in range(1000):
        clock.now += 0.001
        advance()
    reporter.close()
    assert display.updates <= 6
    assert 'value="1000" max="1000"' in display.outputs[0]


def test_late_parts_of_a_finished_step_change_nothing(clock):
    display = Display()
    reporter = NotebookReporter(display)
    advance = reporter.step("one", 2)
    reporter.step("two")
    shown = display.outputs[0]
    clock.now += 1
    advance()
    assert display.outputs[0] == shown


def test_seconds_are_written_as_people_say_them():
    assert [seconds_text(s) for s in (0.04, 59.94, 60, 125, 7265)] == [
        "0.0 s",
        "59.9 s",
        "1 min 00 s",
        "2 min 05 s",
        "121 min 05 s",
    ]


def test_the_reporter_is_that_of_the_place(monkeypatch):
    assert not isinstance(progress_reporter(), NotebookReporter)
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace()  # IPython in a terminal
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not isinstance(progress_reporter(), NotebookReporter)
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    ipython.display = types.ModuleType("IPython.display")
    ipython.display.display = Display()
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    assert isinstance(progress_reporter(), NotebookReporter)


class Closing(Reporter):
    closed = 0

    def close(self):
        self.closed += 1


def fail_while_reporting(reporters):
    with reporting(Runtime(verbose=1)) as runtime:
        reporters.append(runtime.reporter)
        raise ZeroDivisionError


def test_only_a_reporter_made_here_is_closed(monkeypatch):
    monkeypatch.setattr(notebook, "progress_reporter", Closing)
    given = Closing()
    with reporting(Runtime(reporter=given, verbose=True)) as runtime:
        assert runtime.reporter is given
    assert given.closed == 0
    with reporting(Runtime(verbose=True)) as runtime:
        made = runtime.reporter
        assert (type(made), made.closed) == (Closing, 0)
    assert made.closed == 1
    made = []
    with pytest.raises(ZeroDivisionError):
        fail_while_reporting(made)
    assert made[0].closed == 1
    with reporting(Runtime()) as runtime:
        assert type(runtime.reporter) is Reporter
