import type { Server } from "node:http";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { SECOND } from "../domain/time.js";
import { pause } from "../lifecycle/pause.js";

/** The connections of a server, and which of them are waiting for an answer. */
export interface Connections {
  /**
   * Goes on accepting until nobody has come for a moment, or for `atMostMs`: whoever has connected and waits to be accepted
   * would be reset by closing at once.
   */
  acceptWaiting(atMostMs: number): Promise<void>;
  /** A request has come over a connection. Returns what says that its answer is sent. */
  begin(socket: Socket): () => void;
  /** A connection is no longer HTTP's. */
  leave(socket: Socket): void;
}

const FRESH = -1;
/** Nobody has come for so long: then the system has none left that it had taken for the server. */
const QUIET_MS = SECOND / 4;
/** How long the first request of a connection may take to be read when the server closes: it may be there already. */
const FIRST_REQUEST_MS = 500;

/**
 * Ends the connections of a server that no longer listens, each when it has nothing under way. In place of Node's own
 * `closeIdleConnections`, which `close` calls as well: it takes a connection for idle whose answer is written and not yet
 * sent, and destroys it with that.
 */
export function trackConnections(server: Server): Connections {
  /** connection → requests under way; FRESH before the first one */
  const underWay = new Map<Socket, number>();
  let opened = 0;
  const endIfIdle = (socket: Socket) => underWay.get(socket) === 0 && socket.destroySoon();
  const endIfStillFresh = (socket: Socket) => underWay.get(socket) === FRESH && socket.destroySoon();

  server.on("connection", (socket: Socket) => {
    opened += 1;
    underWay.set(socket, FRESH);
    socket.once("close", () => underWay.delete(socket));
  });
  server.closeIdleConnections = () => {
    for (const [socket, requests] of underWay) {
      if (requests === FRESH) setTimeout(endIfStillFresh, FIRST_REQUEST_MS, socket).unref();
      else endIfIdle(socket);
    }
  };

  return {
    async acceptWaiting(atMostMs) {
      const until = Date.now() + atMostMs;
      let seen: number;
      do {
        seen = opened;
        await pause(Math.min(QUIET_MS, atMostMs));
        // A busy process comes here late: what has arrived meanwhile is accepted in one turn and read in the next.
        for (let turns = 0; turns < 4; turns += 1) await setImmediate();
      } while (opened > seen && Date.now() < until);
    },
    begin(socket) {
      underWay.set(socket, Math.max(0, underWay.get(socket) ?? 0) + 1);
      return () => {
        const requests = underWay.get(socket);
        if (requests === undefined) return;
        underWay.set(socket, requests - 1);
        if (!server.listening) endIfIdle(socket);
      };
    },
    leave: (socket) => void underWay.delete(socket),
  };
}
