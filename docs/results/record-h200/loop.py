"""A loop of small products for S seconds, with NVTX ranges; says what it had as signals."""
import signal, sys, time, torch
seconds = float(sys.argv[1]); what = sys.argv[2] if len(sys.argv) > 2 else ""
x = torch.randn(512, 512, device="cuda"); (x @ x).relu(); torch.cuda.synchronize()
print("ready", flush=True)
def body(n):
    for i in range(n):
        torch.cuda.nvtx.range_push("token")
        y = (x @ x).relu()
        torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
if what == "profiler":
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as p:
        body(100)
    print("events of torch.profiler:", len(p.events()), flush=True)
end, n = time.time() + seconds, 0
try:
    while time.time() < end:
        body(100); n += 100
        time.sleep(0.01)
except KeyboardInterrupt:
    print("interrupted", flush=True); sys.exit(7)
print("tokens", n, flush=True)
