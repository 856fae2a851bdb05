import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { RunDir } from "../run-dir.js";
import type { FromGenerator, LoadPlan, LoadResult, ToGenerator } from "./plan.js";

/**
 * Runs a plan in a process of its own, which has signed its tokens and built its requests before it sends the first.
 * @param onCounting called when the warm-up is over
 */
export async function generateLoad(
  runDir: Pick<RunDir, "endWithRun">,
  plan: LoadPlan,
  onCounting: () => void = () => {},
): Promise<LoadResult> {
  const program = fileURLToPath(new URL("./main.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), program], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  if (child.pid !== undefined) runDir.endWithRun(child.pid);
  const tell = (message: ToGenerator) => child.send(message);
  try {
    return await new Promise<LoadResult>((resolve, reject) => {
      child.on("message", (message: FromGenerator) => {
        if ("ready" in message) tell({ go: true });
        else if ("counting" in message) onCounting();
        else if ("result" in message) resolve(message.result);
        else reject(new Error(`the load could not be sent: ${message.failed}`));
      });
      child.once("error", reject);
      child.once("exit", (code, signal) => reject(new Error(`the load generator ended (${signal ?? code})`)));
      tell({ plan });
    });
  } finally {
    child.kill();
  }
}
