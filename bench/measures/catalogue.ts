import type { MeasureName } from "../names.js";
import { apiMemory } from "./api-memory.js";
import { decided } from "./decided.js";
import { halfPeak } from "./half-peak.js";
import type { Measure } from "./measure.js";
import { queue } from "./queue.js";
import { redisMemory } from "./redis-memory.js";
import { size } from "./size.js";
import { soldOut } from "./sold-out.js";
import { subscriptions } from "./subscriptions.js";

/** All measures, by their names. */
export const CATALOGUE: Readonly<Record<MeasureName, Measure>> = {
  "sold-out": soldOut,
  decided,
  queue,
  "half-peak": halfPeak,
  size,
  "redis-memory": redisMemory,
  "api-memory": apiMemory,
  subscriptions,
};
