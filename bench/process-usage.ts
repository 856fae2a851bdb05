/** What processes use, as Linux tells it under /proc. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

const TICKS_PER_SECOND = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));
const PAGE_BYTES = Number(execFileSync("getconf", ["PAGESIZE"], { encoding: "utf8" }));

interface ProcessUse {
  readonly parent: number;
  readonly cpuSeconds: number;
  /** of children that have ended and were waited for */
  readonly endedChildrenCpuSeconds: number;
  readonly residentBytes: number;
}

/** Processor seconds that these processes and their descendants have used so far, those that have ended included. */
export function cpuSecondsOf(pids: readonly number[]): number {
  return sumOver(pids, (use) => use.cpuSeconds + use.endedChildrenCpuSeconds);
}

/** Resident memory of these processes and their descendants, in bytes. Shared pages count once for each. */
export function residentBytesOf(pids: readonly number[]): number {
  return sumOver(pids, (use) => use.residentBytes);
}

/** The processes that these have started, those that were started by them, and so on. */
export function descendantsOf(pid: number): number[] {
  return [...withDescendants(readAll(), [pid])].filter((found) => found !== pid);
}

function sumOver(pids: readonly number[], figure: (use: ProcessUse) => number): number {
  const all = readAll();
  return [...withDescendants(all, pids)].reduce((sum, pid) => {
    const use = all.get(pid);
    return use ? sum + figure(use) : sum;
  }, 0);
}

function withDescendants(all: ReadonlyMap<number, ProcessUse>, pids: readonly number[]): Set<number> {
  const wanted = new Set(pids);
  // A child may stand before its parent in the list: until nothing is added any more.
  for (let before = -1; before !== wanted.size; ) {
    before = wanted.size;
    for (const [pid, { parent }] of all) if (wanted.has(parent)) wanted.add(pid);
  }
  return wanted;
}

function readAll(): Map<number, ProcessUse> {
  const uses = new Map<number, ProcessUse>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const use = readUse(Number(name));
    if (use) uses.set(Number(name), use);
  }
  return uses;
}

/** Null where it is gone. */
function readUse(pid: number): ProcessUse | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return null;
  }
  // The program's name stands in brackets and may hold anything; the fields after it are numbered from 3 (proc(5)).
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const field = (number: number) => Number(fields[number - 3]);
  return {
    parent: field(4),
    cpuSeconds: (field(14) + field(15)) / TICKS_PER_SECOND,
    endedChildrenCpuSeconds: (field(16) + field(17)) / TICKS_PER_SECOND,
    residentBytes: field(24) * PAGE_BYTES,
  };
}
