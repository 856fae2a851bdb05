/** `npm run --silent sluice -- <command>`: what operators do. The commands are in operate/program.ts; see docs/operating.md. */
import { loadConfig } from "../config.js";
import { runLine } from "./operate/run-line.js";

const LINGER_MS = 100;
const { stdout, stderr } = process;

// Whoever reads along may have seen enough.
for (const stream of [stdout, stderr]) stream.on("error", () => {});

process.exitCode = await runLine(process.argv.slice(2), {
  config: () => loadConfig(undefined, { servesCallers: false }),
  out: (text) => void stdout.write(text),
  err: (text) => void stderr.write(text),
});
// What a store that is away still keeps open must not keep the operator.
stdout.write("", () => setTimeout(() => process.exit(), LINGER_MS).unref());
