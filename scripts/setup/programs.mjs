/** The programs that the setup runs. They end with it. */
import { spawn } from "node:child_process";

/** npm, in the middle of its work, heeds no signal for longer than anybody waits; what it leaves is cleared by the next. */
const END_DEADLINE_MS = 2_000;

const running = new Set();
let ending = false;
process.once("exit", () => {
  for (const program of running) program.kill();
});

/** Runs a program and keeps what it printed. */
export function run(command, args, options) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
    let output = "";
    const keep = (chunk) => {
      output = (output + chunk).slice(-64 * 1024);
    };
    running.add(child);
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    child.on("error", (error) => resolve({ code: -1, output: error.message }));
    child.on("close", (code) => {
      running.delete(child);
      // Who was interrupted doesn't go on to the next step.
      if (!ending) resolve({ code, output });
    });
  });
}

/**
 * Ends what runs, and resolves when it is gone. An interrupted npm takes back for seconds what it has begun: left alone, it
 * emptied the node_modules of the next start.
 */
export async function endPrograms() {
  ending = true;
  const ends = [...running].map(async (program) => {
    const gone = new Promise((resolve) => program.once("close", resolve));
    const timer = setTimeout(() => program.kill("SIGKILL"), END_DEADLINE_MS);
    program.kill();
    await gone;
    clearTimeout(timer);
  });
  await Promise.all(ends);
}
