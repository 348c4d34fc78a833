/** The page's two texts, and numbers out of the packed bytes. */
import type { Stream } from "./data";

/** Bytes of a text that is base64 of a zlib stream. */
export async function inflate(base64: string): Promise<Uint8Array> {
  const text = atob(base64.trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The values of a stream. Throws when it points outside of the bytes or holds fewer or other numbers than it says. */
export function unpack(bytes: Uint8Array, stream: Stream): Float64Array {
  const { at, n } = stream;
  const end = at + stream.bytes;
  if (!(at >= 0 && end <= bytes.length && n >= 0 && n <= stream.bytes)) throw new RangeError("a stream lies outside of the page's bytes");
  const delta = stream.as === "delta";
  const values = new Float64Array(n);
  let before = 0;
  let cursor = at;
  for (let i = 0; i < n; i++) {
    let value = 0;
    let scale = 1;
    for (;;) {
      if (cursor >= end || scale > 2 ** 56) throw new RangeError("a stream of the page is damaged");
      const byte = bytes[cursor++] as number;
      // Not by shifts: times pass 32 bits.
      value += (byte & 127) * scale;
      if (byte < 128) break;
      scale *= 128;
    }
    before = delta ? before + value : value;
    values[i] = before;
  }
  return values;
}
