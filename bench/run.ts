/** `npm run bench`: measures Sluice beside what it is compared with. `--help` says what else there is. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sendSignal } from "../src/embedded/process-identity.js";
import { judgeGoals } from "./goals.js";
import { measureInTurns } from "./in-turns.js";
import { describeMachine, measureBusyness } from "./machine.js";
import { CATALOGUE } from "./measures/catalogue.js";
import { MEASURE_NAMES } from "./names.js";
import { type BenchOptions, HELP, readOptions, UsageError } from "./options.js";
import { descendantsOf } from "./process-usage.js";
import { ENTRANTS } from "./programs.js";
import { renderGoals } from "./report/table.js";
import { checkMarkers, updateReadme, writeReport } from "./report/write.js";
import { breachesOf, type MeasureResult, type Results } from "./results.js";
import { openRunDir, type RunDir } from "./run-dir.js";
import { isBuilt } from "./sluice/start.js";
import { startStores } from "./stores.js";
import type { Bench } from "./trial.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const README = join(ROOT, "README.md");
const INTERRUPTED = new Error("interrupted");
/** From this load on the machine has something else to do. */
const BUSY = 0.7;
const INTERRUPTED_STATUS = 130;
const say = (line: string) => console.log(line);

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  if (!options) {
    process.stdout.write(HELP);
    return 0;
  }
  if (!isBuilt()) throw new UsageError("There is no build to be measured. Run: npm run build");
  // Before an hour of measuring, not after it.
  if (options.readme) checkMarkers(README);
  const runDir = openRunDir();
  const interrupted = endOnSignals(runDir);
  try {
    const results = await run(options, runDir, interrupted);
    const folder = writeReport(join(ROOT, "bench/results"), results);
    if (options.readme) updateReadme(README, results);
    say(`\n${renderGoals(results.goals)}\n\nWritten to ${folder}`);
    const breaches = breachesOf(results.measures);
    for (const breach of breaches) say(`BROKEN  ${breach}`);
    return breaches.length === 0 ? 0 : 1;
  } finally {
    if (!interrupted.aborted) await runDir.clearUp();
  }
}

async function run(options: BenchOptions, runDir: RunDir, interrupted: AbortSignal): Promise<Results> {
  const at = new Date().toISOString();
  const busyBefore = measureBusyness();
  if (busyBefore > BUSY)
    say(`The machine is busy (load ${busyBefore.toFixed(1)}): figures will be lower than they could be.`);
  const { apis, workers, quick, rounds, command } = options;
  const stores = await startStores(runDir);
  const bench: Bench = { stores, runDir, apis, workers, quick, entrants: ENTRANTS, say };
  const measures: MeasureResult[] = [];
  for (const name of options.measures) {
    measures.push(await measureInTurns(bench, CATALOGUE[name], rounds, interrupted));
  }
  await stores.stop();
  const full = !quick && options.measures.length === MEASURE_NAMES.length;
  return {
    at,
    command,
    full,
    rounds,
    machine: describeMachine(stores.versions(), busyBefore),
    measures,
    goals: judgeGoals(measures),
  };
}

/** Ends everything that was started, and then us, at the first Ctrl-C. */
function endOnSignals(runDir: RunDir): AbortSignal {
  const interrupted = new AbortController();
  const end = () => {
    if (interrupted.signal.aborted) return;
    interrupted.abort(INTERRUPTED);
    say("Interrupted: ending what was started.");
    for (const pid of descendantsOf(process.pid)) {
      if (pid !== runDir.wardenPid) sendSignal(pid, "SIGKILL");
    }
    void runDir.clearUp().then(() => process.exit(INTERRUPTED_STATUS));
  };
  process.on("SIGINT", end).on("SIGTERM", end);
  return interrupted.signal;
}

main().then(
  (status) => {
    process.exitCode = status;
  },
  (error: Error) => {
    // Whoever ends what was started also ends us.
    if (error === INTERRUPTED) return;
    console.error(error instanceof UsageError ? error.message : error.stack);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  },
);
