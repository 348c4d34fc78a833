"""Sums of the Chrome traces beside this file, read plainly: what chrome_sums.txt holds, and the importer is tested against."""
import gzip, json, re, sys
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal

calls, total = Counter(), Counter()
for path in sys.argv[1:]:
    text = (gzip.open if path.endswith(".gz") else open)(path, "rt").read()
    document = json.loads(text, parse_float=Decimal)
    ns = lambda value: int((Decimal(value) * 1000).quantize(Decimal(1), ROUND_HALF_UP))
    for e in document if isinstance(document, list) else document["traceEvents"]:
        if e.get("ph") == "X":
            args = e.get("args", {})
            of = args.get("hlo_op") and "op " + args["hlo_module"] + "/" + args["hlo_op"] or e.get("cat") == "Node" and "op " + args["op_name"]
            device = "kernel_details" in args or e.get("cat") == "Kernel"
            for key in {"work " + e["name"] if device else "host " + e["name"], of or ""}:
                calls[path, key] += 1
                total[path, key] += ns(e["dur"])
for path, key in sorted(calls):
    if key:
        print(re.sub(".*/", "", path), calls[path, key], total[path, key], key, sep="\t")
