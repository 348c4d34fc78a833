#!/usr/bin/env python3
"""The medians of a suite's JSON lines as a table: `table.py FILE [COPY_BYTES_PER_S]`. `longpole bench` shows more; this needs nothing."""

import json
import statistics
import sys

copy = float(sys.argv[2]) if len(sys.argv) > 2 else None
samples, starts = {}, {}
for line in open(sys.argv[1]):
    if not line.startswith("{"):
        continue
    event = json.loads(line)
    if event["event"] == "start":
        starts[event["key"]] = event
    elif event["event"] == "sample":
        samples.setdefault(event["key"], []).append(event["time_ps"])
    elif event["event"] == "error":
        print(event["key"], "FAILED:", event["message"])
for key, times in samples.items():
    median = statistics.median(times) * 1e-12
    start = starts[key]
    text = f"{key:<48} {median * 1e6:>10.2f} us"
    if start.get("bytes"):
        rate = start["bytes"] / median
        text += f" {rate / 1e9:>8.0f} GB/s" + (f" {100 * rate / copy:5.1f} %" if copy else "")
    if start.get("flops"):
        text += f" {start['flops'] / median / 1e12:>8.1f} TFLOP/s"
    print(text, start["method"], len(times))
