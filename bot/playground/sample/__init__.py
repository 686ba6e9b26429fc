"""The sample manual of an invented hydropower station, its questions and the demo's four, as files of the package.

Reading them needs no PDF library; make_manual.py, which makes the manual, does.
"""

from importlib.resources import files
from typing import Final

FOLDER: Final = files(__name__)
MANUAL: Final = FOLDER / "kestrel-falls-manual.pdf"
QUESTIONS: Final = FOLDER / "questions.jsonl"
DEMO: Final = FOLDER / "demo.json"
