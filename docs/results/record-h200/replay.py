"""A decode step of Qwen3-0.6B's shape (transformers, random weights, batch 1, bf16) captured as a CUDA graph with a range around every module, then
replayed in ranges `replay_step`. What lies between cudaProfilerStart and Stop is the capture and the replays."""
import sys, torch
from transformers import Qwen3Config, Qwen3ForCausalLM, StaticCache

replays = int(sys.argv[1]) if len(sys.argv) > 1 else 12
nvtx = torch.cuda.nvtx
torch.manual_seed(0)
config = Qwen3Config(vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16, num_key_value_heads=8,
                     head_dim=128, tie_word_embeddings=True, max_position_embeddings=4096, attn_implementation="sdpa")
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = Qwen3ForCausalLM(config)
model = model.to("cuda").eval()
torch.set_default_dtype(torch.float32)
prompt = torch.arange(512, device="cuda")[None]
tok = torch.zeros(1, 1, device="cuda", dtype=torch.long)
cache = StaticCache(config=config, max_cache_len=1024)


def step():
    out = model(tok, past_key_values=cache, use_cache=True)
    tok.copy_(out.logits[:, -1].argmax(-1, keepdim=True))


with torch.inference_mode():
    model(prompt, past_key_values=cache, use_cache=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    for name, module in model.named_modules():
        if name:
            module.register_forward_pre_hook(lambda module, inputs, name=name: (nvtx.range_push(name), None)[1])
            module.register_forward_hook(lambda module, inputs, output: (nvtx.range_pop(), None)[1], always_call=True)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    graph = torch.cuda.CUDAGraph()
    nvtx.range_push("capture")
    with torch.cuda.graph(graph):
        step()
    nvtx.range_pop()
    for _ in range(replays):
        nvtx.range_push("replay_step")
        graph.replay()
        nvtx.range_pop()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
print(f"token {tok.item()}", file=sys.stderr)
