import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { beforeAll, expect, it } from "vitest";
import { type Body, readBody } from "../../src/http/read-body.js";
import { atEndOfFile } from "../support/test-file.js";

const AT_MOST = 8;
const bodies: Promise<Body>[] = [];
let port: number;

beforeAll(async () => {
  const server = createServer((req, res) => {
    const reading = readBody(req, AT_MOST);
    bodies.push(reading);
    void reading.then(() => res.end());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  atEndOfFile(() => void server.close().closeAllConnections());
  port = (server.address() as AddressInfo).port;
});

/** What is read of a request that consists of these pieces; its sender goes after the last one, or when it is answered. */
async function readOf(headers: string, pieces: readonly string[], { goes = false } = {}): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  const before = bodies.length;
  socket.write(`POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}\r\n\r\n${pieces.join("")}`);
  while (bodies.length === before) await new Promise((resolve) => setImmediate(resolve));
  if (goes) socket.destroy();
  const body = await bodies[before];
  socket.destroy();
  return body?.kind === "read" ? body.bytes.toString() : (body?.kind ?? "nothing");
}

it.each([
  ["content-length: 0", [], ""],
  ["content-length: 8", ["12345678"], "12345678"],
  ["content-length: 9", [], "tooLarge"],
  ["content-length: 9", ["123456789"], "tooLarge"],
  ["transfer-encoding: chunked", ["4\r\n1234\r\n", "4\r\n5678\r\n", "0\r\n\r\n"], "12345678"],
  ["transfer-encoding: chunked", ["4\r\n1234\r\n", "5\r\n56789\r\n"], "tooLarge"],
] as const)("of a request with %s and %j is read: %j", async (headers, pieces, read) => {
  expect(await readOf(headers, pieces)).toBe(read);
});

it.each(["content-length: 8", "transfer-encoding: chunked"])(
  "that ends in the middle, with %s, is gone",
  async (headers) => {
    expect(await readOf(headers, ["4\r\n1234"], { goes: true })).toBe("gone");
  },
);
