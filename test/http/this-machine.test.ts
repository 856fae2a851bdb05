import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { isFromThisMachine } from "../../src/http/this-machine.js";

describe("a browser is taken for one on this machine", () => {
  for (const remoteAddress of ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"]) {
    for (const host of ["localhost", "localhost:4000", "LOCALHOST:4000", "127.0.0.1:4000", "[::1]:4000"]) {
      it(`from ${remoteAddress}, for ${host}`, () => expect(asked(remoteAddress, { host })).toBe(true));
    }
  }
});

describe("a browser is not taken for one on this machine", () => {
  for (const remoteAddress of ["10.0.0.7", "192.168.127.0", "::ffff:10.0.0.7", "::2", "fe80::1", undefined]) {
    it(`from the address ${remoteAddress}`, () => expect(asked(remoteAddress, { host: "localhost" })).toBe(false));
  }
  for (const host of [
    "shop.example",
    "localhost.shop.example",
    "127.0.0.1.shop.example:4000",
    "shop.example:127.0.0.1",
    "shop.example@localhost",
    "localhost@shop.example",
    "notlocalhost",
    "127.0.0.1:4000, shop.example",
    "",
    undefined,
  ]) {
    it(`for the host ${host}`, () => expect(asked("127.0.0.1", { host })).toBe(false));
  }
  for (const header of ["x-forwarded-for", "x-forwarded-proto", "x-real-ip", "forwarded", "via"]) {
    it(`through a proxy that says ${header}`, () =>
      expect(asked("127.0.0.1", { host: "localhost", [header]: "localhost" })).toBe(false));
  }
  it("for another site's script", () =>
    expect(asked("127.0.0.1", { host: "localhost", origin: "https://shop.example" })).toBe(false));
});

function asked(remoteAddress: string | undefined, headers: IncomingMessage["headers"]): boolean {
  return isFromThisMachine({ headers, socket: { remoteAddress } as IncomingMessage["socket"] });
}
