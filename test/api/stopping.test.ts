/** Whoever has been heard is answered, also by a process that is told to stop or loses its primary. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { beforeEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { type Api, prepareSluice, type TestSluice } from "../support/sluice.js";
import { waitFor } from "../support/wait.js";

let sluice: TestSluice;

beforeEach(async () => {
  sluice ??= await prepareSluice();
});

const BODY = JSON.stringify({ query: "{ serverTime sales { edges { node { id } } } }" });
const REQUEST = [
  "POST /graphql HTTP/1.1",
  "host: localhost",
  "content-type: application/json",
  `content-length: ${Buffer.byteLength(BODY)}`,
  "",
  BODY,
].join("\r\n");

/** What a slow machine needs for a hundred answers of a process that has just started. */
const PATIENT = { SLUICE_TUNING: JSON.stringify({ drainMs: 50_000 }) };

/** Connections that the system has taken, whether the process has looked at them or not. */
async function openConnections({ url }: Api, count: number): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect(Number(new URL(url).port), "127.0.0.1"));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  return sockets;
}

/** Sends a request over each of them. Resolves, once all connections are over, with how many were answered in full. */
async function answered(sockets: readonly Socket[], afterwards: () => void): Promise<number> {
  const answers = sockets.map(async (socket) => {
    let text = "";
    socket.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    socket.on("error", () => {});
    socket.write(REQUEST);
    await new Promise((over) => socket.once("close", over));
    return text.startsWith("HTTP/1.1 ") && text.trimEnd().endsWith("}");
  });
  afterwards();
  return (await Promise.all(answers)).filter(Boolean).length;
}

test("at SIGTERM everybody who has connected and sent a request gets an answer", async () => {
  const api = await sluice.startApi(PATIENT);
  const sockets = await openConnections(api, 100);
  expect(await answered(sockets, () => api.kill("SIGTERM"))).toBe(100);
  expect((await api.exited).code).toBe(0);
}, 120_000);

test("at SIGTERM every operation of a WebSocket is answered, those too that wait for their turn", async () => {
  const api = await sluice.startApi(PATIENT);
  const ids = Array.from({ length: 90 }, (_, at) => `operation-${at}`);
  const told = new Set<string>();
  const socket = new WebSocket(`${api.url.replace("http", "ws")}/graphql`, "graphql-transport-ws");
  await once(socket, "open");
  socket.send(JSON.stringify({ type: "connection_init" }));
  await once(socket, "message");
  socket.on("message", (data) => {
    const { type, id } = JSON.parse(String(data)) as { type: string; id: string };
    if (type === "next" || type === "error") told.add(id);
  });
  for (const id of ids) {
    socket.send(JSON.stringify({ type: "subscribe", id, payload: { query: "{ serverTime }" } }));
  }
  // The first answers are there, the others wait: now.
  await waitFor(() => told.size > 0, { what: "an answer" });
  api.kill("SIGTERM");
  await once(socket, "close");
  expect([...ids].filter((id) => !told.has(id))).toEqual([]);
});

test("when the primary is killed its processes answer what they have heard, and end", async () => {
  const api = await sluice.startApi({ ...PATIENT, WEB_CONCURRENCY: "2" });
  const sockets = await openConnections(api, 40);
  // One answer each: from now on they are connections of the processes, and not of the primary.
  const first = sockets.map((socket) => once(socket, "data"));
  for (const socket of sockets) socket.write(REQUEST);
  await Promise.all(first);
  for (const socket of sockets) socket.removeAllListeners("data");
  expect(await answered(sockets, () => api.kill("SIGKILL"))).toBe(40);
});
