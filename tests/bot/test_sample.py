"""The sample manual keeps its promises: the same file each time, right physics, questions that stand on their pages."""

import functools
import json
import math
import re
from collections import Counter
from typing import Any

import pymupdf
import pytest

from bot.playground.sample import DEMO, MANUAL, QUESTIONS
from bot.playground.sample.make_manual import make
from bot.playground.sample.source import SourceError, read_blocks

FRONT_PAGES = 5
SCANNED_PAGE = 33


@functools.cache
def manual() -> Any:
    return pymupdf.open(stream=MANUAL.read_bytes(), filetype="pdf")


@functools.cache
def pages() -> list[str]:
    """The text of each page on one line; file page 1 is at 0."""
    return [" ".join(page.get_text().split()) for page in manual()]


def whole() -> str:
    return " ".join(pages())


@functools.cache
def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]


@functools.cache
def made() -> bytes:
    return make()


def number(pattern: str) -> float:
    """The number the manual prints where the pattern has its group; it must print it only in one way."""
    found = {match.replace(",", "") for match in re.findall(pattern, whole())}
    assert len(found) == 1, (pattern, found)
    return float(found.pop())


def row(start: str, *, cells: int) -> list[float]:
    """The numbers of a table row that begins with these words."""
    match = re.search(re.escape(start) + r" ((?:[\d.,]+ ){" + str(cells) + "})", whole())
    assert match, start
    return [float(cell.replace(",", "")) for cell in match[1].split()]


def test_the_script_makes_the_committed_manual():
    fresh = pymupdf.open(stream=made(), filetype="pdf")
    assert [page.get_text() for page in fresh] == [page.get_text() for page in manual()]
    assert fresh.get_toc() == manual().get_toc()
    if fresh.metadata["producer"] == manual().metadata["producer"]:
        assert made() == MANUAL.read_bytes()


def test_the_script_makes_the_same_bytes_twice():
    assert make() == made()


def test_the_manual_is_small_and_of_the_promised_length():
    assert 24 <= len(manual()) <= 36
    assert len(MANUAL.read_bytes()) < 1_000_000


def test_printed_page_numbers_are_the_labels_and_differ_from_the_file_pages():
    labels = [page.get_label() for page in manual()]
    assert labels == ["i", "ii", "iii", "iv", "v", *(str(n) for n in range(1, len(labels) - FRONT_PAGES + 1))]
    for n, page in enumerate(manual()):
        if n and n + 1 != SCANNED_PAGE:
            assert page.get_text().split()[-1] == labels[n]


def test_the_outline_leads_to_the_headings():
    outline = manual().get_toc()
    assert {level for level, _, _ in outline} == {1, 2}
    for _, title, page in outline:
        assert title in pages()[page - 1], title


def test_the_contents_name_each_heading_with_its_printed_page():
    contents = pages()[2] + " " + pages()[3]
    for _, title, page in manual().get_toc():
        assert f"{title} {page - FRONT_PAGES}" in contents, title


def test_links_of_the_contents_lead_where_the_outline_leads():
    targets = [link["page"] + 1 for n in (2, 3) for link in manual()[n].get_links()]
    assert targets == [page for _, _, page in manual().get_toc()]


def test_one_page_is_a_picture_without_text():
    silent = [n for n, text in enumerate(pages(), start=1) if not text]
    assert silent == [SCANNED_PAGE]
    picture = manual()[SCANNED_PAGE - 1].get_image_info()
    assert len(picture) == 1
    assert picture[0]["width"] > 900


@pytest.mark.parametrize("table", ["Table 8-2", "Table 11-1", "Table 12-1"])
def test_a_table_over_two_pages_repeats_its_header(table):
    first, second = (n for n, text in enumerate(pages()) if re.search(rf"{table}: ", text))
    assert second == first + 1
    header = re.search(rf"{table}: [^(]*? ((?:Quantity|Tag|Work) .*?(?:Value|Stop|Level)) ", pages()[first])
    assert header
    assert f"(continued) {header[1]}" in pages()[second]


def test_letters_come_out_whole():
    assert not re.search("[\ufb00-\ufb06\ufffd\u00ad]", whole())
    for mark in ("m³/s", "°C", "η", "ρ", "µm", "kΩ", "Σζ"):
        assert mark in whole()


def test_power_follows_from_flow_head_and_efficiency():
    flow, head = row("Rated flow m³/s", cells=2), row("Rated net head m", cells=2)
    efficiency, shaft = row("Turbine efficiency at rated point %", cells=2), row("Turbine output kW", cells=2)
    generator, terminal = row("Generator efficiency %", cells=2), row("Active power at terminals kW", cells=2)
    for n in (0, 1):
        assert 9.81 * flow[n] * head[n] * efficiency[n] / 100 == pytest.approx(shaft[n], rel=0.001)
        assert shaft[n] * generator[n] / 100 == pytest.approx(terminal[n], rel=0.001)
    assert (2 * terminal[0] + terminal[1]) / 1000 == pytest.approx(number(r"station delivers ([\d.]+) MW"), abs=0.05)


