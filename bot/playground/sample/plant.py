"""The invented station in numbers: what was chosen, and what follows from it by physics.

Knows nothing about the manual's wording or layout. Units stand in the names; water is 1000 kg/m3, g is 9.81 m/s2.
"""

import math
from dataclasses import dataclass

WATER_KG_M3 = 1000.0
GRAVITY_M_S2 = 9.81


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One turbine with its generator at the rated point."""

    flow_m3_s: float
    net_head_m: float
    turbine_efficiency: float
    generator_efficiency: float
    pole_pairs: int
    runaway_ratio: float
    rating_kva: float
    power_factor: float
    voltage_v: float

    @property
    def shaft_kw(self) -> float:
        return shaft_kw(self.flow_m3_s, head_m=self.net_head_m, efficiency=self.turbine_efficiency)

    @property
    def terminal_kw(self) -> float:
        return self.shaft_kw * self.generator_efficiency

    @property
    def speed_rpm(self) -> float:
        return 60 * 50 / self.pole_pairs

    @property
    def runaway_rpm(self) -> float:
        return self.speed_rpm * self.runaway_ratio

    @property
    def current_a(self) -> float:
        return line_current_a(self.rating_kva, voltage_v=self.voltage_v)

    @property
    def specific_speed(self) -> float:
        return self.speed_rpm * math.sqrt(self.shaft_kw) / math.pow(self.net_head_m, 1.25)


@dataclass(frozen=True, kw_only=True)
class Penstock:
    """The steel pipe that feeds both Francis units, with the closing time that sets its pressure rise."""

    length_m: float
    diameter_m: float
    flow_m3_s: float
    friction_factor: float
    local_coefficient: float
    headwater_m: float
    tailwater_m: float
    centreline_m: float
    closing_s: float

    @property
    def velocity_m_s(self) -> float:
        return self.flow_m3_s / (math.pi / 4 * self.diameter_m**2)

    @property
    def volume_m3(self) -> float:
        return math.pi / 4 * self.diameter_m**2 * self.length_m

    @property
    def gross_head_m(self) -> float:
        return self.headwater_m - self.tailwater_m

    @property
    def loss_m(self) -> float:
        velocity_head_m = self.velocity_m_s**2 / (2 * GRAVITY_M_S2)
        return (self.friction_factor * self.length_m / self.diameter_m + self.local_coefficient) * velocity_head_m

    @property
    def static_bar(self) -> float:
        return bar(self.headwater_m - self.centreline_m)

    @property
    def surge_m(self) -> float:
        return 2 * self.length_m * self.velocity_m_s / (GRAVITY_M_S2 * self.closing_s)

    @property
    def peak_bar(self) -> float:
        return self.static_bar + bar(self.surge_m)


def shaft_kw(flow_m3_s: float, *, head_m: float, efficiency: float) -> float:
    return WATER_KG_M3 * GRAVITY_M_S2 * flow_m3_s * head_m * efficiency / 1000


def line_current_a(rating_kva: float, *, voltage_v: float) -> float:
    return rating_kva * 1000 / (math.sqrt(3) * voltage_v)


def bar(head_m: float) -> float:
    return WATER_KG_M3 * GRAVITY_M_S2 * head_m / 1e5


def hoop_mpa(pressure_bar: float, *, diameter_mm: float, wall_mm: float) -> float:
    return pressure_bar / 10 * diameter_mm / (2 * wall_mm)


FRANCIS = Unit(
    flow_m3_s=9.30,
    net_head_m=93.20,
    turbine_efficiency=0.925,
    generator_efficiency=0.973,
    pole_pairs=6,
    runaway_ratio=1.76,
    rating_kva=8500,
    power_factor=0.90,
    voltage_v=6300,
)
KAPLAN = Unit(
    flow_m3_s=6.00,
    net_head_m=8.40,
    turbine_efficiency=0.890,
    generator_efficiency=0.941,
    pole_pairs=9,
    runaway_ratio=2.61,
    rating_kva=460,
    power_factor=0.90,
    voltage_v=400,
)
PENSTOCK = Penstock(
    length_m=210,
    diameter_m=2.50,
    flow_m3_s=2 * FRANCIS.flow_m3_s,
    friction_factor=0.012,
    local_coefficient=0.90,
    headwater_m=412.50,
    tailwater_m=317.90,
    centreline_m=316.40,
    closing_s=7.0,
)
INERTIA_KG_M2 = 24_500
INLET_VALVE_MM = 1400
FILLING_M3_S = 0.35
DESIGN_BAR = 12.5
# Wall sections from the forebay down: nominal thickness, design pressure.
WALLS = ((12, 5.0), (14, 9.0), (18, DESIGN_BAR))
CORROSION_MM = 2
# Wicket gate opening in percent, flow, turbine efficiency, all at the rated net head.
PERFORMANCE = (
    (38, 3.70, 0.802),
    (48, 4.70, 0.856),
    (57, 5.60, 0.890),
    (66, 6.50, 0.914),
    (76, 7.40, 0.928),
    (87, 8.40, 0.931),
    (100, 9.30, 0.925),
)
BATTERY_CELLS = 54


def facts() -> dict[str, str]:
    """Every derived number the manual prints, written as it prints it."""
    return {**_unit_facts(), **_penstock_facts(), **_electrical_facts()}


def _unit_facts() -> dict[str, str]:
    both_kw = 2 * FRANCIS.terminal_kw
    start_s = INERTIA_KG_M2 * (2 * math.pi * FRANCIS.speed_rpm / 60) ** 2 / (FRANCIS.shaft_kw * 1000)
    return {
        "francis_kw": f"{FRANCIS.shaft_kw:,.0f}",
        "francis_mw": f"{FRANCIS.shaft_kw / 1000:.2f}",
        "francis_terminal_mw": f"{FRANCIS.terminal_kw / 1000:.2f}",
        "francis_losses_kw": f"{FRANCIS.shaft_kw - FRANCIS.terminal_kw:.0f}",
        "francis_rpm": f"{FRANCIS.speed_rpm:.0f}",
        "francis_runaway": f"{FRANCIS.runaway_rpm:.0f}",
        "francis_ns": f"{FRANCIS.specific_speed:.0f}",
        "start_s": f"{start_s:.1f}",
        "kaplan_kw": f"{KAPLAN.shaft_kw:.0f}",
        "kaplan_terminal_kw": f"{KAPLAN.terminal_kw:.0f}",
        "kaplan_rpm": f"{KAPLAN.speed_rpm:.1f}",
        "kaplan_runaway": f"{KAPLAN.runaway_rpm:.0f}",
        "kaplan_ns": f"{KAPLAN.specific_speed:.0f}",
        "station_mw": f"{(both_kw + KAPLAN.terminal_kw) / 1000:.1f}",
        "performance": "\n".join(_performance_row(*point) for point in PERFORMANCE),
    }


def _performance_row(opening: int, flow: float, efficiency: float) -> str:
    shaft = shaft_kw(flow, head_m=FRANCIS.net_head_m, efficiency=efficiency)
    terminal = shaft * FRANCIS.generator_efficiency
    return f"| {opening} | {flow:.2f} | {efficiency * 100:.1f} | {shaft:,.0f} | {terminal:,.0f} |"


def _penstock_facts() -> dict[str, str]:
    pipe = PENSTOCK
    valve_m2 = math.pi / 4 * (INLET_VALVE_MM / 1000) ** 2
    return {
        "gross_m": f"{pipe.gross_head_m:.2f}",
        "loss_m": f"{pipe.loss_m:.2f}",
        "velocity": f"{pipe.velocity_m_s:.2f}",
        "volume": f"{pipe.volume_m3:,.0f}",
        "filling_min": f"{pipe.volume_m3 / FILLING_M3_S / 60:.0f}",
        "static_bar": f"{pipe.static_bar:.2f}",
        "surge_m": f"{pipe.surge_m:.1f}",
        "surge_percent": f"{pipe.surge_m / (pipe.headwater_m - pipe.centreline_m) * 100:.0f}",
        "peak_bar": f"{pipe.peak_bar:.1f}",
        "test_bar": f"{1.5 * DESIGN_BAR:.2f}",
        "valve_velocity": f"{FRANCIS.flow_m3_s / valve_m2:.2f}",
        "walls": "\n".join(_wall_row(n, wall=w, pressure=p) for n, (w, p) in enumerate(WALLS, start=1)),
    }


def _wall_row(section: int, *, wall: int, pressure: float) -> str:
    least = wall - CORROSION_MM
    stress = hoop_mpa(pressure, diameter_mm=PENSTOCK.diameter_m * 1000, wall_mm=least)
    first, last = (section - 1) * 70, section * 70
    return f"| {section} | {first} to {last} | {wall} | {least} | {pressure:.1f} | {stress:.1f} |"


def _electrical_facts() -> dict[str, str]:
    return {
        "francis_a": f"{FRANCIS.current_a:.0f}",
        "francis_overload_a": f"{1.2 * FRANCIS.current_a:.0f}",
        "kaplan_a": f"{KAPLAN.current_a:.0f}",
        "reverse_kw": f"{0.03 * FRANCIS.rating_kva * FRANCIS.power_factor:.0f}",
        "t1_hv_a": f"{line_current_a(20_000, voltage_v=66_000):.0f}",
        "t1_lv_a": f"{line_current_a(20_000, voltage_v=6_300):,.0f}",
        "t2_a": f"{line_current_a(400, voltage_v=400):.0f}",
        "diesel_a": f"{line_current_a(160, voltage_v=400):.0f}",
        "cells": f"{BATTERY_CELLS}",
        "float_v": f"{BATTERY_CELLS * 2.23:.1f}",
        "boost_v": f"{BATTERY_CELLS * 2.40:.1f}",
        "end_v": f"{BATTERY_CELLS * 1.80:.1f}",
    }
