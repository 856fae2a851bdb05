import { writeSync } from "node:fs";
import { pause } from "./pause.js";

/**
 * Named moments at which a drill may hurt the process: one on either side of each step between two stores, in the order in
 * which a request passes them.
 */
export const FAILPOINTS = [
  "reserve.before_script",
  "reserve.after_script",
  "journal.before_commit",
  "journal.after_commit",
  "journal.before_enqueue",
  "journal.after_enqueue",
  "write.before_begin",
  "write.after_stock",
  "write.before_commit",
  "write.after_commit",
  "write.before_confirm",
  "write.before_ack",
  "order.after_stock",
  "order.after_commit",
  "relay.before_mark",
  "forward.after_remove",
  "forward.after_add",
  "bury.after_commit",
  "replay.after_commit",
  "replay.after_remove",
  "compensate.before_commit",
  "compensate.after_commit",
  "load.after_epoch",
  "load.after_chunk",
  "load.before_ready",
] as const;
export type Failpoint = (typeof FAILPOINTS)[number];

const SIGNALS = { kill: "SIGKILL", freeze: "SIGSTOP" } as const;

/** What a failpoint does, and when. */
export interface FailpointPlan {
  /** `error` throws one there that is named after the point; a number delays what is under way by so many milliseconds */
  readonly action: keyof typeof SIGNALS | "error" | number;
  /** which passage is the first that it goes off at, counted from 1 */
  readonly at: number;
  /** whether it goes off at every later passage, too, or once */
  readonly again: boolean;
}

/**
 * Whether anything is armed here. Ask it before each failpoint, so that a process without a drill pays one comparison and
 * not even a microtask: `if (drilling) await failpoint("write.before_ack");`
 */
export let drilling = false;

let plans: ReadonlyMap<Failpoint, FailpointPlan> = new Map();
const passed = new Map<Failpoint, number>();

/** Arms these failpoints for this process, in place of those before. */
export function armFailpoints(points: ReadonlyMap<Failpoint, FailpointPlan>): void {
  plans = points;
  passed.clear();
  drilling = points.size > 0;
}

/** Passes a named moment. @throws Error where a drill wants one */
export async function failpoint(name: Failpoint): Promise<void> {
  const plan = plans.get(name);
  if (!plan) return;
  const passage = (passed.get(name) ?? 0) + 1;
  passed.set(name, passage);
  if (plan.again ? passage < plan.at : passage !== plan.at) return;
  const { action } = plan;
  // Written at once: a killed process flushes nothing.
  writeSync(2, `failpoint ${name}: ${typeof action === "number" ? `delay:${action}` : action}\n`);
  if (typeof action === "number") await pause(action);
  else if (action === "error") throw Object.assign(new Error(`failpoint ${name}`), { name });
  else process.kill(process.pid, SIGNALS[action]);
}

const PLAN = /^(kill|freeze|error|delay:(\d{1,6}))(?:@([1-9]\d{0,8}))?(\*)?$/;

/**
 * Reads `name=action`, several with commas between them. An action is `kill`, `freeze`, `error` or `delay:<milliseconds>`; with
 * `@<n>` behind it the point goes off when it is passed for the nth time instead of the first, with `*` from then on every
 * time instead of once. @throws Error that names what is wrong
 */
export function parseFailpoints(text: string): Map<Failpoint, FailpointPlan> {
  const points = new Map<Failpoint, FailpointPlan>();
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (!entry) continue;
    const [name = "", ...rest] = entry.split("=");
    if (!isFailpoint(name)) throw new Error(`there is no failpoint ${name}`);
    if (points.has(name)) throw new Error(`the failpoint ${name} is armed twice`);
    points.set(name, parsePlan(rest.join("=")));
  }
  return points;
}

function parsePlan(text: string): FailpointPlan {
  const [matches, action, delayMs, at = "1", again] = PLAN.exec(text) ?? [];
  if (!matches) {
    throw new Error(
      `a failpoint can kill, freeze, error or delay:<ms>, with @<n> or * behind it, not ${text || "nothing"}`,
    );
  }
  return {
    action: delayMs === undefined ? (action as Exclude<FailpointPlan["action"], number>) : Number(delayMs),
    at: Number(at),
    again: again !== undefined,
  };
}

function isFailpoint(name: string): name is Failpoint {
  return (FAILPOINTS as readonly string[]).includes(name);
}
