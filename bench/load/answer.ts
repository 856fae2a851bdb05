/** Reads answers of HTTP/1.1 out of the bytes of a connection, with as little work as can be: client and server share cores. */

/** One whole answer. */
export interface HttpAnswer {
  readonly httpStatus: number;
  /** What it says: see `LoadResult.answers`. */
  readonly kind: string;
  /** The server closes the connection after it. */
  readonly closes: boolean;
}

const HEAD_END = Buffer.from("\r\n\r\n");
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");
const STATUS = Buffer.from('"status":"');
const CODE = Buffer.from('"code":"');
const QUOTE = '"'.charCodeAt(0);

/**
 * The answer that these bytes are, or null while they are only its beginning. There is never more than one: requests are
 * not pipelined.
 *
 * @throws Error where they are no answer of HTTP/1.1 with a length, or in chunks
 */
export function readAnswer(bytes: Buffer): HttpAnswer | null {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0) return null;
  const head = bytes.toString("latin1", 0, headEnd);
  if (!head.startsWith("HTTP/1.1 ")) throw new Error(`no answer of HTTP/1.1: ${head.slice(0, 80)}`);
  const bodyStart = headEnd + HEAD_END.length;
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    if (bytes.length < bodyStart + Number(length)) return null;
  } else if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
    // JSON has no bare line ends, so that nothing but the last chunk looks like it.
    if (!bytes.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)) return null;
  } else {
    throw new Error(`an answer without a length: ${head.slice(0, 80)}`);
  }
  const httpStatus = Number(head.slice(9, 12));
  return { httpStatus, kind: kindOf(bytes, bodyStart, httpStatus), closes: /\r\nconnection: *close/i.test(head) };
}

function kindOf(bytes: Buffer, bodyStart: number, httpStatus: number): string {
  const status = quotedAfter(bytes, STATUS, bodyStart);
  if (status) return status;
  const code = quotedAfter(bytes, CODE, bodyStart);
  return code ? `error ${code}` : `http ${httpStatus}`;
}

function quotedAfter(bytes: Buffer, label: Buffer, from: number): string | null {
  const at = bytes.indexOf(label, from);
  if (at < 0) return null;
  const start = at + label.length;
  return bytes.toString("latin1", start, bytes.indexOf(QUOTE, start));
}
