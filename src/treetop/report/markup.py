"""HTML of reports. Whatever comes from data or models is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

from treetop.runtime.tables import html_table

# Nothing is loaded and nothing is executed, whatever a label is called.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(title: str, about: str, sections: Sequence[tuple[str, str]]) -> str:
    """The whole page; `sections` are headings with their HTML, empty ones are left out."""
    kept = [(heading, body) for heading, body in sections if body]
    links = "".join(f'<li><a href="#{slug(heading)}">{escape(heading)}</a></li>' for heading, _ in kept)
    bodies = "".join(
        f'<section id="{slug(heading)}"><h2>{escape(heading)}</h2>{body}</section>'
        for heading, body in kept
    )
    style = files("treetop.report").joinpath("report.css").read_text("utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>\n{style}</style></head><body>"
        f'<header><h1 dir="auto">{escape(title)}</h1>{about}</header>'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav><main>{bodies}</main></body></html>\n'
    )


def slug(heading: str) -> str:
    """The id of a section."""
    return "-".join(heading.lower().split())


def paragraph(content: str) -> str:
    """A paragraph of plain text."""
    return f'<p dir="auto">{escape(content)}</p>'


def heading(content: str) -> str:
    """A heading within a section, as plain text."""
    return f'<h3 dir="auto">{escape(content)}</h3>'


def note(content: str) -> str:
    """A remark below a chart or a table, as plain text."""
    return f'<p class="note" dir="auto">{escape(content)}</p>'


def figure(heading: str, chart: str, names: Sequence[str] = (), caption: str = "") -> str:
    """A chart with its heading, the colors of several models, and what it shows."""
    keys = "".join(
        f'<li><i class="key s{number % 6}"></i><span dir="auto">{escape(name)}</span></li>'
        for number, name in enumerate(names)
    )
    legend = f'<ul class="legend">{keys}</ul>' if len(names) > 1 else ""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure><h3>{escape(heading)}</h3>{legend}{chart}{below}</figure>"


def columns(parts: Iterable[str]) -> str:
    """Parts side by side, as far as there is room."""
    return f'<div class="columns">{"".join(parts)}</div>'


def table(
    label: str, rows: Sequence[Sequence[str]], *, numbers: bool = True, ends_in_text: bool = False
) -> str:
    """A table of plain text, the first row as heading, which scrolls if it is wider than the page.

    With `ends_in_text`, the last column is not one of numbers.
    """
    inner = html_table(rows[1:], rows[0], numbers=numbers)
    kind = "scroll text-last" if ends_in_text else "scroll"
    return f'<div class="{kind}" role="region" tabindex="0" aria-label="{escape(label)}">{inner}</div>'


def folded(summary: str, body: str) -> str:
    """Content that is hidden until it is asked for."""
    return f"<details><summary>{escape(summary)}</summary>{body}</details>"


def tiles(facts: Sequence[tuple[str, str, str]]) -> str:
    """Short facts: a name, a value and a remark each."""
    items = "".join(
        f'<li><span>{escape(name)}</span><b dir="auto">{escape(value)}</b>'
        f"<small>{escape(remark)}</small></li>"
        for name, value, remark in facts
    )
    return f'<ul class="tiles">{items}</ul>'


def label_list(names: Iterable[tuple[object, str]]) -> str:
    """Names of labels with their class, each isolated from the direction of its neighbors."""
    inner = "".join(f'<li class="{kind}"><bdi>{escape(str(name))}</bdi></li>' for name, kind in names)
    return f'<ul class="labels">{inner}</ul>'
