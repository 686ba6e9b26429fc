"""The works certificate as a scanner delivers it: typed, stamped, a little askew and dusty, a picture without text.

Knows nothing about the manual around it. The noise has a fixed seed, so that the picture is the same each time.
"""

from typing import Any

import numpy as np
import pymupdf
from numpy.typing import NDArray

from bot.playground.sample.plant import DESIGN_BAR, PENSTOCK

DPI = 120
TILT_DEGREES = 0.7
NOISE_SEED = 1147
JPEG_QUALITY = 42
TEST_BAR = 1.5 * DESIGN_BAR
TYPED = (
    "MARLOW & TEAGUE STEELWORKS",
    "Boiler Quay 9, Port Ellery",
    "",
    "CERTIFICATE OF HYDROSTATIC PRESSURE TEST",
    "",
    "Certificate No.         1147/2011",
    "Customer                Arden Valley Power",
    "Object                  Penstock, Kestrel Falls, section 3",
    "Inside diameter         2500 mm",
    "Wall thickness          18 mm",
    "Material                Steel S355, heat no. 60318",
    f"Design pressure         {DESIGN_BAR:.1f} bar",
    f"Test pressure           {TEST_BAR:.2f} bar",
    "Holding time            60 minutes",
    "Medium                  Water, 14 degrees C",
    "Gauge                   No. 5521, class 0.6, 0-25 bar",
    f"Static pressure at site {PENSTOCK.static_bar:.2f} bar",
    "",
    "The section was filled, vented and raised to the test",
    "pressure in steps of 3 bar. During the holding time the",
    "pressure fell by 0.05 bar. No leak, no weeping and no",
    "lasting deformation were found.",
    "",
    "Result                  PASSED",
    "",
    "Date of test            28 June 2011",
    "Tested by               J. Harrow",
    "Witnessed by            H. Lindqvist, for the customer",
)


def scan() -> bytes:
    """The page as a grey JPEG of A4 size at 120 dots an inch."""
    sheet = pymupdf.open()
    page = sheet.new_page(width=595, height=842)
    _type(page)
    _stamp(page)
    return _picture(page)


def _type(page: Any) -> None:
    typewriter = pymupdf.Font("cour")
    writer = pymupdf.TextWriter(page.rect)
    for n, line in enumerate(TYPED):
        if line:
            writer.append((92, 120 + 21 * n), line, font=typewriter, fontsize=11)
    writer.write_text(page, color=(0.12, 0.12, 0.16))
    page.draw_rect(pymupdf.Rect(70, 84, 528, 724), color=(0.3, 0.3, 0.3), width=1.1)


def _stamp(page: Any) -> None:
    grey, centre = (0.45, 0.45, 0.5), pymupdf.Point(440, 640)
    for radius in (52, 46):
        page.draw_circle(centre, radius, color=grey, width=1.4)
    writer = pymupdf.TextWriter(page.rect)
    bold = pymupdf.Font("hebo")
    for n, word in enumerate(("QUALITY", "CONTROL", "M & T  07")):
        width = bold.text_length(word, 11)
        writer.append((centre.x - width / 2, centre.y - 12 + 15 * n), word, font=bold, fontsize=11)
    writer.write_text(page, color=grey, morph=(centre, pymupdf.Matrix(-14)))


def _picture(page: Any) -> bytes:
    zoom = pymupdf.Matrix(DPI / 72, DPI / 72).prerotate(TILT_DEGREES)
    pixels = page.get_pixmap(matrix=zoom, colorspace=pymupdf.csGRAY, alpha=False)
    grey = np.frombuffer(pixels.samples, dtype=np.uint8).reshape(pixels.height, pixels.stride)[:, : pixels.width]
    paper = _dusty(grey.astype(np.int16))
    clean = pymupdf.Pixmap(pymupdf.csGRAY, pixels.width, pixels.height, paper.tobytes(), False)
    return bytes(clean.tobytes("jpg", jpg_quality=JPEG_QUALITY))


def _dusty(grey: NDArray[np.int16]) -> NDArray[np.uint8]:
    """Yellowed paper, grain, and specks; RandomState because its stream is promised never to change."""
    chance = np.random.RandomState(NOISE_SEED)
    paper = grey * 0.82 + 24 + chance.randint(-7, 8, size=grey.shape)
    specks = chance.randint(0, 9000, size=grey.shape) == 0
    return np.clip(np.where(specks, 70, paper), 0, 255).astype(np.uint8)
