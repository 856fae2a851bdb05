import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { createBuyerMask, logRarely } from "../../src/observability/logger.js";

function capture() {
  const lines: Record<string, unknown>[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  return { lines, log: pino(stream) };
}

test("a buyer has one name in the logs of all processes that share a secret, and it doesn't tell who he is", () => {
  const [api, worker, elsewhere] = ["a", "a", "b"].map((secret) => createBuyerMask(secret.repeat(32)));
  expect(api?.("alice")).toBe(worker?.("alice"));
  expect(api?.("alice")).not.toBe(elsewhere?.("alice"));
  expect(api?.("alice")).not.toBe(api?.("bob"));
  expect(api?.("alice")).toMatch(/^b_[\w-]{12}$/);
});

test("what fails thousands of times is told once a while, with how often it was left out", () => {
  const { lines, log } = capture();
  const rarely = logRarely(log, 0);
  const never = logRarely(log, 60_000);
  for (let call = 0; call < 1_000; call += 1) never("warn", { call }, "the same");
  never("error", {}, "another");
  rarely("warn", { call: 1 }, "each");
  rarely("warn", { call: 2 }, "each");
  expect(lines.map(({ msg }) => msg)).toEqual(["the same", "another", "each", "each"]);
  expect(lines[0]).toMatchObject({ call: 0 });
});
