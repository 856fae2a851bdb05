/** Two questions that load balancers and supervisors ask: is the process alive, and is it able to sell. */
import { orWhenLate } from "./pause.js";

/** Answers within a second, with room for the way back. */
const READY_WITHIN_MS = 900;

export interface Readiness {
  readonly redis: boolean;
  readonly database: boolean;
}

export interface HealthAnswer {
  readonly httpStatus: 200 | 503;
  readonly body: { readonly status: "ok" | "unavailable" | "closing" } & Partial<Readiness>;
}

export interface Health {
  /** Says nothing about dependencies: restarting this process would not bring Redis back. */
  alive(): HealthAnswer;
  /** Whatever hangs, an answer within a second; what didn't answer in time counts as away. */
  ready(): Promise<HealthAnswer>;
}

/** The health of a process. `isClosing` makes it unready, so that a balancer sends nothing more. */
export function createHealth(resources: { readiness(): Promise<Readiness> }, isClosing: () => boolean): Health {
  const away = { redis: false, database: false };
  let asking: Promise<Readiness> | undefined;
  // One question at a time, however many ask: the endpoint needs no token and must not become a load on Redis.
  const ask = () => {
    const answering = () => resources.readiness().catch(() => away);
    asking ??= orWhenLate(answering(), READY_WITHIN_MS, () => away).finally(() => {
      asking = undefined;
    });
    return asking;
  };

  return {
    alive: () => ({ httpStatus: 200, body: { status: "ok" } }),
    async ready() {
      const { redis, database } = await ask();
      const able = redis && database && !isClosing();
      const status = isClosing() ? "closing" : able ? "ok" : "unavailable";
      return { httpStatus: able ? 200 : 503, body: { status, redis, database } };
    },
  };
}
