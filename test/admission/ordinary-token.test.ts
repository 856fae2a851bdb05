import { createHmac } from "node:crypto";
import { jwtVerify, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { createOrdinaryVerifier } from "../../src/admission/ordinary-token.js";
import { signToken } from "../../src/admission/sign-token.js";

const SECRET = "a secret of more than thirty-two characters";
const OURS = { secret: SECRET, issuer: "sluice", audience: "shop" };
const verify = createOrdinaryVerifier(OURS);
const now = () => Math.floor(Date.now() / 1_000);

const base64 = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
const good = (changes: Record<string, unknown> = {}) => ({
  sub: "ann",
  role: "buyer",
  iss: "sluice",
  aud: "shop",
  exp: now() + 60,
  ...changes,
});

/** A token with whatever header and claims, rightly signed. */
function signed(header: unknown, claims: unknown, secret = SECRET): string {
  const input = `${base64(header)}.${base64(claims)}`;
  return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
}

const byLibrary = (token: string) =>
  jwtVerify(token, Buffer.from(SECRET), {
    algorithms: ["HS256"],
    issuer: OURS.issuer,
    audience: OURS.audience,
    requiredClaims: ["exp"],
    clockTolerance: 5,
  }).then(
    ({ payload }) => payload,
    () => null,
  );

describe("an ordinary token", () => {
  it.each([
    ["ours", () => signToken({ ...OURS, role: "buyer", userId: "ann", expiresInSeconds: 60 })],
    [
      "another library's",
      () => signed({ typ: "JWT", alg: "HS256" }, good({ nbf: now() - 5, iat: now(), more: { a: [1] } })),
    ],
    ["jose's", () => new SignJWT(good()).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from(SECRET))],
  ])("of %s making has the claims that the library reads", async (_whose, make) => {
    const token = await make();
    expect(verify(token)).not.toBeNull();
    expect(verify(token)).toEqual(await byLibrary(token));
  });
});

const HS256 = { alg: "HS256" };
const STRANGE: Record<string, () => string> = {
  "another secret": () => signed(HS256, good(), "another secret of more than 32 characters"),
  "another algorithm named": () => signed({ alg: "HS512" }, good()),
  "no algorithm": () => signed({ alg: "none" }, good()),
  "no algorithm and no signature": () => `${base64({ alg: "none" })}.${base64(good())}.`,
  "a header that must be understood": () => signed({ alg: "HS256", crit: ["x"], x: 1 }, good()),
  "an unencoded payload": () => signed({ alg: "HS256", b64: false, crit: ["b64"] }, good()),
  "a key id": () => signed({ alg: "HS256", kid: "1" }, good()),
  "several audiences": () => signed(HS256, good({ aud: ["other", "shop"] })),
  "another audience": () => signed(HS256, good({ aud: "other" })),
  "no audience": () => signed(HS256, good({ aud: undefined })),
  "another issuer": () => signed(HS256, good({ iss: "other" })),
  "an end in the past": () => signed(HS256, good({ exp: now() - 10 })),
  "an end a moment ago": () => signed(HS256, good({ exp: now() - 2 })),
  "no end": () => signed(HS256, good({ exp: undefined })),
  "an end that is text": () => signed(HS256, good({ exp: String(now() + 60) })),
  "a beginning to come": () => signed(HS256, good({ nbf: now() + 60 })),
  "a beginning that is text": () => signed(HS256, good({ nbf: "0" })),
  "a time of issue that is text": () => signed(HS256, good({ iat: "0" })),
  "claims that are a list": () => signed(HS256, []),
  "claims that are null": () => signed(HS256, null),
  "claims that are no JSON": () => signed(HS256, "{"),
  "four parts": () => `${signed(HS256, good())}.x`,
  "two parts": () => `${base64(HS256)}.${base64(good())}`,
  "one part": () => "x",
  nothing: () => "",
  "a cut signature": () => signed(HS256, good()).slice(0, -1),
  "no signature": () => signed(HS256, good()).replace(/[^.]*$/, ""),
  "a padded signature": () => `${signed(HS256, good())}=`,
  "a signature in the other alphabet of base64": () => {
    for (let at = 0; ; at += 1) {
      const token = signed(HS256, good({ at }));
      const [head = "", payload = "", signature = ""] = token.split(".");
      if (/[-_]/.test(signature)) return `${head}.${payload}.${signature.replaceAll("-", "+").replaceAll("_", "/")}`;
    }
  },
  "a signature with other last bits": () => {
    const token = signed(HS256, good());
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    // The last of 43 characters has two bits that mean nothing.
    return token.slice(0, -1) + alphabet[alphabet.indexOf(token.at(-1) ?? "") ^ 1];
  },
  "changed claims": () => {
    const [head, , signature] = signed(HS256, good()).split(".");
    return `${head}.${base64(good({ role: "operator" }))}.${signature}`;
  },
  spaces: () => ` ${signed(HS256, good())}`,
  "letters beyond ASCII": () => `${signed(HS256, good()).slice(0, -1)}é`,
};

describe("a token with anything unusual about it", () => {
  it.each(Object.entries(STRANGE))("%s is left to the library", (_what, make) => {
    expect(verify(make())).toBeNull();
  });
});
