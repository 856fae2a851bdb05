/** The other side of `startProgram`: what each program of this folder does to be started, found and ended. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exitWithParent } from "../src/lifecycle/parent.js";

const END_MS = 10_000;
const HOST = "127.0.0.1";

/** A setting from the environment. @throws Error naming it where it isn't set and there is no default */
export function setting(name: string, byDefault?: string): string {
  const value = process.env[name] || byDefault;
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

/** A whole number of at least `least` from the environment. @throws Error naming it where it is none */
export function wholeNumber(name: string, byDefault: number, least = 1): number {
  const value = Number(setting(name, String(byDefault)));
  if (!Number.isSafeInteger(value) || value < least) throw new Error(`${name} must be a whole number from ${least} on`);
  return value;
}

/** Says that the program is ready, and where it listens. */
export function announceReady(url?: string): void {
  process.stdout.write(`${JSON.stringify({ ready: true, url })}\n`);
}

/** Says what the program has measured. */
export function announceReport(report: object): void {
  process.stdout.write(`${JSON.stringify(report)}\n`);
}

/** Runs `close` at SIGTERM, or when whoever started us is gone, and ends the process: by force where it takes too long. */
export function endInOrder(close: () => Promise<void>): void {
  let ending = false;
  const end = () => {
    if (ending) return;
    ending = true;
    setTimeout(() => process.exit(1), END_MS).unref();
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", end).on("SIGINT", end);
  exitWithParent(end);
}

/** Listens on PORT, or on a free one. */
export async function listen(server: Server): Promise<string> {
  const port = wholeNumber("PORT", 0, 0);
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen({ port, host: HOST }, resolve));
  return `http://${HOST}:${(server.address() as AddressInfo).port}`;
}

/** Answers what is under way, and closes the connections. */
export async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const cut = setTimeout(() => server.closeAllConnections(), END_MS / 5);
  await closed;
  clearTimeout(cut);
}
