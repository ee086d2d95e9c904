# ruff: noqa: S311 - a script with a seeded random source
"""Writes nodes.csv and pods.csv: a made-up cluster in the columns of the openb GPU trace.

Run it in this directory; it writes the same bytes every time.
"""

from __future__ import annotations

import csv
from pathlib import Path
from random import Random

SEED = 2023
PODS = 400

# model, GPUs, milli cpu, MiB of memory, how many nodes; some without GPUs.
SHAPES = (
    ("", 0, 32_000, 131_072, 10),
    ("T4", 2, 64_000, 262_144, 20),
    ("V100", 4, 48_000, 376_832, 12),
    ("A10", 1, 32_000, 131_072, 8),
    ("G2", 8, 96_000, 393_216, 10),
)

# milli cpu, MiB of memory, GPUs, thousandths of each GPU, weight.
KINDS = (
    (4_000, 8_192, 0, 0, 20),
    (16_000, 32_768, 0, 0, 6),
    (3_000, 6_144, 1, 500, 20),
    (8_000, 24_576, 1, 810, 12),
    (11_000, 32_768, 1, 1_000, 30),
    (16_000, 65_536, 2, 1_000, 5),
    (40_000, 196_608, 4, 1_000, 4),
    (88_000, 327_680, 8, 1_000, 3),
)
SPECS = ("", "", "", "", "", "T4", "V100|G2", "A10|T4")
QOS = ("LS", "BE", "Burstable")


def node_rows() -> list[tuple[object, ...]]:
    """Return one row per node."""
    shapes = [shape[:4] for shape in SHAPES for _ in range(shape[4])]
    return [
        (f"node-{at:03d}", cpu, memory, gpus, model)
        for at, (model, gpus, cpu, memory) in enumerate(shapes)
    ]


def pod_rows(random: Random) -> list[tuple[object, ...]]:
    """Return one row per pod, in order of name; creation times are in an order of their own."""
    weights = [kind[4] for kind in KINDS]
    rows: list[tuple[object, ...]] = []
    for at in range(PODS):
        cpu, memory, gpus, milli, _ = random.choices(KINDS, weights)[0]
        spec = random.choice(SPECS) if gpus == 1 else ""
        created = random.randrange(1_000_000)
        scheduled = created + random.randrange(600)
        deleted = scheduled + random.randrange(60, 500_000)
        name = f"pod-{at:03d}"
        times = ("Succeeded", created, deleted, scheduled)
        rows.append((name, cpu, memory, gpus, milli, spec, random.choice(QOS), *times))
    return rows


def write(name: str, header: str, rows: list[tuple[object, ...]]) -> None:
    """Write a file beside this one."""
    with Path(__file__).with_name(name).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header.split(","))
        writer.writerows(rows)


def main() -> None:
    """Write both lists."""
    write("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model", node_rows())
    write(
        "pods.csv",
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
        "creation_time,deletion_time,scheduled_time",
        pod_rows(Random(SEED)),
    )


if __name__ == "__main__":
    main()
