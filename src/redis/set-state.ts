import type { SaleState } from "../domain/sale-state.js";
import { forgetAtMs, saleKeys } from "./keys.js";
import type { RedisLink } from "./link.js";
import { callScript } from "./scripts.js";

export type SetStateReply = "applied" | "stale" | "damaged";

/** Puts the database's state of a sale into Redis, loaded or not; only a newer stateVersion counts. @throws RedisUnavailableError */
export async function callSetState(
  link: RedisLink,
  sale: { readonly id: string; readonly state: SaleState; readonly stateVersion: number; readonly closesAt: Date },
): Promise<SetStateReply> {
  const keys = saleKeys(sale.id);
  const raw = await link.run((client) =>
    callScript(
      client,
      "set_state",
      [keys.sale],
      [sale.state, sale.stateVersion, keys.events, forgetAtMs(sale.closesAt)],
    ),
  );
  return (raw as [string])[0].toLowerCase() as SetStateReply;
}
