/** The load generator, a process of its own: told a plan and then to go, it tells what came of it, and ends. */
import { type PreparedLoad, prepareLoad } from "./drive.js";
import type { FromGenerator, ToGenerator } from "./plan.js";

const tell = (message: FromGenerator, told: () => void = () => {}) =>
  process.send?.(message, undefined, undefined, told);
const lastWord = (message: FromGenerator) => tell(message, () => process.disconnect());
let load: PreparedLoad | null = null;

process.on("message", (message: ToGenerator) => {
  if ("plan" in message) {
    load = prepareLoad(message.plan);
    tell({ ready: true });
    return;
  }
  load
    ?.run(() => tell({ counting: true }))
    .then(
      (result) => lastWord({ result }),
      (error: Error) => lastWord({ failed: error.message }),
    );
});
// Nobody is left to tell.
process.once("disconnect", () => process.exit());
