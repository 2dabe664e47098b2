"""What is measured: lines of figures, their statistics, and the table that shows them."""

from __future__ import annotations

import dataclasses
import math
import typing as t

MEMORY = "MB"
TIME = "ms"


@dataclasses.dataclass
class Stats:
    """Measurements of one thing: their median, and how far they spread."""

    median: float
    p10: float
    p90: float
    rounds: int

    @classmethod
    def of(cls, figures: t.Iterable[float]) -> Stats:
        ordered = sorted(figures)
        at = [ordered[min(len(ordered) - 1, int(q * len(ordered)))] for q in (0.5, 0.1, 0.9)]
        return cls(at[0], at[1], at[2], len(ordered))


@dataclasses.dataclass
class Line:
    """One line of the table; bench/lines writes the same as JSON.

    A target (at_most) is of the ratio where there is a floor, of the median where there is none.
    """

    part: str
    name: str
    unit: str
    ours: Stats
    beside: str = ""
    floor: Stats | None = None
    at_most: float = 0
    peers: dict[str, Stats] = dataclasses.field(default_factory=dict)

    @classmethod
    def read(cls, text: dict[str, t.Any]) -> Line:
        floor = text.pop("floor", None)
        peers = {name: Stats(**stats) for name, stats in text.pop("peers", {}).items()}
        return cls(ours=Stats(**text.pop("ours")), floor=floor and Stats(**floor), peers=peers, **text)

    @property
    def ratio(self) -> float | None:
        return self.ours.median / self.floor.median if self.floor and self.floor.median else None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if not self.at_most:
            return None
        return (self.ours.median if self.floor is None else self.ratio or math.inf) <= self.at_most

    def json(self) -> dict[str, t.Any]:
        out = {name: value for name, value in dataclasses.asdict(self).items() if value or name in {"ours", "name"}}
        return out | {"ratio": self.ratio, "met": self.met}


def number(figure: float) -> str:
    if figure >= 1000:
        return f"{figure:,.0f}"
    return f"{figure:.1f}" if figure >= 100 or figure == int(figure) else f"{figure:.2f}"


def shown(stats: Stats) -> str:
    if stats.rounds == 1:
        return number(stats.median)
    return f"{number(stats.median)} ({number(stats.p10)}-{number(stats.p90)})"


def table(lines: t.Iterable[Line]) -> str:
    """Give the lines as a table in Markdown, whose columns are also straight as text."""
    rows = [["", "ours: median (p10-p90)", "beside it", "ratio", "target", ""]]
    part = ""
    for line in lines:
        if line.part != part:
            part = line.part
            rows.append([f"**{part}**", "", "", "", "", ""])
        beside = [f"{line.beside} {shown(line.floor)}"] if line.floor else []
        beside += [f"{name} {shown(stats)}" for name, stats in line.peers.items()]
        target = f"≤ {number(line.at_most)} {'x' if line.floor else line.unit}" if line.at_most else ""
        rows.append(
            [
                line.name,
                f"{shown(line.ours)} {line.unit}",
                "; ".join(beside),
                f"{line.ratio:.2f} x" if line.ratio else "",
                target,
                {None: "", True: "met", False: "MISSED"}[line.met],
            ]
        )
    rows.insert(1, ["---"] * len(rows[0]))
    # Only the first columns are filled up: the third may be long.
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    return "\n".join(
        "| " + " | ".join([f"{row[i]:<{w}}" for i, w in enumerate(widths)] + row[2:]) + " |" for row in rows
    )
