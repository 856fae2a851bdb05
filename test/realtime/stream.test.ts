import { describe, expect, it } from "vitest";
import { createStream, type StreamControls } from "../../src/realtime/stream.js";

/** A stream whose producer is this test. */
function streamOf() {
  const started: StreamControls<number>[] = [];
  const state = { stops: 0 };
  const stream = createStream<number>((controls) => {
    started.push(controls);
    return () => {
      state.stops += 1;
    };
  });
  const producer = async () => {
    await expect.poll(() => started.length).toBe(1);
    return started[0] as StreamControls<number>;
  };
  return { stream, started, state, producer };
}

const DONE = { done: true, value: undefined };

describe("a stream", () => {
  it("starts at the first read, once, and hands over what is pushed", async () => {
    const { stream, started, producer } = streamOf();
    await Promise.resolve();
    expect(started).toHaveLength(0);
    const first = stream.next();
    (await producer()).push(1);
    expect(await first).toEqual({ done: false, value: 1 });
    const second = stream.next();
    (await producer()).push(2);
    expect(await second).toEqual({ done: false, value: 2 });
    expect(started).toHaveLength(1);
    await stream.return?.();
  });

  it("keeps only the latest of what nobody has read", async () => {
    const { stream, producer } = streamOf();
    const first = stream.next();
    const { push } = await producer();
    for (const value of [1, 2, 3, 4]) push(value);
    expect((await first).value).toBe(1);
    expect((await stream.next()).value).toBe(4);
    await stream.return?.();
  });

  it("answers a read that waits, and stops its producer, when it is closed from outside", async () => {
    const { stream, state, producer } = streamOf();
    const waiting = stream.next();
    const { push } = await producer();
    expect(await stream.return?.()).toEqual(DONE);
    expect(await waiting).toEqual(DONE);
    await expect.poll(() => state.stops).toBe(1);
    push(1);
    expect(await stream.next()).toEqual(DONE);
    await stream.return?.();
    expect(state.stops).toBe(1);
  });

  it("never starts where it was closed before it was read", async () => {
    const { stream, started } = streamOf();
    await stream.return?.();
    expect(await stream.next()).toEqual(DONE);
    expect(started).toHaveLength(0);
  });

  it("stops a producer that is still starting when it is closed", async () => {
    let ready: () => void = () => {};
    let stops = 0;
    const stream = createStream<number>(async () => {
      await new Promise<void>((resolve) => {
        ready = resolve;
      });
      return () => {
        stops += 1;
      };
    });
    const waiting = stream.next();
    await Promise.resolve();
    await stream.return?.();
    expect(await waiting).toEqual(DONE);
    ready();
    await expect.poll(() => stops).toBe(1);
  });

  it("ends after what was pushed", async () => {
    const { stream, state, producer } = streamOf();
    const first = stream.next();
    const { push, finish } = await producer();
    push(1);
    push(2);
    finish();
    push(3);
    expect((await first).value).toBe(1);
    expect((await stream.next()).value).toBe(2);
    expect(await stream.next()).toEqual(DONE);
    await expect.poll(() => state.stops).toBe(1);
  });

  it("fails once, after what was pushed, and stops its producer", async () => {
    const { stream, state, producer } = streamOf();
    const first = stream.next();
    const { push, fail, finish } = await producer();
    push(1);
    push(2);
    fail(new Error("no more"));
    finish();
    expect((await first).value).toBe(1);
    expect((await stream.next()).value).toBe(2);
    await expect(stream.next()).rejects.toThrow("no more");
    expect(await stream.next()).toEqual(DONE);
    await expect.poll(() => state.stops).toBe(1);
  });

  it("fails the read that waits", async () => {
    const { stream, producer } = streamOf();
    const waiting = stream.next();
    (await producer()).fail(new Error("no more"));
    await expect(waiting).rejects.toThrow("no more");
  });

  for (const [how, start] of Object.entries({
    rejects: () => Promise.reject(new Error("can't start")),
    throws: () => {
      throw new Error("can't start");
    },
  })) {
    it(`whose start ${how} fails at the first read and is over`, async () => {
      const stream = createStream<number>(start);
      await expect(stream.next()).rejects.toThrow("can't start");
      expect(await stream.next()).toEqual(DONE);
    });
  }

  it("answers every one of several reads at once", async () => {
    const { stream, producer } = streamOf();
    const reads = [stream.next(), stream.next(), stream.next()];
    const { push, finish } = await producer();
    push(1);
    push(2);
    finish();
    expect(await Promise.all(reads)).toEqual([{ done: false, value: 1 }, { done: false, value: 2 }, DONE]);
    const more = streamOf();
    const waiting = [more.stream.next(), more.stream.next()];
    await more.stream.return?.();
    expect(await Promise.all(waiting)).toEqual([DONE, DONE]);
  });

  it("can be read with for await, and stops when the reader leaves", async () => {
    const { stream, state, producer } = streamOf();
    void producer().then(({ push }) => push(7));
    for await (const value of stream) {
      expect(value).toBe(7);
      break;
    }
    await expect.poll(() => state.stops).toBe(1);
  });
});
