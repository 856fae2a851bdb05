import type { DEAD_LETTER_STATUSES, DeadLetter } from "../../db/dead-letters.js";
import { notFound } from "../../domain/errors.js";
import { isId } from "../../domain/ids.js";
import { compensateDeadLetter } from "../../operations/compensate.js";
import type { DeadLetterCommand } from "../../operations/dead-letter.js";
import { discardDeadLetter } from "../../operations/discard.js";
import { listDeadLetters } from "../../operations/read-dead-letters.js";
import { replayDeadLetter } from "../../operations/replay.js";
import { signedIn } from "../access.js";
import { builder } from "../builder.js";
import type { GraphQLContext } from "../context.js";
import { connectionOf, decodeCursor, pageSize } from "../pagination.js";
import { isSerial } from "./audit.js";
import { connectionType } from "./page.js";
import { ReservationType } from "./reservation.js";

const DeadLetterStatusEnum = builder.enumType("DeadLetterStatus", {
  values: {
    OPEN: { description: "its request waits for an operator, and keeps its stock so long" },
    REPLAYED: { description: "its request was tried again" },
    COMPENSATED: { description: "its request was decided FAILED, its stock given back" },
    DISCARDED: { description: "its request had been decided meanwhile" },
  } satisfies Record<(typeof DEAD_LETTER_STATUSES)[number], object>,
});

/** A request that automatic handling has given up. */
const DeadLetterType = builder.objectRef<DeadLetter>("DeadLetter").implement({
  fields: (t) => ({
    id: t.id({ description: "unique within its sale", resolve: ({ id }) => String(id) }),
    saleId: t.exposeID("saleId"),
    requestId: t.expose("requestId", { type: "UUID" }),
    reservation: t.field({
      type: ReservationType,
      nullable: true,
      description: "its request as it stands now",
      resolve: ({ saleId, requestId }, _args, { loaders }) => loaders.reservation.load({ saleId, requestId }),
    }),
    stage: t.exposeString("stage", {
      description:
        "where it came to its end: write (its order can't be written), job (its job can't be read), stalled (too many workers died at it), lost (its job got lost again and again)",
    }),
    lastError: t.exposeString("lastError"),
    attempts: t.exposeInt("attempts"),
    status: t.expose("status", { type: DeadLetterStatusEnum }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    resolvedAt: t.expose("resolvedAt", { type: "DateTime", nullable: true }),
  }),
});

const DeadLetterConnection = connectionType("DeadLetter", DeadLetterType);

builder.queryField("deadLetters", (t) =>
  t.field({
    type: DeadLetterConnection,
    description: "operator. Newest first, 100 at most a page; of all sales where none is given",
    args: {
      saleId: t.arg.id(),
      status: t.arg({ type: DeadLetterStatusEnum }),
      first: t.arg.int({ required: true, defaultValue: 20 }),
      after: t.arg.string(),
    },
    resolve: async (_root, { saleId, status, first, after }, context) => {
      const position = decodeCursor(after, [isSerial]);
      const query = {
        saleId: saleId ?? null,
        status: status ?? null,
        first: pageSize(first),
        after: position && { createdAt: position.createdAt, id: BigInt(position.key[0] ?? 0) },
      };
      const known = query.saleId === null || isId(query.saleId);
      const page = known ? await listDeadLetters(context.deps, query) : { rows: [], hasNextPage: false };
      return connectionOf(page, after, ({ createdAt, id }) => ({ createdAt, key: [String(id)] }));
    },
  }),
);

interface Args {
  readonly saleId: string;
  readonly id: string;
  readonly reason: string;
}

function commandOf({ saleId, id, reason }: Args, context: GraphQLContext): DeadLetterCommand {
  if (!isSerial(id)) throw notFound("There is no such dead letter.");
  return { saleId, id: BigInt(id), reason, actor: signedIn(context).buyerId };
}

builder.mutationFields((t) => {
  const args = {
    saleId: t.arg.id({ required: true }),
    id: t.arg.id({ required: true }),
    reason: t.arg.string({ required: true }),
  };
  return {
    replayDeadLetter: t.field({
      type: DeadLetterType,
      description: "operator. Has its request tried again, as if for the first time. A repeat returns the dead letter",
      args,
      resolve: (_root, given, context) => replayDeadLetter(context.deps, commandOf(given, context)),
    }),
    compensateDeadLetter: t.field({
      type: DeadLetterType,
      description:
        "operator. Decides its request FAILED and gives its stock back; the error CONFLICT where it was decided meanwhile. A repeat returns the dead letter",
      args,
      resolve: (_root, given, context) => compensateDeadLetter(context.deps, commandOf(given, context)),
    }),
    discardDeadLetter: t.field({
      type: DeadLetterType,
      description:
        "operator. For one whose request was decided meanwhile; the error CONFLICT where it is undecided. A repeat returns the dead letter",
      args,
      resolve: (_root, given, context) => discardDeadLetter(context.deps, commandOf(given, context)),
    }),
  };
});
