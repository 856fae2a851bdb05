import { connect, type Socket } from "node:net";
import { type HttpAnswer, readAnswer } from "./answer.js";

/** A connection that is kept open and carries one request at a time. */
export interface Connection {
  /** Sends a request; `onAnswer` is called once for it. @throws Error while another one is under way */
  send(request: Buffer): void;
  close(): void;
}

export interface ConnectionOptions {
  readonly host: string;
  readonly port: number;
  /** null where the connection was lost before the answer had come */
  onAnswer(answer: HttpAnswer | null): void;
  onOpened(): void;
  /** What the server sends is no HTTP, or it can't be reached at all. */
  onBroken(error: Error): void;
}

const READ_BYTES = 64 * 1_024;
const AGAIN_MS = 20;
/** Refused this often in a row, the server is gone. */
const REFUSALS_AT_MOST = 100;

/** Connects, and does so again whenever the connection is closed. */
export function openConnection(options: ConnectionOptions): Connection {
  const { host, port } = options;
  let socket: Socket;
  let waiting = false;
  let unsent: Buffer | null = null;
  let kept: Buffer | null = null;
  let open = false;
  let closed = false;
  let refusals = 0;

  const onBytes = (fresh: Buffer) => {
    const bytes = kept ? Buffer.concat([kept, fresh]) : fresh;
    const answer = readAnswer(bytes);
    if (!answer) {
      // What it is in is used again for what comes next.
      kept = kept ? bytes : Buffer.from(bytes);
      return;
    }
    kept = null;
    waiting = false;
    if (answer.closes) {
      open = false;
      socket.end();
    }
    options.onAnswer(answer);
  };

  const start = () => {
    // One buffer for all that comes: a new one for each answer was a tenth of the generator's time.
    const onread = {
      buffer: Buffer.allocUnsafe(READ_BYTES),
      callback: (bytesRead: number, buffer: Uint8Array) => {
        try {
          onBytes((buffer as Buffer).subarray(0, bytesRead));
        } catch (error) {
          options.onBroken(error as Error);
        }
        return true;
      },
    };
    socket = connect({ host, port, noDelay: true, onread });
    socket.once("connect", () => {
      open = true;
      refusals = 0;
      options.onOpened();
      if (unsent) socket.write(unsent);
      unsent = null;
    });
    socket.on("error", () => {}); // "close" follows
    socket.once("close", () => {
      if (closed) return;
      const lost = waiting && unsent === null;
      open = false;
      kept = null;
      refusals += 1;
      if (refusals > REFUSALS_AT_MOST) return options.onBroken(new Error(`${host}:${port} can't be reached`));
      setTimeout(start, refusals > 1 ? AGAIN_MS : 0);
      if (!lost) return;
      waiting = false;
      options.onAnswer(null);
    });
  };
  start();

  return {
    send(request) {
      if (waiting) throw new Error("a request is under way on this connection");
      waiting = true;
      if (open) socket.write(request);
      else unsent = request;
    },
    close() {
      closed = true;
      socket.destroy();
    },
  };
}
