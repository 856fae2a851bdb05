import { createServer, connect as dial, type Socket } from "node:net";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.js";
import { atEndOfFile } from "./test-file.js";
import { waitFor } from "./wait.js";

let proxy: TcpProxy;
let serverPort: number;
/** What the server has heard, over all connections. */
let heard = "";

beforeAll(async () => {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      heard += chunk;
      socket.write(chunk);
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  atEndOfFile(() => server.close());
  serverPort = (server.address() as { port: number }).port;
  proxy = await startTcpProxy(`tcp://127.0.0.1:${serverPort}`);
});

afterEach(() => proxy.heal());

async function connect(port = proxy.port) {
  const socket: Socket = dial(port, "127.0.0.1");
  const state = { received: "", closed: false };
  socket.on("error", () => {});
  socket.on("data", (chunk) => {
    state.received += chunk;
  });
  socket.on("close", () => {
    state.closed = true;
  });
  atEndOfFile(() => socket.destroy());
  return { send: (text: string) => void socket.write(text), state };
}

const until = (probe: () => boolean, what: string) => waitFor(probe, { what });

describe("a TCP proxy", () => {
  it("is transparent by itself, and counts", async () => {
    const { send, state } = await connect();
    const long = "x".repeat(3_000_000);
    send(long);
    await until(() => state.received === long, "the whole echo");
    expect(proxy.connections).toBe(1);
  });

  it("cut: resets what is open, and what comes, until healed", async () => {
    const first = await connect();
    first.send("a");
    await until(() => first.state.received === "a", "the echo");
    proxy.cut();
    await until(() => first.state.closed, "the reset");
    const second = await connect();
    await until(() => second.state.closed, "the reset of a new connection");
    proxy.heal();
    const third = await connect();
    third.send("c");
    await until(() => third.state.received === "c", "the echo after healing");
    proxy.cut({ once: true });
    await until(() => third.state.closed, "the single reset");
    const fourth = await connect();
    fourth.send("d");
    await until(() => fourth.state.received === "d", "the echo of a connection made after a single reset");
  });

  it("swallowReplies: the server has done it, the client never learns, the connection is not used again", async () => {
    const { send, state } = await connect();
    proxy.swallowReplies();
    send("one unit, please");
    await until(() => proxy.swallowedBytes > 0, "the reply to be lost");
    expect(heard).toMatch(/one unit, please$/);
    proxy.heal();
    await until(() => state.closed, "the reset");
    expect(state.received).toBe("");
  });

  it("blackhole: nothing arrives before it heals, everything after", async () => {
    const open = await connect();
    open.send("1");
    await until(() => open.state.received === "1", "the echo");
    proxy.blackhole();
    heard = "";
    open.send("2");
    const fresh = await connect();
    fresh.send("3");
    // What goes around the proxy, sent later and there and back again many times, overtakes what is in it.
    const direct = await connect(serverPort);
    for (let trip = 1; trip <= 20; trip += 1) {
      direct.send("d");
      await until(() => direct.state.received.length === trip, "the direct echo");
    }
    expect(heard).toBe("d".repeat(20));
    expect([open.state.closed, fresh.state.closed]).toEqual([false, false]);
    proxy.heal();
    await until(() => open.state.received === "12" && fresh.state.received === "3", "both late echoes");
  });

  it("delay: later in both directions, still in order", async () => {
    const { send, state } = await connect();
    proxy.delay(40);
    const sent = performance.now();
    send("slow ");
    await until(() => heard.endsWith("slow "), "the server to hear it");
    proxy.delay(0);
    send("fast");
    await until(() => state.received === "slow fast", "both echoes");
    expect(performance.now() - sent).toBeGreaterThanOrEqual(38);
  });

  it("redirect: open connections are reset, and new ones lead to the other server", async () => {
    const other = createServer((socket) => socket.end("the other one"));
    await new Promise<void>((listening) => other.listen(0, "127.0.0.1", listening));
    const { port } = other.address() as { port: number };
    const { state } = await connect();
    proxy.redirect(`tcp://127.0.0.1:${port}`);
    await until(() => state.closed, "the reset");
    const fresh = await connect();
    await until(() => fresh.state.received === "the other one", "the other server's word");
    proxy.redirect(`tcp://127.0.0.1:${serverPort}`);
    other.close();
  });
});
