import { residentBytesOf } from "../process-usage.js";
import { withTrial } from "../trial.js";
import { sleep } from "../wait.js";
import { loadDetails, type Measure, roundOf, unexpected } from "./measure.js";
import { sellOut } from "./sold-out.js";

const CONNECTIONS = 64;
const STRANGERS = 20_000;
const SAMPLE_EVERY_MS = 250;

/** The API's resident memory while strangers are refused, in MB at the most; and whether it still grows towards the end. */
export const apiMemory: Measure = {
  name: "api-memory",
  contenders: ["sluice"],
  round: (bench, contender) =>
    withTrial(bench, contender, { workers: true }, async (trial) => {
      const target = await sellOut(trial);
      const refusals = bench.quick ? 50_000 : 200_000;
      const loading = trial.load({
        pace: { kind: "closed", connections: CONNECTIONS },
        buyers: { prefix: "stranger-", count: STRANGERS, behaviour: "strangers" },
        target,
        until: { requests: refusals },
      });
      const samples: { readonly at: number; readonly mb: number }[] = [];
      const done = loading.then(
        () => true,
        () => true,
      );
      while (!(await Promise.race([done, sleep(SAMPLE_EVERY_MS, false)]))) {
        samples.push({ at: Date.now(), mb: residentBytesOf(trial.running.apiPids()) / 1e6 });
      }
      const result = await loading;

      const meanOf = (from: number, to: number) => {
        const at = (part: number) => result.startedAt + part * result.seconds * 1_000;
        const inPart = samples.filter((sample) => sample.at >= at(from) && sample.at < at(to));
        return inPart.reduce((sum, { mb }) => sum + mb, 0) / inPart.length;
      };
      const breaches = [...unexpected("sold out", result.answers, ["SOLD_OUT"]), ...(await trial.findBreaches(target))];
      const details = {
        ...loadDetails(result),
        "second quarter, MB": meanOf(0.25, 0.5),
        "last quarter, MB": meanOf(0.75, 1),
        "last quarter over second quarter": meanOf(0.75, 1) / meanOf(0.25, 0.5),
      };
      return roundOf(Math.max(...samples.map(({ mb }) => mb)), breaches, details, result.answers);
    }),
};
