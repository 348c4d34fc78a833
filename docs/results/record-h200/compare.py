"""Kernels of a recording (output of `dump --kernels`) against those of a torch.profiler trace: counts and names, total durations."""
import ctypes, json, sys
from collections import Counter

lib = ctypes.CDLL("libstdc++.so.6")
lib.__cxa_demangle.restype = ctypes.c_void_p
lib.__cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]

def demangle(name):
    status = ctypes.c_int()
    text = lib.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    return ctypes.string_at(text).decode() if text else name

def ours(path):
    count, time = Counter(), Counter()
    for line in open(path):
        n, ns, name = line.rstrip("\n").split("\t", 2)
        if int(n):
            name = demangle(name) if name.startswith("_Z") else name
            count[name] += int(n); time[name] += int(ns)
    return count, time

def torchs(path):
    count, time = Counter(), Counter()
    kinds = {"kernel": None, "gpu_memcpy": "(copies)", "gpu_memset": "(sets)"}
    for e in json.load(open(path))["traceEvents"]:
        if e.get("ph") == "X" and e.get("cat") in kinds:
            name = kinds[e["cat"]] or e["name"]
            count[name] += 1; time[name] += e["dur"] * 1000
    return count, time

what, a, b = sys.argv[1:4]
(oc, ot), (tc, tt) = ours(a), torchs(b)
kern = lambda c: sum(n for k, n in c.items() if not k.startswith("("))
print(f"{what}: {kern(oc)} kernels recorded, {kern(tc)} in torch's trace; copies {oc['(copies)']}/{tc['(copies)']}, sets {oc['(sets)']}/{tc['(sets)']}")
print(f"  names: {len([k for k in oc if k[0] != '('])} recorded, {len([k for k in tc if k[0] != '('])} in torch's trace; counts of all names equal: {oc == tc}")
for name in sorted(set(oc) | set(tc)):
    if oc[name] != tc[name]:
        print(f"  differs: {oc[name]} / {tc[name]}  {name[:150]}")
so, st = sum(ot.values()), sum(tt.values())
print(f"  device time: {so / 1e6:.3f} ms recorded, {st / 1e6:.3f} ms in torch's trace, ratio {so / st:.4f}")
for name, n in oc.most_common(8):
    print(f"  {n:>7} {ot[name] / 1e6:>9.3f} ms / {tt[name] / 1e6:>9.3f} ms  {name[:110]}")
