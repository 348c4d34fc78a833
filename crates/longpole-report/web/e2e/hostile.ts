/** A trace whose names try everything that a page could fall for, in the form that torch.profiler writes. */

export const NAMES = {
  script: "<script>window.ran = 1</script>",
  close: "</script></title></style></pre><script>window.ran = 2</script>",
  image: '<img src=x onerror="window.ran = 3">',
  comment: "<!--<script>window.ran = 4",
  quotes: "\"' onmouseover='window.ran = 5' `${window.ran = 6}` \\",
  bidi: "safe\u202eexe.yaj\u2066x\u2069\u200f",
  terminal: "\u001b[31mred\u001b]0;title\u0007\u001b[2J",
  controls: "line\nbreak\ttab\u0000nul\u0085\u2028",
  link: "javascript:window.ran=7",
  formula: '=HYPERLINK("http://127.0.0.1:9/")',
  prototype: "__proto__",
  constructor: "constructor",
  wide: "\u{1f600}".repeat(40),
  long: `long${"x".repeat(20_000)}`,
};

/** `extra` operators with names of their own, for a table of thousands of rows. */
export function hostileTrace(extra: number): string {
  const events: object[] = [];
  let time = 1_000;
  let id = 1;
  const launch = (op: string, kernel: string, duration: number): void => {
    events.push({ ph: "X", cat: "cpu_op", name: op, pid: 1, tid: 1, ts: time, dur: 9, args: { "External id": id } });
    events.push({
      ph: "X",
      cat: "cuda_runtime",
      name: "cudaLaunchKernel",
      pid: 1,
      tid: 1,
      ts: time + 2,
      dur: 5,
      args: { correlation: id, "External id": id },
    });
    events.push({
      ph: "X",
      cat: "kernel",
      name: kernel,
      pid: 0,
      tid: 7,
      ts: time + 8,
      dur: duration,
      args: { correlation: id, "External id": id, device: 0, stream: 7, grid: [1, 1, 1], block: [32, 1, 1] },
    });
    time += 20;
    id += 1;
  };
  const begin = time;
  for (let round = 0; round < 3; round++) {
    for (const [i, name] of Object.values(NAMES).entries()) launch(name, `kernel ${name}`, 5 + i);
  }
  events.push({ ph: "X", cat: "user_annotation", name: NAMES.close, pid: 1, tid: 1, ts: begin, dur: time - begin, args: {} });
  for (let i = 0; i < extra; i++) launch(`aten::op_${i}`, `kernel_${i % 500}`, 1 + (i % 7));
  return JSON.stringify({
    schemaVersion: 1,
    deviceProperties: [{ id: 0, name: NAMES.script, numSms: 132, totalGlobalMem: 1 << 30 }],
    traceEvents: events,
    traceName: NAMES.close,
  });
}
