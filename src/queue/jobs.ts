import { z } from "zod";
import { isId, isRequestId } from "../domain/ids.js";
import { SECOND } from "../domain/time.js";

/** The one kind of job there is: an accepted request that waits to be decided. Pure data, away from its handler. */
export const WRITE_ORDER = {
  queue: "orders",
  name: "write-order",
  payload: z.object({
    v: z.literal(1),
    saleId: z.string().refine(isId),
    // Not zod's uuid(), which wants a version: what the entry accepts, the worker must be able to read.
    requestId: z.string().refine(isRequestId),
  }),
  attempts: 5,
  backoff: { type: "exponential", delay: 1 * SECOND, jitter: 0.5 },
} as const;

export type WriteOrderPayload = z.infer<typeof WRITE_ORDER.payload>;
