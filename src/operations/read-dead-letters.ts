import type { Database } from "../db/client.js";
import { type DeadLetter, type DeadLetterQuery, findDeadLetterPage } from "../db/dead-letters.js";
import type { Page } from "../domain/model.js";

export interface ReadDeadLettersDeps {
  readonly reads: Database;
}

/** A page of dead letters, the newest first. */
export function listDeadLetters(deps: ReadDeadLettersDeps, query: DeadLetterQuery): Promise<Page<DeadLetter>> {
  return findDeadLetterPage(deps.reads, query);
}
