import { type Bar, MultiBar } from "cli-progress";
import { SECOND } from "../../domain/time.js";
import { grouped } from "./text.js";

/** How far a storm has come. */
export interface Numbers {
  readonly accepted: number;
  readonly soldOut: number;
  readonly inLine: number;
  readonly written: number;
  readonly paid: number;
  readonly cameBack: number;
}

/** Shows numbers as they grow. */
export interface Progress {
  show(numbers: Numbers): void;
  /** A line of its own, above what moves. */
  note(line: string): void;
  /** Shows the last numbers and gives the terminal back. */
  stop(): void;
}

const LABELS = {
  accepted: "accepted",
  soldOut: "sold out",
  inLine: "in line",
  written: "written",
  paid: "paid",
  cameBack: "came back",
} as const;
const NAMES = Object.keys(LABELS) as (keyof Numbers)[];
/** What fits into the eighty columns of a line: who is in line is accepted and not yet written. */
const NAMES_OF_A_LINE = NAMES.filter((name) => name !== "inLine");

/** Bars on a terminal, a line a second anywhere else. `full` is where each bar ends. */
export function showProgress(stream: NodeJS.WriteStream, full: Numbers): Progress {
  return stream.isTTY ? showBars(stream, full) : showLines(stream);
}

/** For where nothing may be printed. */
export const noProgress: Progress = { show() {}, note() {}, stop() {} };

function showBars(stream: NodeJS.WriteStream, full: Numbers): Progress {
  const bars = new MultiBar({
    stream,
    format: "  {label}  {bar}  {count}",
    barCompleteChar: "█",
    barIncompleteChar: "░",
    barsize: 50,
    hideCursor: true,
    emptyOnZero: true,
    // A note moves the bars down, also those that have not changed.
    forceRedraw: true,
  });
  const payload = (name: keyof Numbers, value: number) => ({
    label: LABELS[name].padEnd(9),
    count: grouped(value).padStart(7),
  });
  const byName = Object.fromEntries(
    NAMES.map((name) => [name, bars.create(full[name], 0, payload(name, 0))]),
  ) as Record<keyof Numbers, Bar>;
  return {
    show(numbers) {
      for (const name of NAMES) byName[name].update(Math.min(full[name], numbers[name]), payload(name, numbers[name]));
    },
    note: (line) => bars.log(`${line}\n`),
    stop() {
      if (bars.isActive) bars.stop();
    },
  };
}

function showLines(stream: NodeJS.WritableStream): Progress {
  const startedAt = performance.now();
  let latest: Numbers | null = null;
  const print = () => {
    if (!latest) return;
    const seconds = `${((performance.now() - startedAt) / SECOND).toFixed(0)} s`;
    const counts = NAMES_OF_A_LINE.map((name) => `${LABELS[name]} ${grouped(latest?.[name] ?? 0)}`);
    stream.write(`  ${[seconds.padStart(5), ...counts].join("  ")}\n`);
  };
  let timer: NodeJS.Timeout | null = setInterval(print, SECOND);
  return {
    show(numbers) {
      latest = numbers;
    },
    note: (line) => void stream.write(`${line}\n`),
    stop() {
      if (!timer) return;
      clearInterval(timer);
      timer = null;
      print();
    },
  };
}
