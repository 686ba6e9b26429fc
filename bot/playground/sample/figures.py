"""Draws the manual's cover and its two figures from lines, boxes and words.

Knows nothing about page breaks: a figure gets the canvas and its top, and returns its bottom.
"""

from itertools import pairwise

from bot.playground.sample.canvas import BLUE, GREY, INK, PALE, WHITE, Canvas, Type
from bot.playground.sample.typeset import LEFT, PAGE, RIGHT

LABEL = Type(size=8)
LABEL_BOLD = Type(size=8, face="bold", colour=BLUE)


def cover(canvas: Canvas, top: float) -> float:
    canvas.fill((0, top, PAGE[0], 300), colour=BLUE)
    canvas.write((LEFT, 150), "Kestrel Falls", type_=Type(size=34, face="bold", colour=WHITE))
    canvas.write((LEFT, 186), "Hydroelectric Station", type_=Type(size=24, colour=WHITE))
    canvas.write((LEFT, 262), "Operation and Maintenance Manual", type_=Type(size=16, face="bold", colour=WHITE))
    for n in range(7):
        canvas.rule((0, 318 + 6 * n), (PAGE[0] - 62 * n, 318 + 6 * n), width=2.4 - 0.3 * n, colour=BLUE)
    facts = (
        "Units 1 and 2: vertical Francis turbines with 8.5 MVA generators",
        "Unit 3: residual-flow Kaplan turbine with 460 kVA generator",
        "Water passages, auxiliary systems, electrical system up to 66 kV",
    )
    for n, fact in enumerate(facts):
        canvas.write((LEFT, 430 + 20 * n), fact, type_=Type(size=11))
    control = ("Document KF-OMM-001", "Revision 4, 18 March 2024", "Arden Valley Power, plant engineering")
    for n, line in enumerate(control):
        canvas.write((LEFT, 690 + 16 * n), line, type_=Type(size=10, face="regular" if n else "bold"))
    canvas.rule((LEFT, 668), (RIGHT, 668), width=1.2, colour=BLUE)
    return PAGE[1]


def waterway(canvas: Canvas, top: float) -> float:
    """Forebay, rack, gate, penstock on its saddles, valve, unit, draft tube, from left to right."""
    water, crown, floor = top + 30, top + 60, top + 86
    canvas.fill((LEFT, water, 160, floor), colour=PALE)
    canvas.rule((LEFT, water), (160, water), width=1.0, colour=BLUE)
    canvas.rule((LEFT, floor), (160, floor), width=1.2, colour=INK)
    canvas.rule((124, floor), (138, water - 8), width=1.6, colour=INK)
    canvas.rule((160, water - 10), (160, crown), width=3.0, colour=INK)
    path = [(160.0, crown), (232.0, crown + 8), (372.0, top + 172), (428.0, top + 172)]
    for start, end in pairwise(path):
        canvas.rule(start, end, width=1.4, colour=BLUE)
        canvas.rule((start[0], start[1] + 22), (end[0], end[1] + 22), width=1.4, colour=BLUE)
    for n in range(4):
        x, y = 252 + 30 * n, crown + 45 + 22.3 * n
        canvas.rule((x, y), (x, y + 14), width=3, colour=GREY)
    _powerhouse(canvas, top)
    _waterway_labels(canvas, top)
    return top + 232


def _powerhouse(canvas: Canvas, top: float) -> None:
    canvas.circle((440, top + 183), radius=11)
    canvas.rule((432, top + 191), (448, top + 175), width=1.2, colour=BLUE)
    canvas.frame((452, top + 168, 486, top + 198))
    canvas.frame((458, top + 126, 480, top + 158))
    canvas.rule((469, top + 158), (469, top + 168), width=2, colour=INK)
    canvas.fill((488, top + 206, RIGHT, top + 226), colour=PALE)
    canvas.rule((488, top + 206), (RIGHT, top + 206), width=1.0, colour=BLUE)
    canvas.rule((462, top + 198), (466, top + 226), width=1.2, colour=INK)
    canvas.rule((466, top + 226), (RIGHT, top + 226), width=1.2, colour=INK)
    canvas.rule((476, top + 198), (488, top + 212), width=1.2, colour=INK)


