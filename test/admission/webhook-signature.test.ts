import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { signWebhook, verifyWebhook } from "../../src/admission/webhook-signature.js";
import { HOUR, MINUTE, SECOND } from "../../src/domain/time.js";

const SECRET = "a secret of the tests";
const BODY = '{"orderId":"S.1","paymentRef":"pay_1","amountMinor":2500}';
const NOW = new Date(1_700_000_000 * SECOND);
/** printf '1700000000.<BODY>' | openssl dgst -sha256 -hmac '<SECRET>' */
const DIGEST = "adc73c67f83424855f53b1ba8233815031f6ce4d740c219a7b29b165a348cd0d";
const SIGNED = `t=1700000000,v1=${DIGEST}`;

const verdict = (
  header: string | undefined,
  { body = BODY as string | Uint8Array, now = NOW, secrets = [SECRET] } = {},
) => verifyWebhook(secrets, { header, body, now });
const later = (ms: number) => new Date(NOW.getTime() + ms);

describe("a webhook's signature", () => {
  it("is what openssl makes of time and body", () => {
    expect(signWebhook(SECRET, BODY, NOW)).toBe(SIGNED);
    expect(signWebhook(SECRET, Buffer.from(BODY), later(999))).toBe(SIGNED);
    expect(verdict(SIGNED)).toBe("valid");
  });

  it("is good for five minutes by either clock, and is stale then", () => {
    for (const ms of [5 * MINUTE, -5 * MINUTE]) expect(verdict(SIGNED, { now: later(ms) })).toBe("valid");
    for (const ms of [5 * MINUTE + 1, -5 * MINUTE - 1]) expect(verdict(SIGNED, { now: later(ms) })).toBe("stale");
  });

  it("holds for one time, one body and one secret", () => {
    expect(verdict(SIGNED, { body: `${BODY} ` })).toBe("invalid");
    expect(verdict(SIGNED, { secrets: ["another secret"] })).toBe("invalid");
    expect(verdict(SIGNED, { secrets: [] })).toBe("invalid");
    expect(verdict(`t=1700000001,v1=${DIGEST}`)).toBe("invalid");
    // Right for a time that is long gone, and yet of another body: no word of the time.
    expect(verdict(SIGNED, { body: "{}", now: later(HOUR) })).toBe("invalid");
  });

  it("holds for the bytes, whatever they say", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.nat(), (body, at) => {
        const header = signWebhook(SECRET, body, NOW);
        expect(verdict(header, { body })).toBe("valid");
        const other = Uint8Array.from(body.length > 0 ? body : [0]);
        if (body.length > 0) other[at % body.length] = (other[at % body.length] ?? 0) ^ 1;
        expect(verdict(header, { body: other })).toBe("invalid");
      }),
    );
  });

  it("may be one of several, by one of several secrets, in any order", () => {
    const wrong = "0".repeat(64);
    for (const header of [
      `v1=${wrong},v1=${DIGEST},t=1700000000`,
      `t=1700000000, v1=${DIGEST}, v1=${wrong}`,
      `t=1700000000,v0=${wrong},v1=${DIGEST},v2=anything`,
      SIGNED.toUpperCase().replace("T=", "t=").replace("V1=", "v1="),
    ]) {
      expect(verdict(header, { secrets: ["another secret", SECRET] })).toBe("valid");
    }
  });

  it.each([
    undefined,
    "",
    ",,,",
    "t=1700000000",
    `v1=${DIGEST}`,
    DIGEST,
    `t=,v1=${DIGEST}`,
    `t=1700000000.0,v1=${DIGEST}`,
    `t=+1700000000,v1=${DIGEST}`,
    `t=1700000000,t=1700000000,v1=${DIGEST}`,
    `t=1700000000;v1=${DIGEST}`,
    `t=1700000000,v1=${DIGEST.slice(1)}`,
    `t=1700000000,v1=${DIGEST}00`,
    `t=1700000000,v1=${DIGEST.slice(2)}zz`,
    `t=1700000000,v0=${DIGEST}`,
    `t=1700000000,v1=`,
  ])("that is %j is none", (header) => {
    expect(verdict(header)).toBe("invalid");
  });
});
