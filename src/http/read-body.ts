import type { IncomingMessage } from "node:http";

/** A request's body; or that it is larger than it may be, of which the rest is left unread; or that its sender has gone. */
export type Body =
  | { readonly kind: "read"; readonly bytes: Buffer }
  | { readonly kind: "tooLarge" }
  | { readonly kind: "gone" };

/** Reads a body as it came, at most `atMost` bytes of it. Never rejects. */
export function readBody(req: IncomingMessage, atMost: number): Promise<Body> {
  if (Number(req.headers["content-length"]) > atMost) return Promise.resolve({ kind: "tooLarge" });
  return new Promise((settle) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const done = (body: Body) => {
      req.off("data", onData).off("end", onEnd).off("close", onGone);
      settle(body);
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size <= atMost) return void chunks.push(chunk);
      req.pause();
      done({ kind: "tooLarge" });
    };
    const onEnd = () => done({ kind: "read", bytes: Buffer.concat(chunks) });
    const onGone = () => done({ kind: "gone" });
    req.on("data", onData).once("end", onEnd).once("close", onGone);
  });
}
