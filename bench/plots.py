"""The benchmark's plots: grouped bars, written as SVG by hand."""

from __future__ import annotations

import dataclasses
import re
import typing as t
from xml.sax.saxutils import escape

from figures import number

if t.TYPE_CHECKING:
    import pathlib

    from figures import Line, Stats

WIDTH, ROW, LEFT, BAR = 720, 15, 190, 430
COLOURS = ("#faa41a", "#8a8f98", "#3b6ea5", "#7a5195")


@dataclasses.dataclass
class Plot:
    """Groups of bars; each bar is a series' figure, with its spread as a thin line."""

    title: str
    unit: str
    series: list[str]
    groups: dict[str, dict[str, Stats]] = dataclasses.field(default_factory=dict)

    def svg(self) -> str:
        top = 54
        longest = max((max(s.median, s.p90) for bars in self.groups.values() for s in bars.values()), default=1) or 1
        out, y = [], top
        for group, bars in self.groups.items():
            out.append(text(LEFT - 8, y + ROW * len(bars) / 2 + 4, group, "end"))
            for name in self.series:
                if (stats := bars.get(name)) is None:
                    continue
                width = BAR * stats.median / longest
                colour = COLOURS[self.series.index(name)]
                out.append(
                    f'<rect x="{LEFT}" y="{y + 1}" width="{max(width, 1):.1f}" height="{ROW - 3}" fill="{colour}"/>'
                )
                far = stats.median
                if stats.rounds > 1:
                    ends = [LEFT + BAR * at / longest for at in (stats.p10, stats.p90)]
                    out.append(f'<path d="M{ends[0]:.1f} {y + 7}H{ends[1]:.1f}" stroke="#222" stroke-width="1"/>')
                    far = max(far, stats.p90)
                out.append(text(LEFT + BAR * far / longest + 6, y + 11, number(stats.median)))
                y += ROW
            y += 10
        legend, x = [], LEFT
        for name, colour in zip(self.series, COLOURS, strict=False):
            legend.append(f'<rect x="{x}" y="32" width="10" height="10" fill="{colour}"/>' + text(x + 14, 41, name))
            x += 30 + 7 * len(name)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}"'
            ' font-family="sans-serif" font-size="11">'
            '<rect width="100%" height="100%" fill="#fff"/>'
            f'<text x="8" y="20" font-size="14">{escape(self.title)}, {self.unit}</text>'
            + "".join(legend + out)
            + "</svg>\n"
        )


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(words)}</text>'


def draw(lines: list[Line], folder: pathlib.Path) -> None:
    """Draw what the lines have; a plot without figures is left as it is."""
    update = Plot("One update of 1 kB", "ms", ["ours", "bare INSERT"])
    runs = Plot("meltano run by number of STATE messages", "s", ["ours", "systemdb", "files", "peer"])
    writers = Plot(
        "Updates by writers at once, ids of their own", "writes/s", ["ours", "bare INSERT", "ours, async_insert"]
    )
    growth = Plot("One update after earlier ones of the same id", "ms", ["ours", "bare INSERT"])
    many = Plot("Many states, whole processes", "ms", ["chstate", "curl"])
    for line in lines:
        beside = {line.beside: line.floor} if line.floor else {}
        both = {"ours": line.ours, **beside, **line.peers}
        name = line.name
        if line.part.startswith("1 "):
            update.groups[name.replace(", 1 kB", "").replace(", within a run", "")] = both
        elif line.part.startswith("2 "):
            runs.groups[f"{name.split()[3]} messages"] = both
        elif found := re.fullmatch(r"Go: (\d+) on ids of their own(, async_insert)?: throughput", name):
            bars = writers.groups.setdefault(f"{found[1]} writers", {})
            bars.update({"ours, async_insert": line.ours} if found[2] else both)
        elif found := re.fullmatch(r"Go: update after (\d+) updates", name):
            growth.groups[f"{int(found[1]):,} updates before"] = both
        elif found := re.fullmatch(r"chstate (list|export|import), 100,000 ids", name):
            many.groups[f"{found[1]}, 100,000 ids"] = {"chstate": line.ours, **beside, **line.peers}
    folder.mkdir(exist_ok=True)
    for file, plot in (("update", update), ("runs", runs), ("writers", writers), ("growth", growth), ("many", many)):
        if plot.groups:
            (folder / f"{file}.svg").write_text(plot.svg())
