/** What the start itself asks of the API. */
import { SECOND } from "../domain/time.js";
import { pause } from "../lifecycle/pause.js";
import { messageOf } from "./failure.js";

/** Waits until `/ready` answers 200. Resolves with null then, at the deadline with what was last heard. */
export async function waitUntilReady(apiUrl: string, deadlineMs: number, signal: AbortSignal): Promise<string | null> {
  const deadline = Date.now() + deadlineMs;
  let heard = "nothing";
  while (!signal.aborted && Date.now() < deadline) {
    try {
      const response = await fetch(`${apiUrl}/ready`, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(2 * SECOND)]),
      });
      const body = await response.text();
      if (response.status === 200) return null;
      heard = `${response.status} ${body.slice(0, 200)}`;
    } catch (error) {
      heard = error instanceof Error && error.cause ? messageOf(error.cause) : messageOf(error);
    }
    await pause(100, signal);
  }
  return heard;
}

/** One GraphQL operation. Throws what went wrong, the server's own message where it has one. */
export async function askApi<T>(
  apiUrl: string,
  token: string,
  query: string,
  variables: object,
  signal: AbortSignal,
): Promise<T> {
  const response = await fetch(`${apiUrl}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(10 * SECOND)]),
  });
  const answer = (await response.json()) as { data?: T | null; errors?: { message: string }[] };
  if (answer.errors?.[0] || !answer.data)
    throw new Error(answer.errors?.[0]?.message ?? `the API answered ${response.status}`);
  return answer.data;
}
