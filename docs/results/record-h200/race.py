"""Variants of a recorder side by side: a process each, started together, which then take turns of a few tokens on the same core of the processor.

  race.py SECONDS MODES:TOKENS,... OUT.json < variants.json      [{"name", "env": {}, "profile": "torch"?}], the first being bare
"""
import json, os, random, statistics, subprocess, sys, time
here = os.path.dirname(os.path.abspath(__file__))
began = time.time()
seconds, modes, out = float(sys.argv[1]), [m.split(":") for m in sys.argv[2].split(",")], sys.argv[3]
variants = json.load(sys.stdin)
random.seed(1)
cores = os.cpu_count()


def environment(v):
    e = {k: x for k, x in os.environ.items() if not (k.startswith("LONGPOLE_") or k.endswith("INJECTION64_PATH"))}
    e.update(v.get("env", {}))
    e.setdefault("OMP_NUM_THREADS", "4")
    return e


def ask(p, line):
    p.stdin.write(line + "\n")
    p.stdin.flush()
    reply = p.stdout.readline()
    return json.loads(reply) if reply.strip() else None


for v in variants:
    err = open(f"{out}.{v['name']}.err", "w")
    v["p"] = subprocess.Popen(["python3", f"{here}/work.py"], env=environment(v), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True)
ready = []
for v in variants:
    line = v["p"].stdout.readline()
    state = json.loads(line) if line.strip() else {"ready": [], "errors": "did not start"}
    if state["errors"] or not state["ready"]:
        print(f"{v['name']}: {state}", flush=True)
        os.system(f"tail -n 15 '{out}.{v['name']}.err'")
    if state["ready"]:
        v["modes"] = state["ready"]
        ready.append(v)
print(f"{len(ready)} of {len(variants)} ready after {time.time() - began:.0f} s", flush=True)
got = {}
rounds = 0
while ready and time.time() - began < seconds:
    core = str((2 + 5 * rounds) % cores)
    for mode, tokens in modes:
        order = ready[:]
        random.shuffle(order)
        for v in order:
            if mode in v["modes"] and v.get("dead") is None:
                try:
                    r = ask(v["p"], f"{mode} {tokens} {core} {v.get('profile', '-')}")
                except OSError:
                    r = None
                if r is None:
                    v["dead"] = True
                    print(f"{v['name']} died in {mode}", flush=True)
                    os.system(f"tail -n 15 '{out}.{v['name']}.err'")
                    continue
                if rounds > 0:
                    got.setdefault(mode, {}).setdefault(v["name"], []).append((rounds, r["whole"], statistics.median(r["each"]), core))
    rounds += 1
for v in ready:
    try:
        v["p"].stdin.write("quit 0 0 0\n")
        v["p"].stdin.close()
    except OSError:
        pass
json.dump(got, open(out, "w"))
print(f"{rounds - 1} rounds, {time.time() - began:.0f} s")
bare = variants[0]["name"]
for mode, tokens in modes:
    if mode not in got:
        continue
    base = {r: (w, m) for r, w, m, _ in got[mode].get(bare, [])}
    print(f"\n{mode}, {tokens} tokens a turn; microseconds a token; ratios to {bare} are medians of those of the rounds (least, most)")
    for v in variants:
        rows = got[mode].get(v["name"])
        if not rows:
            continue
        ratios = sorted(w / base[r][0] for r, w, _, _ in rows if r in base)
        med = statistics.median(ratios)
        q = lambda p: ratios[min(len(ratios) - 1, int(p * len(ratios)))]
        print(f"  {v['name']:<28} {statistics.median(w for _, w, _, _ in rows):10.1f}  best {min(w for _, w, _, _ in rows):10.1f}  {med:.3f} x  ({ratios[0]:.3f} {q(.25):.3f} {q(.75):.3f} {ratios[-1]:.3f})")
for v in ready:
    try:
        v["p"].wait(20)
    except subprocess.TimeoutExpired:
        v["p"].kill()
