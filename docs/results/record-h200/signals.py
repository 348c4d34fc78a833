"""Runs `longpole record` end to end: python3 signals.py FOLDER, which holds longpole, liblongpole_recorder.so, ranges.cu and loop.py."""
import os, signal, subprocess, sys, time
D = os.path.abspath(sys.argv[1]); W = os.path.join(D, "out"); os.makedirs(W, exist_ok=True); os.chdir(W)
LP = D + "/longpole"; env = dict(os.environ, NO_COLOR="1", COLUMNS="110", LONGPOLE_RECORDER=D + "/liblongpole_recorder.so")
t0 = time.time()
def show(title, *cmd):
    o = subprocess.run(cmd, env=env, capture_output=True, text=True, timeout=60)
    print(f"\n$ {title}\n{o.stdout}{o.stderr}[exit {o.returncode}, {time.time()-t0:.0f} s]".replace(D + "/", "").replace(W + "/", ""), flush=True)
def record(name, args, prog, act=None):
    cmd = [LP, "record", *args, "-o", f"{name}.longpole", "--", *prog]
    p = subprocess.Popen(cmd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         preexec_fn=lambda: (signal.signal(signal.SIGINT, signal.SIG_DFL), os.setpgid(0, 0)))
    if act: act(p)
    try:
        out, err = p.communicate(timeout=50)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, 9); out, err = p.communicate(); err += "\n!! timed out"
    words = " ".join(cmd).replace(D + "/", "").replace(W + "/", "")
    print(f"\n$ {words}\n-- stdout\n{out}-- stderr\n{err[:3500].replace(D + '/', '')}\n[exit {p.returncode}, {time.time()-t0:.0f} s]", flush=True)
    show(f"longpole ranges {name}.longpole", LP, "ranges", f"{name}.longpole")
def after_ready(signals, wait=2.5):
    def act(p):
        time.sleep(9 + wait)
        for target, number in signals:
            if target == "group": os.killpg(p.pid, number)
            else:
                kids = subprocess.run(["pgrep", "-f", "loop.py 30"], capture_output=True, text=True).stdout.split()
                for k in kids:
                    if int(k) != p.pid and b"loop.py" in open(f"/proc/{k}/cmdline","rb").read() and b"record" not in open(f"/proc/{k}/cmdline","rb").read(): os.kill(int(k), number)
    return act
nv = subprocess.run(["nvcc", "-o", "ranges", D + "/ranges.cu", "-lnvToolsExt"], capture_output=True, text=True)
if nv.returncode: nv = subprocess.run(["nvcc", "-o", "ranges", D + "/ranges.cu", "-ldl"], capture_output=True, text=True)
print("nvcc", nv.returncode, nv.stderr[-300:])
if nv.returncode == 0: record("c", [], ["./ranges"])
loop = ["python3", D + "/loop.py"]
record("torch_profiler", [], loop + ["0.5", "profiler"])
record("window", ["--delay", "1", "--duration", "1"], loop + ["4"])
record("int", [], loop + ["30"], after_ready([("group", signal.SIGINT)]))
record("kill", [], loop + ["30"], after_ready([("child", signal.SIGKILL)]))
show("longpole triage kill.longpole --strict", LP, "triage", "kill.longpole", "--strict", "-q")
