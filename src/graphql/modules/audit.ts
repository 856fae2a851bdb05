import type { AuditEntry } from "../../db/audit.js";
import { isId } from "../../domain/ids.js";
import { listAuditEntries } from "../../operations/read-audit.js";
import { builder } from "../builder.js";
import { connectionOf, decodeCursor, pageSize } from "../pagination.js";
import { connectionType } from "./page.js";

/** What an operator did. */
const AuditEntryType = builder.objectRef<AuditEntry>("AuditEntry").implement({
  fields: (t) => ({
    id: t.id({ resolve: ({ id }) => String(id) }),
    saleId: t.exposeID("saleId", { nullable: true, description: "null where it is about no sale" }),
    actor: t.exposeString("actor", { description: "the operator, as the token names him" }),
    action: t.exposeString("action", { description: "the mutation" }),
    reason: t.exposeString("reason", { nullable: true }),
    details: t.string({
      description: "what it was done to, and how: a JSON object",
      resolve: ({ details }) => JSON.stringify(details),
    }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
  }),
});

const AuditConnection = connectionType("AuditEntry", AuditEntryType);

builder.queryField("auditLog", (t) =>
  t.field({
    type: AuditConnection,
    description: "operator. What operators did, newest first, 100 at most a page; of all sales where none is given",
    args: {
      saleId: t.arg.id(),
      first: t.arg.int({ required: true, defaultValue: 20 }),
      after: t.arg.string(),
    },
    resolve: async (_root, { saleId, first, after }, context) => {
      const position = decodeCursor(after, [isSerial]);
      const query = {
        saleId: saleId ?? null,
        first: pageSize(first),
        after: position && { createdAt: position.createdAt, id: BigInt(position.key[0] ?? 0) },
      };
      const known = query.saleId === null || isId(query.saleId);
      const page = known ? await listAuditEntries(context.deps, query) : { rows: [], hasNextPage: false };
      return connectionOf(page, after, ({ createdAt, id }) => ({ createdAt, key: [String(id)] }));
    },
  }),
);

/** A number that the database gave out, and can be compared with. */
export function isSerial(text: string): boolean {
  return /^[1-9][0-9]{0,17}$/.test(text);
}
