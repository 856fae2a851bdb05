import { type DocumentNode, getOperationAST } from "graphql";
import { LRUCache } from "lru-cache";
import type { Principal } from "../../admission/identity.js";

/** Longer ones are rare, and few of them would take the room of all others. */
const LONGEST_QUERY = 16_000;
const CHARACTERS_AT_MOST = 2_000_000;
const DOCUMENTS_AT_MOST = 1_000;

/**
 * Documents that have passed parsing, validation and all limits: by role, since what one may ask another may not. Bounded:
 * what was asked longest ago goes first.
 */
export interface PassedDocuments {
  /** The document of a query or mutation that may be executed as it stands, or undefined where that isn't known. */
  find(principal: Principal | null, query: string, operationName: string | undefined): DocumentNode | undefined;
  add(principal: Principal | null, query: string, document: DocumentNode): void;
}

export function keepPassedDocuments(): PassedDocuments {
  const documents = new LRUCache<string, DocumentNode>({
    max: DOCUMENTS_AT_MOST,
    maxSize: CHARACTERS_AT_MOST,
    sizeCalculation: (_document, key) => key.length,
  });
  return {
    find(principal, query, operationName) {
      if (query.length > LONGEST_QUERY) return undefined;
      const document = documents.get(keyOf(principal, query));
      return document && isAnsweredAtOnce(document, operationName) ? document : undefined;
    },
    add(principal, query, document) {
      if (query.length <= LONGEST_QUERY) documents.set(keyOf(principal, query), document);
    },
  };
}

const keyOf = (principal: Principal | null, query: string) => `${principal?.role ?? ""} ${query}`;

/** What names no operation of the document, or a subscription, is for others to answer. */
function isAnsweredAtOnce(document: DocumentNode, operationName: string | undefined): boolean {
  const operation = getOperationAST(document, operationName)?.operation;
  return operation === "query" || operation === "mutation";
}
