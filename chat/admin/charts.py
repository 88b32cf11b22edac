"""Charts as SVG, drawn here: no script, and colours that follow the admin's light or dark theme (css/admin.css)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import pygal
from django.utils.safestring import SafeString
from pygal.style import Style

# The library's import hook for maps, which are not drawn here: Python warns of its kind at every import that fails.
sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, pygal.PluginImportFixer)]

WIDTH, HEIGHT = 900, 280
MAX_LABELS = 8
SERIES_COLOURS = ("var(--chart-replies)", "var(--chart-stops)")
STYLE = Style(
    background="transparent",
    plot_background="transparent",
    value_background="transparent",
    foreground="var(--body-fg)",
    foreground_strong="var(--body-fg)",
    foreground_subtle="var(--body-quiet-color)",
    guide_stroke_color="var(--hairline-color)",
    major_guide_stroke_color="var(--hairline-color)",
    colors=SERIES_COLOURS,
    value_colors=("var(--body-fg)",) * len(SERIES_COLOURS),
    font_family="inherit",
    label_font_size=12,
    major_label_font_size=12,
    legend_font_size=13,
    value_font_size=12,
    no_data_font_size=18,
    opacity="1",
    transition="0s",
)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, and the same figures as a table for whoever can't see it."""

    title: str
    svg: SafeString
    head: Sequence[str]
    rows: Sequence[Sequence[object]]


def stacked_bars(title: str, labels: Sequence[str], series: dict[str, Sequence[int]], *, first: str) -> Chart:
    """Bars over time; `first` names the column of the labels."""
    chart = pygal.StackedBar(**_options(), legend_at_bottom=True, legend_at_bottom_columns=len(series))
    chart.x_labels = labels
    step = -(-len(labels) // MAX_LABELS)
    chart.x_labels_major = labels[::step]
    chart.show_minor_x_labels = False
    for name, values in series.items():
        chart.add(name, values)
    rows = list(zip(labels, *series.values(), strict=True))
    return Chart(title, _svg(chart, title), [first, *series], rows)


def bars(title: str, values: Sequence[tuple[str, float]], *, head: Sequence[str]) -> Chart:
    """One bar for each value, with the value at it."""
    chart = pygal.HorizontalBar(**_options(height=80 + 32 * len(values)), show_legend=False, print_values=True)
    # A horizontal chart is drawn from below.
    chart.x_labels = [label for label, _ in reversed(values)]
    chart.add(head[1], [value for _, value in reversed(values)])
    return Chart(title, _svg(chart, title), head, values)


def _options(height: int = HEIGHT) -> dict[str, Any]:
    return {
        "style": STYLE,
        "js": [],
        "width": WIDTH,
        "height": height,
        "disable_xml_declaration": True,
        "include_x_axis": True,
        "min_scale": 1,
        "truncate_label": 40,
        "no_data_text": "Nothing yet",
        "margin": 10,
    }


def _svg(chart: Any, title: str) -> SafeString:
    chart.add_xml_filter(_without_scripts)
    chart.add_xml_filter(lambda root: _named(root, title))
    # Safe: made of numbers and of labels that the library writes as XML text.
    return SafeString(chart.render(is_unicode=True))


def _without_scripts(root: Element) -> Element:
    for parent in list(root.iter()):
        for child in list(parent):
            if isinstance(child.tag, str) and child.tag.endswith("script"):
                parent.remove(child)
    return root


def _named(root: Element, title: str) -> Element:
    root.set("role", "img")
    root.set("aria-label", title)
    return root