def test_each_point_of_part_load_obeys_the_same_formula():
    points = re.findall(r"(\d+) (\d\.\d\d) (\d\d\.\d) (\d,\d{3}) (\d,\d{3})", pages()[10])
    assert len(points) == 7
    for _, flow, efficiency, shaft, terminal in points:
        want = 9.81 * float(flow) * 93.20 * float(efficiency) / 100
        assert float(shaft.replace(",", "")) == pytest.approx(want, abs=1)
        assert float(terminal.replace(",", "")) == pytest.approx(want * 0.973, abs=1)


def test_rated_currents_agree_with_apparent_power_and_voltage():
    rating, current = row("Generator rating kVA", cells=2), row("Rated current A", cells=2)
    for kva, volt, ampere in (
        (rating[0], 6300, current[0]),
        (rating[1], 400, current[1]),
        (20_000, 66_000, number(r"rated currents are ([\d,]+) A on the high side")),
        (20_000, 6_300, number(r"and ([\d,]+) A on the low side")),
        (400, 400, number(r"T2 \(400 kVA, ([\d,]+) A")),
        (160, 400, number(r"160 kVA \(([\d,]+) A")),
    ):
        assert kva * 1000 / (math.sqrt(3) * volt) == pytest.approx(ampere, abs=0.5)
    for kva, factor, kw in zip(
        rating, row("Power factor –", cells=2), row("Active power at terminals kW", cells=2), strict=True
    ):
        assert kva * factor == pytest.approx(kw, rel=0.001)


def test_speeds_agree_with_poles_and_ratios():
    speed, poles = row("Rated speed rpm", cells=2), row("Number of poles –", cells=2)
    runaway, specific = row("Runaway speed rpm", cells=2), row("Specific speed ns (kW, m) rpm", cells=2)
    shaft, head = row("Turbine output kW", cells=2), row("Rated net head m", cells=2)
    for n in (0, 1):
        assert speed[n] == pytest.approx(120 * 50 / poles[n], abs=0.05)
        assert specific[n] == pytest.approx(speed[n] * math.sqrt(shaft[n]) / head[n] ** 1.25, abs=0.6)
    assert 1.7 < runaway[0] / speed[0] < 1.9
    assert 2.4 < runaway[1] / speed[1] < 2.8
    assert number(r"115 per cent \((\d+) rpm\)") == 1.15 * speed[0]
    assert number(r"150 per cent \((\d+) rpm\)") == 1.5 * speed[0]
    rejection = number(r"to (\d+) rpm, and is back")
    assert rejection == pytest.approx(1.42 * speed[0])
    assert rejection < 1.5 * speed[0]


def test_heads_losses_and_pressures_of_the_penstock_agree():
    velocity = 18.60 / (math.pi / 4 * 2.5**2)
    assert number(r"rated flow of 18.60 m³/s the velocity is ([\d.]+) m/s") == pytest.approx(velocity, abs=0.005)
    loss = (0.012 * 210 / 2.5 + 0.9) * velocity**2 / (2 * 9.81)
    assert number(r"to the inlet valve are ([\d.]+) m") == pytest.approx(loss, abs=0.005)
    gross = number(r"at full load, ([\d.]+) m\.")
    assert gross == pytest.approx(412.50 - 317.90)
    assert gross - loss == pytest.approx(93.20, abs=0.01)
    surge = 2 * 210 * velocity / (9.81 * 7.0)
    assert number(r"\(9\.81 · 7\.0\) = ([\d.]+) m") == pytest.approx(surge, abs=0.05)
    static = (412.50 - 316.40) * 9.81 / 100
    assert number(r"rises from ([\d.]+) bar") == pytest.approx(static, abs=0.005)
    assert number(r"bar to ([\d.]+) bar and") == pytest.approx(static + surge * 9.81 / 100, abs=0.05)
    assert static + surge * 9.81 / 100 < 12.5


def test_the_wall_of_the_penstock_carries_its_pressure():
    walls = re.findall(r"(\d) (\d+ to \d+) (\d\d) (\d\d) (\d+\.\d) (\d\d\.\d)", pages()[12])
    assert len(walls) == 3
    for _, _, nominal, least, pressure, stress in walls:
        assert int(nominal) - int(least) == 2
        assert float(stress) == pytest.approx(float(pressure) / 10 * 2500 / (2 * int(least)), abs=0.06)
        assert float(stress) < 170


def test_filling_and_dewatering_times_agree_with_the_volumes():
    volume = number(r"holds ([\d,]+) m³ of water")
    assert volume == pytest.approx(math.pi / 4 * 2.5**2 * 210, abs=1)
    assert number(r"about (\d+) minutes for the full volume") == pytest.approx(volume / 0.35 / 60, abs=0.5)
    assert number(r"empty in about (\d+) minutes") == pytest.approx(85 / 0.060 / 60, abs=0.5)


