"""What ``treetop tune`` does: search settings, write a preset."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from treetop.cli.console import Console, shell_command
from treetop.cli.members import TRANSFORMER, check_setting_names, parse_assignments
from treetop.cli.options import TuneOptions
from treetop.cli.paths import check_data, check_split_has_labels, read_data
from treetop.errors import TreetopError
from treetop.runtime import Runtime
from treetop.runtime.extras import require
from treetop.runtime.files import check_path
from treetop.runtime.progress import duration
from treetop.settings.notation import parse_time
from treetop.tuning.choosing import Tuned
from treetop.tuning.search import complete_trials
from treetop.tuning.tuning import tune

SHOWN = 5


class Watch:
    """Shows a search: a table on a terminal, else a line per improvement."""

    def __init__(self, console: Console) -> None:
        self.console, self.best, self.began = console, -1, time.perf_counter()
        self.live: Any = None
        if not console.quiet and sys.stderr.isatty():
            from rich.console import Console as Screen
            from rich.live import Live

            self.live = Live(console=Screen(stderr=True), refresh_per_second=4)
            self.live.start()

    def __call__(self, study: Any) -> None:
        """Show the best trials so far."""
        done = complete_trials(study)
        if not done:
            return
        if self.live is not None:
            self.live.update(best_trials(done, len(study.trials)))
        elif done[0].number != self.best:
            chosen = changed(done[0])
            elapsed = duration(time.perf_counter() - self.began)
            value = f"trial {done[0].number}: {done[0].value:.4f}"
            self.console.note(f"{elapsed}: {value} with {chosen or 'the defaults'}")
        self.best = done[0].number

    def close(self) -> None:
        """Leave the last table on the terminal."""
        if self.live is not None:
            self.live.stop()


def changed(trial: Any) -> str:
    """The parameters of a trial that are not the default: a factor of 1, or the first choice."""
    first = {name: getattr(d, "choices", (1.0,))[0] for name, d in trial.distributions.items()}
    chosen = {name: value for name, value in trial.params.items() if value != first[name]}
    return ", ".join(f"{name}={written_parameter(value)}" for name, value in chosen.items())


def written_parameter(value: object) -> str:
    """A parameter; a number is a factor of the default."""
    return f"{value:.3g}×" if isinstance(value, float) else str(value)


def best_trials(done: list[Any], trials: int) -> Any:
    """The best trials as a table of rich."""
    from rich.table import Table

    table = Table("trial", "metric", "changed", title=f"{trials} trials")
    for trial in done[:SHOWN]:
        chosen = changed(trial)
        table.add_row(str(trial.number), f"{trial.value:.4f}", chosen or "the defaults")
    return table


def tune_settings(options: TuneOptions, console: Console) -> None:
    """Search settings for the data and write them as a preset."""
    require("searches for settings", "tune")
    if options.output.suffix != ".json":
        raise TreetopError(f"{options.output}: the preset must be called .json")
    check_path(options.output)
    given = parse_assignments(options.assignments)
    if options.optimize is not None:
        given = {"optimize": options.optimize, **given}
    if options.encoder is not None:
        if options.model != TRANSFORMER:
            raise TreetopError("--encoder is for --model xr-transformer: add that, or leave it out")
        given["encoder"] = options.encoder
    check_setting_names(options.model, given)
    check_data(options.data)
    with console.progress() as report:
        dataset = read_data(options.data, options, report)
    split = dataset.split("train")
    check_split_has_labels(split, "learn from")
    if split.texts is None or split.X is not None:
        raise TreetopError(f"{options.data}: tune searches settings of texts, not of feature matrices")
    dev, validation = dataset.splits.get("dev"), None
    if dev is not None and dev.texts is not None and dev.has_labels:
        validation = (list(dev.texts), dev.given_labels)
    watch = Watch(console)
    try:
        tuned = tune(
            list(split.texts),
            split.given_labels,
            label_names=None if split.labels is not None else dataset.label_names,
            model=options.model,
            settings=given,
            validation=validation,
            seconds=parse_time(options.time),
            trials=options.trials,
            jobs=options.jobs,
            storage=options.study or options.output.with_suffix(".db"),
            runtime=Runtime(),
            report=watch,
        )
    finally:
        watch.close()
    tuned.save(options.output)
    tell(tuned, options.output, options.data, console, options.json)


def tell(tuned: Tuned, output: Path, data: Path, console: Console, as_json: bool) -> None:
    """Print the outcome and what to do with it."""
    if as_json:
        console.json({**vars(tuned), "preset": str(output)})
        return
    if tuned.value > tuned.default_value:
        what = f"{tuned.metric} {tuned.value:.4f}, {tuned.default_value:.4f} with the defaults"
    else:
        what = f"nothing was reliably better than the defaults ({tuned.metric} {tuned.value:.4f})"
    console.message(f"{output}: {tuned.trials} trials: {what}")
    console.message(f"\nNext:\n  {shell_command('train', data, '-o', 'MODEL', '--preset', output)}")
