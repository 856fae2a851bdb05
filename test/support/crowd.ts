import { Agent, request } from "node:http";
import type { Answer, Api, ReserveAnswer } from "./sluice.js";
import { RESERVE } from "./sluice.js";

/** Sends reservations over sockets that are kept open, so that a crowd fits through a number that a machine has. */
export interface Crowd {
  /** One call of reserve, sent as soon as a socket is free. */
  reserve(token: string, input: CrowdInput): Promise<Answer<ReserveAnswer>>;
  close(): void;
}

interface CrowdInput {
  readonly saleId: string;
  readonly itemId: string;
  readonly requestId: string;
  readonly quantity?: number;
}

/** A crowd before this API. `sockets` is how many of its requests are under way at once. */
export function gatherCrowd(api: Api, sockets: number): Crowd {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets });
  return {
    reserve: (token, input) => post(agent, `${api.url}/graphql`, token, { query: RESERVE, variables: { input } }),
    close: () => agent.destroy(),
  };
}

/** How many units these answers promise: what must never be more than there are. */
export function unitsPromised(answers: readonly { status: string | undefined; quantity?: number }[]): number {
  return answers.reduce((units, { status, quantity = 1 }) => units + (status === "QUEUED" ? quantity : 0), 0);
}

/** How often each answer was given: a status, or the code of an error. */
export function tally(answers: readonly Answer<ReserveAnswer>[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { data, errors } of answers) {
    const kind = errors ? `error ${errors[0]?.extensions.code}` : (data?.reserve.status ?? "nothing");
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

function post(agent: Agent, url: string, token: string, body: unknown): Promise<Answer<ReserveAnswer>> {
  return new Promise((answered, failed) => {
    const text = JSON.stringify(body);
    const headers = {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      authorization: `Bearer ${token}`,
    };
    const sent = request(url, { agent, method: "POST", headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", failed);
      response.once("end", () => {
        try {
          const answer = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Omit<Answer<ReserveAnswer>, "status">;
          answered({ status: response.statusCode ?? 0, ...answer });
        } catch (error) {
          failed(error);
        }
      });
    });
    sent.once("error", failed);
    sent.end(text);
  });
}
