"""Rows of cells as aligned text for terminals and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LEFT, RIGHT = "text-align:left", "text-align:right"


def text_table(rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    """Align rows of cells, the first of which is the heading.

    Cells of the first column are aligned to the left, those of the others to the right if they are
    `numbers`.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in [rows[0], ["-" * width for width in widths], *rows[1:]]:
        cells = [
            cell.rjust(width) if column and numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def html_table(
    rows: Iterable[Sequence[str]], heading: Sequence[str] = (), *, numbers: bool = True
) -> str:
    """Write an HTML table of plain text.

    Cells of the first column are aligned to the left, those of the others to the right if they are
    `numbers`.
    """
    styles = (LEFT, RIGHT if numbers else LEFT)
    top = f"<thead>{html_row(heading, 'th', styles)}</thead>" if heading else ""
    body = "".join(html_row(row, "td", styles) for row in rows)
    return f"<table>{top}<tbody>{body}</tbody></table>"


def html_row(cells: Sequence[str], tag: str, styles: tuple[str, str]) -> str:
    """Write a row of an HTML table, with a style for its first cell and one for the others."""
    listed = "".join(
        f'<{tag} dir="auto" style="{styles[min(number, 1)]}">{escape(cell)}</{tag}>'
        for number, cell in enumerate(cells)
    )
    return f"<tr>{listed}</tr>"


def beginning(text: str, characters: int = 240) -> str:
    """Return the first characters of a text, on one line."""
    return " ".join(text[: 2 * characters].split())[:characters]


def readable_bytes(count: int) -> str:
    """A number of bytes with its decimal unit: ``1.2 MB``."""
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
