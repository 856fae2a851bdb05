/** Opens WebSocket subscriptions, tells when each has heard its first value, and keeps them until its parent goes. */
import { WebSocket } from "ws";
import { signBuyerToken } from "../load/token.js";
import type { FromSubscribers, SubscriberPlan } from "./plan.js";

/** Handshakes under way at once. */
const AT_ONCE = 100;

const tell = (message: FromSubscribers) => process.send?.(message);

process.once("message", (plan: SubscriberPlan) => {
  openAll(plan).then(
    (open) => tell({ open }),
    (error: Error) => tell({ failed: error.message }),
  );
});
process.once("disconnect", () => process.exit());

async function openAll(plan: SubscriberPlan): Promise<number> {
  let next = 0;
  const openNext = async () => {
    for (let at = next++; at < plan.subscribers.length; at = next++) await open(plan, at);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, openNext));
  return plan.subscribers.length;
}

/** Resolves at the first value. */
function open({ url, auth, query, subscribers }: SubscriberPlan, at: number): Promise<void> {
  const { subject, variables } = subscribers[at] as SubscriberPlan["subscribers"][number];
  return new Promise((heard, failed) => {
    const socket = new WebSocket(`${url.replace("http", "ws")}/graphql`, "graphql-transport-ws", {
      perMessageDeflate: false,
    });
    const say = (message: object) => socket.send(JSON.stringify(message));
    socket.once("open", () => {
      say({ type: "connection_init", payload: { authorization: `Bearer ${signBuyerToken(auth, subject)}` } });
    });
    socket.on("message", (data) => {
      const message = JSON.parse(String(data)) as { type: string; payload?: { errors?: unknown } };
      if (message.type === "connection_ack") say({ type: "subscribe", id: "1", payload: { query, variables } });
      else if (message.type === "ping") say({ type: "pong" });
      else if (message.type === "next" && !message.payload?.errors) heard();
      else if (message.type !== "pong") failed(new Error(`a subscriber heard ${String(data)}`));
    });
    socket.once("error", failed);
    socket.once("close", (code) => failed(new Error(`a subscription was closed (${code})`)));
  });
}
