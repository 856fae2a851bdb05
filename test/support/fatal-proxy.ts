import { connect, createServer } from "node:net";
import { atEndOfFile } from "./test-file.js";

const field = (kind: string, value: string) => Buffer.from(`${kind}${value}\0`);
const body = Buffer.concat([
  field("S", "FATAL"),
  field("V", "FATAL"),
  field("C", "57P01"),
  field("M", "terminating connection due to administrator command"),
  Buffer.from([0]),
]);
const length = Buffer.alloc(4);
length.writeInt32BE(body.length + 4);
const FATAL = Buffer.concat([Buffer.from("E"), length, body]);
/** ReadyForQuery, no transaction open. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

/**
 * Stands in front of PostgreSQL. Armed, it ends every connection at the worst moment there is: in the same packet that
 * says that the connection is ready, before whoever waits for it could begin to listen for its end.
 */
export async function startFatalProxy(target: string) {
  const { hostname, port } = new URL(target);
  const state = { armed: false, ended: 0 };
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    client.on("data", (data) => upstream.write(data));
    client.on("close", () => upstream.destroy()).on("error", () => upstream.destroy());
    upstream.on("close", () => client.destroy()).on("error", () => client.destroy());
    upstream.on("data", (data: Buffer) => {
      if (!state.armed || !data.subarray(-READY.length).equals(READY)) return client.write(data);
      state.ended += 1;
      return client.end(Buffer.concat([data, FATAL]));
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  atEndOfFile(() => server.close());
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as { port: number }).port);
  return { url: url.href, state };
}
