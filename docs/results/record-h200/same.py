"""Kernels of a recording against those of a torch.profiler trace of the same program and seed: calls by name, total time. Both are read by longpole."""
import json, subprocess, sys
longpole, a, b = sys.argv[1:4]
def kernels(path):
    doc = json.loads(subprocess.run([longpole, "kernels", path, "--json"], capture_output=True, text=True, check=True).stdout)
    found = {}
    for row in doc["kernels"]:
        # Copies and sets go by the words of whoever recorded them.
        name = row["name"] if row["kind"] == "kernel" else f"({row['kind']})"
        calls, time = found.get(name, (0, 0))
        found[name] = (calls + row["calls"], time + row["cuda_ns"])
    return found
ours, theirs = kernels(a), kernels(b)
differ = [n for n in sorted(set(ours) | set(theirs)) if ours.get(n, (0,))[0] != theirs.get(n, (0,))[0]]
print(f"{a} against {b}: {sum(v[0] for v in ours.values())} / {sum(v[0] for v in theirs.values())} pieces of device work, {len(ours)} / {len(theirs)} names, {len(differ)} names with other counts")
for n in differ[:10]:
    print(f"  differs: {ours.get(n)} / {theirs.get(n)}  {n[:120]}")
so, st = sum(v[1] for v in ours.values()), sum(v[1] for v in theirs.values())
print(f"  device time: {so / 1e6:.3f} / {st / 1e6:.3f} ms, ratio {so / st:.4f}")
