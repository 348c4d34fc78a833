import { deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { Stream } from "../src/data";
import { inflate, unpack } from "../src/decode";

/** Unsigned LEB128, in whole numbers that a double holds. */
function leb(values: number[]): Uint8Array {
  const bytes: number[] = [];
  for (let value of values) {
    while (value >= 128) {
      bytes.push((value % 128) + 128);
      value = Math.floor(value / 128);
    }
    bytes.push(value);
  }
  return Uint8Array.from(bytes);
}

const stream = (bytes: Uint8Array, n: number, as: Stream["as"], at = 0): Stream => ({ at, bytes: bytes.length - at, n, as });

describe("inflate", () => {
  it("reads base64 of a zlib stream", async () => {
    const text = '{"schema":"longpole.report/1"}'.repeat(100);
    expect(new TextDecoder().decode(await inflate(`\n${deflateSync(text).toString("base64")}\n`))).toBe(text);
  });

  it("refuses a stream that was cut", async () => {
    const whole = deflateSync("x".repeat(10_000)).toString("base64");
    await expect(inflate(whole.slice(0, 16))).rejects.toThrow();
  });
});

describe("unpack", () => {
  it("reads numbers beyond 32 bits", () => {
    const values = [0, 1, 127, 128, 16_384, 2 ** 32 + 5, 2 ** 53 - 1];
    const bytes = leb(values);
    expect([...unpack(bytes, stream(bytes, values.length, "varint"))]).toEqual(values);
  });

  it("adds differences up", () => {
    const bytes = leb([10, 0, 5, 2 ** 40]);
    expect([...unpack(bytes, stream(bytes, 4, "delta"))]).toEqual([10, 10, 15, 15 + 2 ** 40]);
  });

  it("begins where the stream does", () => {
    const bytes = leb([99, 7, 8]);
    expect([...unpack(bytes, stream(bytes, 2, "varint", 1))]).toEqual([7, 8]);
  });

  it("refuses streams that point outside, end early or never end", () => {
    const bytes = leb([1, 2, 3]);
    expect(() => unpack(bytes, { at: 1, bytes: 3, n: 1, as: "varint" })).toThrow(RangeError);
    expect(() => unpack(bytes, { at: -1, bytes: 2, n: 1, as: "varint" })).toThrow(RangeError);
    expect(() => unpack(bytes, { at: 0, bytes: 3, n: 4, as: "varint" })).toThrow(RangeError);
    expect(() => unpack(bytes, { at: 0, bytes: 3, n: 1e9, as: "varint" })).toThrow(RangeError);
    const endless = new Uint8Array(20).fill(255);
    expect(() => unpack(endless, stream(endless, 1, "varint"))).toThrow(RangeError);
  });
});
