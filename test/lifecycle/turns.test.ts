import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { takeTurns } from "../../src/lifecycle/turns.js";

/** Answers every byte with one: what a database is to a transaction that waits for it. */
const echo = createServer((socket) => socket.pipe(socket));
let socket: Socket;

beforeAll(async () => {
  echo.listen(0, "127.0.0.1");
  await once(echo, "listening");
  const { port } = echo.address() as { port: number };
  socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
});

afterAll(() => {
  socket.destroy();
  echo.close();
});

/** Begins 200 works of a millisecond each. Resolves with how many had begun when the third reply of the echo was read. */
async function begunBeforeReplies(turn: () => Promise<void>): Promise<number> {
  let begun = 0;
  const works = Array.from({ length: 200 }, async () => {
    await turn();
    begun += 1;
    const until = performance.now() + 1;
    while (performance.now() < until);
  });
  for (let reply = 0; reply < 3; reply += 1) {
    socket.write("x");
    await once(socket, "data");
  }
  const before = begun;
  await Promise.all(works);
  expect(begun).toBe(200);
  return before;
}

test("replies are read between the works of a crowd, and not after all of them", async () => {
  // Left alone, all of them begin at once: the test can see.
  expect(await begunBeforeReplies(() => Promise.resolve())).toBe(200);
  expect(await begunBeforeReplies(takeTurns())).toBeLessThan(100);
});

test("who came first begins first, also over many turns", async () => {
  const turn = takeTurns();
  const order: number[] = [];
  await Promise.all(Array.from({ length: 50 }, (_, at) => turn().then(() => order.push(at))));
  expect(order).toEqual(Array.from({ length: 50 }, (_, at) => at));
  // And again after it has come to rest.
  await turn();
});
