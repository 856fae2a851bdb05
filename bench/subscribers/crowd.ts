import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { RunDir } from "../run-dir.js";
import type { FromSubscribers, SubscriberPlan } from "./plan.js";

/** Opens subscriptions from a process of its own; all of them have heard a first value when this resolves. */
export async function openSubscriptions(
  runDir: Pick<RunDir, "endWithRun">,
  plan: SubscriberPlan,
): Promise<{ close(): Promise<void> }> {
  const program = fileURLToPath(new URL("./main.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), program], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  if (child.pid !== undefined) runDir.endWithRun(child.pid);
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const close = async () => {
    child.kill();
    await ended;
  };
  try {
    await new Promise<void>((resolve, reject) => {
      child.once("message", (message: FromSubscribers) => {
        if ("open" in message) resolve();
        else reject(new Error(message.failed));
      });
      child.once("error", reject);
      child.once("exit", (code, signal) => reject(new Error(`the subscribers ended (${signal ?? code})`)));
      child.send(plan);
    });
  } catch (error) {
    await close();
    throw error;
  }
  return { close };
}
