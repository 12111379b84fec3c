"""The examples in docstrings run, and every public name has the sections that numpydoc asks for."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import treetop
from treetop.evaluation import metrics
from treetop.fields import documented_fields

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(treetop.__path__, "treetop.")
    if module.name.split(".")[1] not in ("__main__", "cli", "serve", "interop", "kernels")
)
METHODS = [
    *(f"XRLinear.{name}" for name in ("fit", "predict", "predict_scores", "explain", "evaluate")),
    *(f"XRLinear.{name}" for name in ("score", "save", "load", "from_preset", "from_pretrained")),
    *(f"XRLinear.{name}" for name in ("get_params", "set_params", "save_pretrained", "push_to_hub")),
    "XRTransformer.fit",
    *("load", "from_pretrained", "from_preset", "presets"),
    *("metrics.evaluate", "metrics.register", "metrics.frequencies", "metrics.propensity_constants"),
]


def examples_of(name):
    module = importlib.import_module(name)
    found = doctest.DocTestFinder(exclude_empty=True).find(module)
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name, request, tmp_path, monkeypatch):
    try:
        tests = examples_of(name)
    except ImportError:  # a module of an extra that is not installed
        pytest.skip(f"{name} cannot be imported here")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(metrics, "METRICS", metrics.METRICS.copy())  # an example registers its own
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in tests:
        if "encoder = " in test.docstring:
            # Examples name an encoder of the Hub; here a tiny one takes its place.
            test.globs["encoder"] = request.getfixturevalue("encoder")
        report = []
        runner.run(test, out=report.append)
        assert runner.summarize(verbose=False).failed == 0, "".join(report)


@pytest.mark.parametrize("name", METHODS)
def test_public_functions_are_documented_in_numpydoc_style(name):
    function = treetop
    for part in name.split("."):
        function = getattr(function, part)
    text = inspect.getdoc(function)
    arguments = [
        argument.name
        for argument in inspect.signature(function).parameters.values()
        if argument.name != "self"
    ]
    if "Parameters and errors are those of `" in text:
        return
    documented = re.findall(r"^\*{0,2}([\w, ]+)(?: : .+)?\n    \S", text, re.M)
    listed = {argument for names in documented for argument in re.split(r",\s*", names)}
    assert set(arguments) <= listed, name
    if not arguments:
        assert "Returns\n-------" in text


def test_the_help_of_a_runtime_describes_every_option():
    text = inspect.getdoc(treetop.Runtime)
    for name, option in documented_fields(treetop.Runtime).items():
        assert re.search(rf"^{name} : .+, default={option.default!r}\n    [A-Z]", text, re.M), name


def test_the_help_of_an_estimator_describes_every_setting():
    for estimator in (treetop.XRLinear, treetop.XRTransformer):
        text = inspect.getdoc(estimator)
        for name in inspect.signature(estimator).parameters:
            assert re.search(rf"^{name} : .+, default=.+\n    [A-Z0-9ΣΦ½]", text, re.M), name
    assert "loss : {'squared-hinge', 'hinge', 'logistic'}, default='squared-hinge'" in inspect.getdoc(
        treetop.XRLinear
    )
    # `help` shows the docstring that Python calls the class by.
    assert inspect.getdoc(treetop.XRLinear).index("Parameters\n") < inspect.getdoc(
        treetop.XRLinear
    ).index("Attributes\n")


def test_public_names_are_listed_and_can_be_imported():
    assert set(treetop.__all__) <= set(dir(treetop))
    for name in treetop.__all__:
        assert getattr(treetop, name) is not None
    with pytest.raises(AttributeError, match="module 'treetop' has no attribute 'XRLineer'"):
        treetop.XRLineer
