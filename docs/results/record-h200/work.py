"""Two decoders of Qwen3-0.6B's shape with random weights, batch 1, bf16: `plain` (hand-written, launches of some 10 us) and `hf` (transformers, eager
attention by SDPA), each eagerly and as a CUDA graph. Serves timings on request: lines `MODE TOKENS CORE PROFILE` on standard input, a line of JSON back."""
import json, os, sys, time
sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
import torch
import torch.nn.functional as F

want = set(os.environ.get("WORK", "plain,hf").split(","))
LAYERS = int(os.environ.get("LAYERS", "28"))
gpu = torch.cuda.is_available()
dev = "cuda" if gpu else "cpu"
dt = torch.bfloat16
torch.manual_seed(0)
sync = torch.cuda.synchronize if gpu else (lambda: None)
errors = {}


class Plain:
    H, NH, KV, D, I, V, CAP = 1024, 16, 8, 128, 3072, 151936 if gpu else 1000, 512

    def __init__(self):
        H, NH, KV, D, I, V, CAP = self.H, self.NH, self.KV, self.D, self.I, self.V, self.CAP
        w = lambda *shape: torch.randn(*shape, device=dev, dtype=dt) * 0.02
        one = lambda n: torch.ones(n, device=dev, dtype=dt)
        zero = lambda: torch.zeros(1, KV, CAP, D, device=dev, dtype=dt)
        self.layers = [dict(n1=one(H), n2=one(H), qn=one(D), kn=one(D), q=w(NH * D, H), k=w(KV * D, H), v=w(KV * D, H), o=w(H, NH * D),
                            gate=w(I, H), up=w(I, H), down=w(H, I), kc=zero(), vc=zero()) for _ in range(LAYERS)]
        self.emb, self.last = w(V, H), one(H)
        self.inv = 1.0 / (1e6 ** (torch.arange(0, D, 2, device=dev).float() / D))
        self.pos = torch.zeros(1, device=dev, dtype=torch.long)
        self.tok = torch.zeros(1, device=dev, dtype=torch.long)
        self.slots = torch.arange(CAP, device=dev)

    @staticmethod
    def norm(x, weight):
        f = x.float()
        return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)).to(dt) * weight

    @staticmethod
    def rope(x, cos, sin):
        one, two = x.chunk(2, -1)
        return x * cos + torch.cat((-two, one), -1) * sin

    def step(self):
        NH, KV, D = self.NH, self.KV, self.D
        x = self.emb[self.tok]
        freq = self.pos.float()[:, None] * self.inv[None]
        cos, sin = torch.cat((freq, freq), -1).cos().to(dt), torch.cat((freq, freq), -1).sin().to(dt)
        mask = (self.slots <= self.pos)[None, None, None, :]
        for l in self.layers:
            h = self.norm(x, l["n1"])
            q = self.norm(F.linear(h, l["q"]).view(1, 1, NH, D), l["qn"]).transpose(1, 2)
            k = self.norm(F.linear(h, l["k"]).view(1, 1, KV, D), l["kn"]).transpose(1, 2)
            v = F.linear(h, l["v"]).view(1, 1, KV, D).transpose(1, 2)
            q, k = self.rope(q, cos, sin), self.rope(k, cos, sin)
            l["kc"].index_copy_(2, self.pos, k)
            l["vc"].index_copy_(2, self.pos, v)
            o = F.scaled_dot_product_attention(q, l["kc"], l["vc"], attn_mask=mask, enable_gqa=True)
            x = x + F.linear(o.transpose(1, 2).reshape(1, NH * D), l["o"])
            h = self.norm(x, l["n2"])
            x = x + F.linear(F.silu(F.linear(h, l["gate"])) * F.linear(h, l["up"]), l["down"])
        self.tok.copy_(F.linear(self.norm(x, self.last), self.emb).argmax(-1))
        self.pos.add_(1).remainder_(self.CAP)

    def reset(self):
        self.pos.zero_()
        self.tok.zero_()

    reset_graph = reset
    graph_step = step


class Hf:
    PROMPT, CAP = 16, 1024

    def __init__(self):
        import transformers
        from transformers import Qwen3Config, Qwen3ForCausalLM, StaticCache
        self.StaticCache = StaticCache
        self.config = Qwen3Config(vocab_size=151936 if gpu else 1000, hidden_size=1024, intermediate_size=3072, num_hidden_layers=LAYERS, num_attention_heads=16,
                                  num_key_value_heads=8, head_dim=128, tie_word_embeddings=True, max_position_embeddings=4096, attn_implementation="sdpa")
        torch.set_default_dtype(dt)
        with torch.device(dev):
            self.model = Qwen3ForCausalLM(self.config)
        torch.set_default_dtype(torch.float32)
        self.model = self.model.to(dev).to(dt).eval()
        self.prompt = torch.arange(self.PROMPT, device=dev)[None]
        self.tok = torch.zeros(1, 1, device=dev, dtype=torch.long)
        self.static = None
        self.reset()

    def reset(self):
        out = self.model(self.prompt, use_cache=True)
        self.past = out.past_key_values
        self.tok.zero_()

    def step(self):
        out = self.model(self.tok, past_key_values=self.past, use_cache=True)
        self.tok.copy_(out.logits[:, -1].argmax(-1, keepdim=True))

    def reset_graph(self):
        if self.static is None:
            self.static = self.StaticCache(config=self.config, max_cache_len=self.CAP)
            self.model(self.prompt, past_key_values=self.static, use_cache=True)
        for layer in self.static.layers:
            layer.cumulative_length.fill_(self.PROMPT)
        self.tok.zero_()

    def graph_step(self):
        out = self.model(self.tok, past_key_values=self.static, use_cache=True)
        self.tok.copy_(out.logits[:, -1].argmax(-1, keepdim=True))


def capture(model):
    model.reset_graph()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            model.graph_step()
    torch.cuda.current_stream().wait_stream(side)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        model.graph_step()
    return g


runs = {}
with torch.inference_mode():
    for name, make in (("plain", Plain), ("hf", Hf)):
        if name not in want:
            continue
        try:
            model = make()
            for _ in range(4):
                model.step()
            sync()
            runs[name + "-eager"] = (model.step, model.reset)
            if gpu:
                g = capture(model)
                g.replay()
                sync()
                runs[name + "-graph"] = (g.replay, model.reset_graph)
        except Exception as error:
            import traceback
            traceback.print_exc()
            errors[name] = repr(error)[:500]
    import gc
    gc.collect()
    gc.freeze()
    print(json.dumps({"ready": sorted(runs), "errors": errors}))
    for line in sys.stdin:
        mode, tokens, core, profile = line.split()
        if mode == "quit":
            break
        if core != "-":
            os.sched_setaffinity(0, {int(core)})
        run, reset = runs[mode]
        prof = None
        if profile == "torch":
            acts = torch.profiler.ProfilerActivity
            prof = torch.profiler.profile(activities=[acts.CPU, acts.CUDA] if gpu else [acts.CPU], acc_events=True)
            prof.__enter__()
        reset()
        gc.collect()
        gc.disable()
        run()
        sync()
        times = []
        begun = time.perf_counter_ns()
        for _ in range(int(tokens)):
            t0 = time.perf_counter_ns()
            run()
            times.append((time.perf_counter_ns() - t0) / 1000)
        sync()
        whole = (time.perf_counter_ns() - begun) / 1000 / int(tokens)
        gc.enable()
        if prof:
            prof.__exit__(None, None, None)
        print(json.dumps({"whole": whole, "each": times}))
