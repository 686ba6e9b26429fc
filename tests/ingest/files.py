"""Small real files, made for these tests: what is in them is known to the letter."""

from collections.abc import Sequence
from pathlib import Path

import pymupdf

WIDTH, HEIGHT = 595, 842
BODY = 11


def words_of(topic: str, sentences: int = 8) -> str:
    """Prose whose words differ from topic to topic, so that texts about two topics have nothing in common."""
    return " ".join(
        f"The {topic} {name} is checked by the {topic} team every {number} {topic} days."
        for number, name in zip(
            range(3, 3 + sentences),
            ("valve", "pump", "bearing", "filter", "gauge", "hose", "motor", "brake", "seal", "lamp", "fan", "door"),
            strict=False,
        )
    )


class Manual:
    """A PDF in the making, with a running header and footer on each page."""

    def __init__(self, *, header: str = "", footer: str = "") -> None:
        self.document = pymupdf.open()
        self._header = header
        self._footer = footer

    def page(self, *paragraphs: str, heading: str = "") -> pymupdf.Page:
        """A page of paragraphs, under a large heading if one is given."""
        page = self.document.new_page(width=WIDTH, height=HEIGHT)
        if self._header:
            page.insert_text((72, 40), self._header, fontsize=9)
        if self._footer:
            page.insert_text((72, HEIGHT - 30), f"{self._footer} {len(self.document)}", fontsize=9)
        top = 80.0
        if heading:
            page.insert_text((72, top + 16), heading, fontsize=18, fontname="hebo")
            top += 40
        for paragraph in paragraphs:
            box = pymupdf.Rect(72, top, WIDTH - 72, HEIGHT - 60)
            left = page.insert_textbox(box, paragraph, fontsize=BODY)
            assert left >= 0, "the paragraph does not fit"
            top += box.height - left + 14
        return page

    def table(self, rows: Sequence[Sequence[str]], *, page: pymupdf.Page, top: float = 130) -> None:
        """A ruled table."""
        width = (WIDTH - 144) / len(rows[0])
        for line, row in enumerate(rows):
            for column, cell in enumerate(row):
                box = pymupdf.Rect(
                    72 + column * width, top + line * 22, 72 + (column + 1) * width, top + (line + 1) * 22
                )
                page.draw_rect(box, width=0.7)
                page.insert_text((box.x0 + 4, box.y0 + 15), cell, fontsize=10, fontname="hebo" if line == 0 else "helv")

    def scan(self, text: str) -> None:
        """A page that is only a picture of text."""
        drawn = pymupdf.open()
        drawn.new_page(width=WIDTH, height=HEIGHT).insert_text((72, 100), text, fontsize=14)
        pixels = drawn[0].get_pixmap(dpi=72)
        self.document.new_page(width=WIDTH, height=HEIGHT).insert_image((0, 0, WIDTH, HEIGHT), pixmap=pixels)

    def save(self, path: Path, **options: object) -> Path:
        self.document.save(path, deflate=True, **options)
        self.document.close()
        return path


def manual(path: Path, *, topic: str = "station", pages: int = 3) -> Path:
    """A plain manual about one topic."""
    made = Manual(header=f"{topic.title()} handbook", footer="Page")
    for number in range(1, pages + 1):
        made.page(words_of(f"{topic}{number}"), heading=f"{number} Chapter on {topic}{number}")
    return made.save(path)


def notes(path: Path, *, topic: str = "station") -> Path:
    """The same as Markdown, which is read much faster than a PDF."""
    chapters = (f"# {n} Chapter on {topic}{n}\n\n{words_of(f'{topic}{n}')}\n" for n in range(1, 4))
    path.write_text("\n".join(chapters))
    return path


def locked(path: Path) -> Path:
    made = Manual()
    made.page("Nobody reads this.")
    return made.save(path, encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw="secret", owner_pw="secret")


def damaged(path: Path) -> Path:
    path.write_bytes(b"%PDF-1.7\n" + b"\x00garbage" * 40)
    return path
