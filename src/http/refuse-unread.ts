import type { IncomingMessage, ServerResponse } from "node:http";
import { SECOND } from "../domain/time.js";
import { orWhenLate } from "../lifecycle/pause.js";

/** How long a sender whose body was not read may take to see why, before the connection ends. */
const LINGER_MS = SECOND / 2;

/**
 * 413, and the end of the connection: nobody reads on. It ends a moment after the answer: ended at once, with bytes unread,
 * it is reset by the system, and of 15 senders of 8 MB 11 heard of that instead.
 */
export async function refuseUnread(req: IncomingMessage, res: ServerResponse, body: object): Promise<void> {
  const text = JSON.stringify(body);
  res.writeHead(413, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    connection: "close",
  });
  res.write(text);
  const gone = new Promise<void>((resolve) => req.socket.once("close", () => resolve()));
  await orWhenLate(gone, LINGER_MS, () => {});
  req.socket.destroy();
}
