/** Shows the warnings and errors of a log that another process writes, one line of pino's JSON each, without flooding the terminal. */
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";

const EVERY_MS = 200;
const LINES_A_SECOND = 20;
const WARN = 40;

const labels: Record<string, number> = { trace: 10, debug: 20, info: 30, warn: WARN, error: 50, fatal: 60 };

/** Follows a log from its present end on. */
export function followLog(name: string, path: string, say: (line: string) => void): { stop(): void } {
  let position = sizeOf(path);
  let rest = "";
  let decoder = new StringDecoder("utf8");
  let second = 0;
  let shown = 0;
  let hidden = 0;

  const show = (line: string) => {
    const now = Math.floor(Date.now() / 1_000);
    if (now !== second) {
      if (hidden > 0) say(`${name}: ${hidden} more lines in ${path}`);
      second = now;
      shown = 0;
      hidden = 0;
    }
    if (shown++ < LINES_A_SECOND) say(line);
    else hidden++;
  };

  const read = () => {
    const size = sizeOf(path);
    if (size < position) {
      // The log was rotated: a new one begins.
      position = 0;
      rest = "";
      decoder = new StringDecoder("utf8");
    }
    if (size === position) return;
    const chunk = readChunk(path, position, Math.min(size - position, 4 * 1024 * 1024));
    position += chunk.length;
    const lines = (rest + decoder.write(chunk)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const text = worthShowing(line);
      if (text !== null) show(`${name}: ${text}`);
    }
  };

  const timer = setInterval(read, EVERY_MS);
  timer.unref();
  return {
    stop: () => {
      clearInterval(timer);
      read();
      if (hidden > 0) say(`${name}: ${hidden} more lines in ${path}`);
    },
  };
}

/** A log line for people: warnings, errors, and what is no log line at all, such as a crash. Null for the rest. */
export function worthShowing(line: string): string | null {
  if (line.trim() === "") return null;
  let entry: unknown;
  try {
    entry = JSON.parse(line);
  } catch {
    return line;
  }
  if (typeof entry !== "object" || entry === null) return line;
  const { level, msg, err } = entry as { level?: number | string; msg?: string; err?: { message?: string } };
  const rank = typeof level === "string" ? (labels[level] ?? 0) : (level ?? 0);
  if (rank < WARN) return null;
  const cause = err?.message && err.message !== msg ? ` (${err.message})` : "";
  return `${rank >= 50 ? "ERROR" : "WARN"} ${msg ?? line}${cause}`;
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}

function readChunk(path: string, position: number, length: number): Buffer {
  const file = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(length);
    return buffer.subarray(0, readSync(file, buffer, 0, length, position));
  } finally {
    closeSync(file);
  }
}