def test_cooling_water_carries_the_heat():
    consumers = ("Generator air coolers", "Thrust and upper guide bearing", "Lower guide bearing", "Oil pressure unit")
    rows = [row(name, cells=3) for name in consumers]
    total = row("Sum", cells=3)
    for flow, heat, rise in [*rows, total]:
        assert heat / (4.18 * flow) == pytest.approx(rise, abs=0.06)
    assert sum(flow for flow, _, _ in rows) == pytest.approx(total[0])
    assert sum(heat for _, heat, _ in rows) == total[1]
    assert total[1] < number(r"difference of (\d+) kW is heat")


def test_the_battery_bridges_its_time():
    cells = number(r"consists of (\d+) lead-acid cells")
    for name, volts in (("Float", 2.23), ("Boost", 2.40)):
        assert row(f"{name} voltage, {volts:.2f} V a cell" + (", at most 8 h" * (name == "Boost")) + " V", cells=1) == [
            pytest.approx(cells * volts, abs=0.05)
        ]
    loads = [row(f"{name} A", cells=1)[0] for name in ("Control and protection", "Emergency lighting", "Communication")]
    assert [sum(loads)] == row("Load without mains A", cells=1)
    assert row("Charge drawn in that time Ah", cells=1) == [sum(loads) * 8]
    assert sum(loads) * 8 < 300


def test_the_starting_sequence_adds_up():
    conditions = r"10 L/s|90 bar|0\.8 bar|switch OPEN|150 rpm|1 % for 5 s|95 %|Breaker closed"
    longest = re.findall(rf"(?:{conditions}) (\d+)", pages()[20])
    assert len(longest) == 8
    assert sum(int(seconds) for seconds in longest) == 4 * 60 + 30


def test_alarms_stand_before_trips():
    units = r"°C|L/s|bar|mm?|m³/s|µm p-p|mm/s|A"
    rows = re.findall(rf"(, falling)? (?:{units}) ([\d.]+) ([\d.]+) (?:quick|normal|station|emergency)", whole())
    assert len(rows) > 25
    for falling, alarm, trip in rows:
        assert (float(trip) < float(alarm)) == bool(falling), (alarm, trip)


def test_thirty_questions_in_two_balanced_halves():
    counts = Counter((row["split"], row["type"]) for row in questions())
    assert sum(counts.values()) == 30
    assert len({row["id"] for row in questions()}) == 30
    assert len({row["question"] for row in questions()}) == 30
    for split, followups, lookups in (("dev", 3, 5), ("held-out", 2, 6)):
        assert counts[split, "unanswerable"] == 4
        assert counts[split, "followup"] == followups
        assert counts[split, "table"] == 3
        assert counts[split, "lookup"] == lookups


@pytest.mark.parametrize("question", [q for q in questions() if q["type"] != "unanswerable"], ids=lambda q: q["id"])
def test_evidence_stands_on_its_page_only(question):
    assert question["doc"] == MANUAL.name
    found = [n for n, text in enumerate(pages(), start=1) if question["evidence"] in text]
    assert found == question["pages"]
    assert any(words in question["evidence"] for words in question["accept"]) or question["type"] == "lookup"
    assert any(words.lower() in pages()[found[0] - 1].lower() for words in question["accept"])
    assert bool(question.get("history")) == (question["type"] == "followup") == bool(question.get("standalone"))


@pytest.mark.parametrize("question", [q for q in questions() if q["type"] == "unanswerable"], ids=lambda q: q["id"])
def test_what_is_not_answerable_is_not_in_the_manual(question):
    assert question["pages"] == []
    assert question["subtype"] in {"absent-fact", "false-premise", "out-of-scope"}
    assert question["why"]
    for pattern in question["absent"]:
        assert not re.search(pattern, whole(), re.IGNORECASE), pattern


@pytest.mark.parametrize("question", [q for q in questions() if q.get("history")], ids=lambda q: q["id"])
def test_the_first_answer_of_a_follow_up_cites_a_page_that_says_it(question):
    answer = question["history"][1]["content"]
    page = int(answer.rpartition("p. ")[2].strip(").\n"))
    said = re.findall(r"\d+(?:\.\d+)?", answer.split(" (")[0])
    assert said
    assert all(number in pages()[page - 1] for number in said)


def test_the_demo_asks_four_other_questions_and_expects_what_the_manual_says():
    demo = json.loads(DEMO.read_text(encoding="utf-8"))
    assert demo["document"] == MANUAL.name
    assert [step["kind"] for step in demo["steps"]] == ["lookup", "followup", "table", "unanswerable"]
    asked = {question["question"].lower() for question in questions()}
    for step in demo["steps"]:
        assert step["question"].lower() not in asked
        for page in step["pages"]:
            assert all(word in pages()[page - 1] for word in step["words"])
    assert demo["steps"][3]["pages"] == []
    assert "licen" not in whole().lower()


def test_the_source_refuses_what_it_does_not_know():
    with pytest.raises(SourceError, match="unknown fact"):
        read_blocks("# One\n\n{{nothing}}", facts={})
    with pytest.raises(SourceError, match="unknown label"):
        read_blocks("# One\n\nsee [@nowhere]", facts={})
    with pytest.raises(SourceError, match="cells"):
        read_blocks("# One\n\nTable: T\n|50l|50l|\n| a | b |\n| 1 |", facts={})
