import { writeSync } from "node:fs";

/** Named moments at which a drill may end or freeze the process. */
export const FAILPOINTS = [
  "reserve.after_script",
  "journal.before_commit",
  "journal.after_commit",
  "write.after_stock",
  "write.after_commit",
  "load.after_epoch",
  "load.after_chunk",
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

const SIGNALS = { kill: "SIGKILL", freeze: "SIGSTOP" } as const;
export type FailpointAction = keyof typeof SIGNALS;

let armed: ReadonlyMap<Failpoint, FailpointAction> | null = null;

/** Arms failpoints for this process; each goes off the first time it is passed. */
export function armFailpoints(points: ReadonlyMap<Failpoint, FailpointAction>): void {
  if (points.size > 0) armed = points;
}

/** Marks a moment. Costs one comparison while nothing is armed. */
export function failpoint(name: Failpoint): void {
  if (armed !== null) goOff(name);
}

function goOff(name: Failpoint): void {
  const action = armed?.get(name);
  if (!action) return;
  armed = new Map([...(armed ?? [])].filter(([other]) => other !== name));
  // Written at once: a killed process flushes nothing.
  writeSync(2, `failpoint ${name}: ${action}\n`);
  process.kill(process.pid, SIGNALS[action]);
}

/** Reads `name=kill,name=freeze`. @throws Error that names what is wrong */
export function parseFailpoints(text: string): Map<Failpoint, FailpointAction> {
  const entries = text
    .split(",")
    .map((entry) => entry.trim())
    .filter(Boolean);
  return new Map(
    entries.map((entry) => {
      const [name = "", ...rest] = entry.split("=");
      const action = rest.join("=");
      if (!isFailpoint(name)) throw new Error(`there is no failpoint ${name}`);
      if (!isAction(action)) throw new Error(`a failpoint can kill or freeze, not ${action || "nothing"}`);
      return [name, action];
    }),
  );
}

function isFailpoint(name: string): name is Failpoint {
  return (FAILPOINTS as readonly string[]).includes(name);
}

function isAction(action: string): action is FailpointAction {
  return Object.hasOwn(SIGNALS, action);
}
