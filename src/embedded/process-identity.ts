/**
 * Who a process id belongs to. A pid alone proves nothing: after a crash and a reboot, or in a container where counting
 * starts again, the number soon names somebody else. A pid together with its start time names one process for ever.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** A process that can be told from every other, earlier or later. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, as the operating system says it; only ever compared for equality. */
  readonly startedAt: string;
}

/** The identity of a running process, or null when there is none (a zombie counts as gone). */
export function identify(pid: number): ProcessIdentity | null {
  const startedAt = process.platform === "linux" ? linuxStart(pid) : psStart(pid);
  return startedAt === null ? null : { pid, startedAt };
}

/** Whether exactly this process still runs. */
export function isRunning(process: ProcessIdentity): boolean {
  return identify(process.pid)?.startedAt === process.startedAt;
}

/** The directory a process works in, or null. Both servers work in their own data directory, so this recognizes them. */
export function workingDirectoryOf(pid: number): string | null {
  try {
    if (process.platform === "linux") return readlinkSync(`/proc/${pid}/cwd`);
    const out = execFileSync("lsof", ["-a", "-p", String(pid), "-d", "cwd", "-Fn"], {
      encoding: "utf8",
      stdio: "pipe",
    });
    return /^n(.+)$/m.exec(out)?.[1] ?? null;
  } catch {
    return null;
  }
}

/** One step of asking a process to end: a signal, and how long to wait for it to work. */
export interface EndStep {
  readonly signal: NodeJS.Signals;
  readonly waitMs: number;
}

/**
 * Ends a process that isn't our child, with ever firmer signals. The identity is checked again before each signal.
 *
 * @returns false when it outlived every step
 */
export async function endProcess(target: ProcessIdentity, steps: readonly EndStep[]): Promise<boolean> {
  for (const { signal, waitMs } of steps) {
    if (!isRunning(target)) return true;
    sendSignal(target.pid, signal);
    const deadline = Date.now() + waitMs;
    while (isRunning(target) && Date.now() < deadline) await sleep(50);
  }
  return !isRunning(target);
}

/** Signals a process, or with `group` its whole process group; one that has just gone is no error. */
export function sendSignal(pid: number, signal: NodeJS.Signals, group = false): void {
  try {
    process.kill(group ? -pid : pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

let bootId: string | undefined;

function linuxStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in brackets and may itself hold blanks and brackets: count from the last one.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return null;
    // Field 22 counts clock ticks since boot, so the boot has to be named too.
    bootId ??= readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${bootId}:${fields[19]}`;
  } catch {
    return null;
  }
}

function psStart(pid: number): string | null {
  try {
    const out = execFileSync("ps", ["-o", "stat=,lstart=", "-p", String(pid)], {
      encoding: "utf8",
      stdio: "pipe",
    }).trim();
    return out === "" || out.startsWith("Z") ? null : out.replace(/^\S+\s+/, "");
  } catch {
    return null;
  }
}
