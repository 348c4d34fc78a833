"""A decoder of Qwen3-0.6B's shape with random weights: decode steps at batch 1, eagerly and as a CUDA graph, timed, and optionally profiled."""
import argparse, json, sys, time, torch
import torch.nn.functional as F

p = argparse.ArgumentParser()
p.add_argument("--modes", default="eager,graph")
p.add_argument("--tokens", type=int, default=64)
p.add_argument("--graph-tokens", type=int, default=256)
p.add_argument("--repeat", type=int, default=5)
p.add_argument("--profile", choices=["none", "torch", "range"], default="none")
p.add_argument("--trace", default="")
p.add_argument("--nvtx", action="store_true")
p.add_argument("--layers", type=int, default=28)
p.add_argument("--device", default="cuda")
p.add_argument("--whole", action="store_true")
p.add_argument("--events", action="store_true")
a = p.parse_args()
dev = a.device
gpu = dev == "cuda"
torch.manual_seed(0)
H, NH, KV, D, I, V, CAP = 1024, 16, 8, 128, 3072, 151936 if gpu else 1000, 512
dt = torch.bfloat16

def w(*shape):
    return torch.randn(*shape, device=dev, dtype=dt) * 0.02

class Layer:
    def __init__(self):
        self.n1, self.n2 = torch.ones(H, device=dev, dtype=dt), torch.ones(H, device=dev, dtype=dt)
        self.qn, self.kn = torch.ones(D, device=dev, dtype=dt), torch.ones(D, device=dev, dtype=dt)
        self.q, self.k, self.v, self.o = w(NH * D, H), w(KV * D, H), w(KV * D, H), w(H, NH * D)
        self.gate, self.up, self.down = w(I, H), w(I, H), w(H, I)
        self.kc = torch.zeros(1, KV, CAP, D, device=dev, dtype=dt)
        self.vc = torch.zeros(1, KV, CAP, D, device=dev, dtype=dt)

def norm(x, weight):
    f = x.float()
    return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)).to(dt) * weight

layers = [Layer() for _ in range(a.layers)]
emb, last = w(V, H), torch.ones(H, device=dev, dtype=dt)
inv = 1.0 / (1e6 ** (torch.arange(0, D, 2, device=dev).float() / D))
pos = torch.zeros(1, device=dev, dtype=torch.long)
tok = torch.zeros(1, device=dev, dtype=torch.long)
slots = torch.arange(CAP, device=dev)

def rope(x, cos, sin):
    one, two = x.chunk(2, -1)
    return x * cos + torch.cat((-two, one), -1) * sin

def step():
    x = emb[tok]
    freq = pos.float()[:, None] * inv[None]
    cos, sin = torch.cat((freq, freq), -1).cos().to(dt), torch.cat((freq, freq), -1).sin().to(dt)
    mask = (slots <= pos)[None, None, None, :]
    for l in layers:
        h = norm(x, l.n1)
        q = norm(F.linear(h, l.q).view(1, 1, NH, D), l.qn).transpose(1, 2)
        k = norm(F.linear(h, l.k).view(1, 1, KV, D), l.kn).transpose(1, 2)
        v = F.linear(h, l.v).view(1, 1, KV, D).transpose(1, 2)
        q, k = rope(q, cos, sin), rope(k, cos, sin)
        l.kc.index_copy_(2, pos, k)
        l.vc.index_copy_(2, pos, v)
        o = F.scaled_dot_product_attention(q, l.kc, l.vc, attn_mask=mask, enable_gqa=True)
        x = x + F.linear(o.transpose(1, 2).reshape(1, NH * D), l.o)
        h = norm(x, l.n2)
        x = x + F.linear(F.silu(F.linear(h, l.gate)) * F.linear(h, l.up), l.down)
    logits = F.linear(norm(x, last), emb)
    tok.copy_(logits.argmax(-1))
    pos.add_(1).remainder_(CAP)

def sync():
    if gpu:
        torch.cuda.synchronize()

push = torch.cuda.nvtx.range_push if a.nvtx else (lambda name: None)
pop = torch.cuda.nvtx.range_pop if a.nvtx else (lambda: None)

def timed(run, tokens):
    seconds = []
    for _ in range(a.repeat):
        pos.zero_(); tok.zero_(); sync()
        t0 = time.perf_counter()
        for i in range(tokens):
            push(f"token {i}")
            run()
            pop()
        sync()
        seconds.append(time.perf_counter() - t0)
    return seconds

def profiled(name, run, tokens):
    prof = None
    if a.profile == "torch":
        acts = [torch.profiler.ProfilerActivity.CPU] + ([torch.profiler.ProfilerActivity.CUDA] if gpu else [])
        prof = torch.profiler.profile(activities=acts)
        prof.__enter__()
    if a.profile == "range":
        torch.cuda.profiler.start()
    seconds = timed(run, tokens)
    if a.profile == "range":
        torch.cuda.profiler.stop()
    if prof:
        prof.__exit__(None, None, None)
        if a.trace:
            prof.export_chrome_trace(a.trace.replace("MODE", name))
        elif a.events:
            print(json.dumps({"cuda_events": sum(1 for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA)}), file=sys.stderr)
    return seconds

out = {}
with torch.inference_mode():
    for _ in range(8):
        step()
    sync()
    modes = a.modes.split(",")
    if "eager" in modes:
        out["eager"] = [s / a.tokens * 1e6 for s in profiled("eager", step, a.tokens)]
    if "graph" in modes:
        early = None
        if a.whole and a.profile == "torch":
            early = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA])
            early.__enter__()
        if a.whole and a.profile == "range":
            torch.cuda.profiler.start()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            step()
        for _ in range(4):
            g.replay()
        sync()
        if a.whole:
            out["graph"] = [s / a.graph_tokens * 1e6 for s in timed(g.replay, a.graph_tokens)]
            torch.cuda.profiler.stop() if early is None else early.__exit__(None, None, None)
            if early: early.export_chrome_trace(a.trace.replace("MODE", "graph"))
        else:
            out["graph"] = [s / a.graph_tokens * 1e6 for s in profiled("graph", g.replay, a.graph_tokens)]
print(json.dumps(out))
