"""Alternates variants of one program: step time of each, and its ratio to bare.

RECORDER=/path/to/liblongpole_recorder.so python3 overhead.py 3 "bare longpole torch longpole-all" SCRATCH_FOLDER
"""
import json, os, statistics, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
rounds = int(sys.argv[1])
variants, tmp = sys.argv[2].split(), sys.argv[3]
got = {}
def env(variant):
    e = dict(os.environ)
    for k in [k for k in e if k.startswith("LONGPOLE_") or k.endswith("INJECTION64_PATH")]:
        del e[k]
    if variant.startswith("longpole"):
        lib = os.environ["RECORDER"]
        d = f"{tmp}/{variant}.{len(os.listdir(tmp))}"; os.mkdir(d)
        e.update(CUDA_INJECTION64_PATH=lib, NVTX_INJECTION64_PATH=lib, LONGPOLE_RECORD_DIR=d)
        if variant == "longpole-all": e["LONGPOLE_RECORD_API"] = "all"
    return e
for r in range(rounds):
    for v in variants if r % 2 == 0 else variants[::-1]:
        args = ["python3", f"{here}/decode.py", "--tokens", "48", "--graph-tokens", "128", "--repeat", "4"] + (["--profile", "torch"] if v == "torch" else [])
        o = subprocess.run(args, env=env(v), capture_output=True, text=True)
        try:
            out = json.loads(o.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            print(v, o.returncode, o.stdout[-500:], o.stderr[-1500:])
            continue
        for mode, times in out.items():
            got.setdefault((v, mode), []).append(min(times))
            got.setdefault((v, mode, "med"), []).append(statistics.median(times))
        print(r, v, {m: [round(t, 1) for t in ts] for m, ts in out.items()}, flush=True)
for mode in ("eager", "graph"):
    for v in variants:
        if (v, mode) in got:
            best, med = statistics.median(got[v, mode]), statistics.median(got[v, mode, "med"])
            b, m = statistics.median(got["bare", mode]), statistics.median(got["bare", mode, "med"])
            print(f"{mode:<6} {v:<22} {best:9.1f} us a token ({best / b:.3f} x bare); by medians {med:9.1f} us ({med / m:.3f} x)")
