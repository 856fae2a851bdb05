/** Who is compared with whom, and in what. */
export const CONTENDERS = {
  sluice: "Sluice",
  straightforward: "the straightforward build",
  "round-1": "round 1: the database alone",
  "round-2": "round 2: Redis decides, database at once",
  "round-3": "round 3: Redis decides, database later",
  "yoga-noop": "GraphQL Yoga without any work",
  "yoga-noop-lean": "the same, its limit of bodies off",
  echo: "node:http echo",
  "noop-worker": "BullMQ worker without any work",
} as const;
export type ContenderName = keyof typeof CONTENDERS;

/** In the order in which they are run. */
export const MEASURES = {
  "sold-out": { title: "Reserve, sold out", unit: "answers a second" },
  decided: { title: "Reserve, accepted and decided", unit: "orders a second" },
  queue: { title: "Orders written from a full queue", unit: "jobs a second" },
  "half-peak": { title: "p99 at half the peak, over a lone request's p50", unit: "times" },
  size: { title: "A reservation's cost in a large sale, over that in a small one", unit: "times" },
  "redis-memory": { title: "Redis memory a decided reservation", unit: "bytes" },
  "api-memory": { title: "The API's resident memory through refusals", unit: "MB" },
  subscriptions: { title: "Memory an open WebSocket subscription", unit: "KB" },
} as const;
export type MeasureName = keyof typeof MEASURES;
export const MEASURE_NAMES = Object.keys(MEASURES) as MeasureName[];
