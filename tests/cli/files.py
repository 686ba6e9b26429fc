"""Small files made for these tests: what a folder of manuals may hold, good and bad."""

from pathlib import Path

import pymupdf

PAGES = (
    "Pump station handbook. This handbook describes the pump station at Alder Creek: two feed pumps, a sump and a "
    "switch room. It is written for the people of the early and the late shift. Whoever works here has read it "
    "and signs the list in the control room. Visitors wear a helmet and stay behind the yellow line. The station "
    "supplies the upper town and the fire brigade, so one pump is ready at any time. Changes are written into the "
    "revision list by the shift leader.",
    "Lubrication. The bearings of the feed pump are greased every 500 operating hours with 40 g of grease NLGI 2. "
    "Old grease is wiped off with a clean cloth before the nipple is filled. The coupling needs no lubrication. "
    "The gearbox of the screen is filled with 3.2 litres of oil ISO VG 220, which is renewed once a year in "
    "October. Used oil goes into the marked barrel in the yard, never into the sump. Every lubrication is entered "
    "in the card of the machine.",
    "Alarms. Alarm A-17 means that the suction pressure is below 0.8 bar. Stop the pump and clean the strainer. "
    "Alarm A-21 means that the sump is above its highest level: start the second pump by hand. Alarm B-04 is a "
    "fault of the telephone line; the station goes on working and the line is tested every morning. An alarm that "
    "comes back three times in one shift is reported to the engineer on call, whose number is on the door of the "
    "switch room.",
)
NOTES = """# Shift notes

## Spare keys

The spare key of the switch room hangs in the control room, on hook 12.

## Compressor

The compressor is drained every Monday before 8 o'clock.
"""


def pdf(path: Path, pages: tuple[str, ...] = PAGES, *, password: str = "") -> Path:
    """A PDF with one paragraph a page; printed labels i, 1, 2, ..."""
    document = pymupdf.open()
    for text in pages:
        page = document.new_page()
        page.insert_textbox(pymupdf.Rect(72, 72, 520, 700), text, fontsize=12)
    if len(pages) > 1:
        document.set_page_labels(
            [
                {"startpage": 0, "prefix": "", "style": "r", "firstpagenum": 1},
                {"startpage": 1, "prefix": "", "style": "D", "firstpagenum": 1},
            ]
        )
    if password:
        document.save(path, encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw=password, owner_pw=password)
    else:
        document.save(path)
    document.close()
    return path


def manuals(folder: Path) -> Path:
    """A folder with a PDF, Markdown in a folder below, and a file that nobody reads."""
    (folder / "shift").mkdir(parents=True)
    pdf(folder / "handbook.pdf")
    (folder / "shift" / "notes.md").write_text(NOTES, encoding="utf-8")
    (folder / "drawing.dwg").write_bytes(b"AC1032\x00\x00\x00\x00\x01\x02\x03" + bytes(range(256)))
    return folder


def bad_files(folder: Path) -> dict[str, Path]:
    """What people hand in by mistake, by what is wrong with it."""
    folder.mkdir(parents=True)
    good = pdf(folder / "whole.pdf").read_bytes()
    made = {
        "empty": b"",
        "damaged": b"%PDF-1.7\n" + b"\x00garbage" * 40,
        "unsupported": b"AC1032\x00\x00\x00\x00\x01\x02\x03" + bytes(range(256)),
        "oversized": good + b"\n%" + b"x" * 3_000_000,
    }
    names = {"empty": "empty.pdf", "damaged": "damaged.pdf", "unsupported": "drawing.dwg", "oversized": "oversized.pdf"}
    for what, content in made.items():
        (folder / names[what]).write_bytes(content)
    found = {what: folder / name for what, name in names.items()}
    found["password"] = pdf(folder / "locked.pdf", password="secret")
    (folder / "whole.pdf").unlink()
    return found | {"missing": folder / "not-there.pdf"}
