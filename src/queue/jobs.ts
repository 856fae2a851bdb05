import { z } from "zod";
import { SECOND } from "../domain/time.js";

/** The one kind of job there is: an accepted request that waits to be decided. Pure data, away from its handler. */
export const WRITE_ORDER = {
  queue: "orders",
  name: "write-order",
  payload: z.object({
    v: z.literal(1),
    saleId: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/),
    requestId: z.uuid(),
  }),
  attempts: 5,
  backoff: { type: "exponential", delay: 1 * SECOND, jitter: 0.5 },
} as const;

export type WriteOrderPayload = z.infer<typeof WRITE_ORDER.payload>;
