import "./scalars.js";
import "./modules/clock.js";
import "./modules/sale.js";
import "./modules/sale-admin.js";
import "./modules/reservation.js";
import "./modules/reserve.js";
import "./modules/order.js";
import "./modules/order-admin.js";
import "./modules/payment.js";
import "./modules/payment-request.js";
import "./modules/audit.js";
import "./modules/dead-letter.js";
import "./modules/sale-check.js";
import "./modules/trace.js";
import { printSchema } from "graphql";
import { enforceAccess } from "./access.js";
import { builder } from "./builder.js";

/** The executable schema, its root fields guarded. */
export const schema = enforceAccess(builder.toSchema());

/** The schema as text, as it is committed beside this file. */
export function printedSchema(): string {
  return `# biome-ignore-all format: printed from the code by npm run schema\n\n${printSchema(schema)}\n`;
}