def _waterway_labels(canvas: Canvas, top: float) -> None:
    canvas.write((LEFT, top + 22), "Forebay 412.50 m", type_=LABEL_BOLD)
    canvas.write((112, top + 100), "Trash rack", type_=LABEL)
    canvas.write((166, top + 30), "Intake gate and air vent", type_=LABEL)
    canvas.write((300, top + 88), "Penstock, 210 m, inside diameter 2,500 mm", type_=LABEL)
    canvas.write((392, top + 214), "Inlet valve", type_=LABEL)
    canvas.write((486, top + 146), "Generator", type_=LABEL)
    canvas.write((490, top + 184), "Turbine", type_=LABEL)
    canvas.write((RIGHT, top + 201), "Tailwater", type_=LABEL_BOLD, align="r")


def single_line(canvas: Canvas, top: float) -> float:
    """The 66 kV line at the top, T1, the 6.3 kV bus, and the feeders below it."""
    bus = top + 122
    canvas.rule((300, top + 8), (300, top + 34), width=1.2, colour=INK)
    canvas.write((308, top + 14), "66 kV line", type_=LABEL)
    _breaker(canvas, (300, top + 40))
    _transformer(canvas, (300, top + 70), text="T1  20 MVA  66/6.3 kV  YNd11")
    canvas.rule((300, top + 46), (300, top + 56), width=1.2, colour=INK)
    canvas.rule((300, top + 90), (300, bus), width=1.2, colour=INK)
    _breaker(canvas, (300, top + 106))
    canvas.rule((LEFT + 20, bus), (RIGHT - 20, bus), width=2.6, colour=INK)
    canvas.write((LEFT + 20, bus - 6), "Bus 6.3 kV", type_=LABEL_BOLD)
    _generator(canvas, (130, bus), text="G1  8.5 MVA")
    _generator(canvas, (240, bus), text="G2  8.5 MVA")
    _feeder(canvas, (350, bus), text="T2  400 kVA", below="Station service 0.4 kV")
    _feeder(canvas, (470, bus), text="T3  500 kVA", below="Unit 3  460 kVA, 0.4 kV")
    return bus + 122


def _breaker(canvas: Canvas, at: tuple[float, float]) -> None:
    canvas.fill((at[0] - 6, at[1] - 6, at[0] + 6, at[1] + 6), colour=WHITE)
    canvas.frame((at[0] - 6, at[1] - 6, at[0] + 6, at[1] + 6), colour=INK)


def _transformer(canvas: Canvas, at: tuple[float, float], *, text: str) -> None:
    canvas.circle((at[0], at[1] - 4), radius=10)
    canvas.circle((at[0], at[1] + 10), radius=10)
    canvas.write((at[0] + 20, at[1] + 6), text, type_=LABEL)


def _generator(canvas: Canvas, at: tuple[float, float], *, text: str) -> None:
    x, bus = at
    canvas.rule((x, bus), (x, bus + 60), width=1.2, colour=INK)
    _breaker(canvas, (x, bus + 26))
    canvas.circle((x, bus + 76), radius=16)
    canvas.write((x, bus + 80), "G", type_=LABEL_BOLD, align="c")
    canvas.write((x, bus + 108), text, type_=LABEL, align="c")


def _feeder(canvas: Canvas, at: tuple[float, float], *, text: str, below: str) -> None:
    x, bus = at
    canvas.rule((x, bus), (x, bus + 44), width=1.2, colour=INK)
    _breaker(canvas, (x, bus + 22))
    _transformer(canvas, (x, bus + 58), text=text)
    canvas.rule((x, bus + 78), (x, bus + 96), width=1.2, colour=INK)
    canvas.write((x, bus + 108), below, type_=LABEL, align="c")
