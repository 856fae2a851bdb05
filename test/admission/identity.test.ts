import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createVerifier, principalFromAuthorization, type Verifier } from "../../src/admission/identity.js";
import { buyerIdOf } from "../../src/domain/ids.js";
import { HOUR, MINUTE, SECOND } from "../../src/domain/time.js";

const SECRET = "a secret of more than thirty-two characters";
const config = { JWT_SECRET: SECRET, JWT_JWKS_URL: undefined, JWT_ISSUER: "sluice", JWT_AUDIENCE: "shop" };
const seconds = (ms: number) => Math.floor(ms / SECOND);

/** Claims of a good token, with some replaced or, where undefined, left out. */
function claims(changes: Record<string, unknown> = {}): JWTPayload {
  const good = { sub: "ann", role: "buyer", iss: "sluice", aud: "shop", exp: seconds(Date.now() + 1 * HOUR) };
  return Object.fromEntries(Object.entries({ ...good, ...changes }).filter(([, value]) => value !== undefined));
}

const signed = (payload: JWTPayload, secret = SECRET, alg = "HS256") =>
  new SignJWT(payload).setProtectedHeader({ alg }).sign(Buffer.from(secret));

describe("a token signed with the secret", () => {
  const verifier = createVerifier(config);

  it.each(["buyer", "operator", "payments"])("is a principal with the role %s", async (role) => {
    const exp = seconds(Date.now() + 1 * HOUR);
    const principal = await verifier.verify(await signed(claims({ role, exp })));
    expect(principal).toEqual({ role, buyerId: "ann", expiresAt: exp * SECOND });
  });

  it.each(["ann@example.com", "Ann", "😀", " ", "ann\0", "a".repeat(10_000)])(
    "may have the subject %.30j",
    async (sub) => {
      expect((await verifier.verify(await signed(claims({ sub })))).buyerId).toBe(buyerIdOf(sub));
    },
  );

  it("is accepted for one of several audiences, and a few seconds past its end by another clock", async () => {
    await expect(verifier.verify(await signed(claims({ aud: ["other", "shop"] })))).resolves.toBeDefined();
    await expect(verifier.verify(await signed(claims({ exp: seconds(Date.now()) - 2 })))).resolves.toBeDefined();
  });

  it.each<[string, Record<string, unknown>]>([
    ["expired", { exp: seconds(Date.now()) - 10 }],
    ["without an end", { exp: undefined }],
    ["with an end that is no number", { exp: "tomorrow" }],
    ["not valid yet", { nbf: seconds(Date.now()) + 60 }],
    ["for another audience", { aud: "elsewhere" }],
    ["without an audience", { aud: undefined }],
    ["of another issuer", { iss: "someone" }],
    ["without an issuer", { iss: undefined }],
    ["without a role", { role: undefined }],
    ["with an unknown role", { role: "admin" }],
    ["with two roles", { role: ["buyer", "operator"] }],
    ["with a role that objects inherit", { role: "constructor" }],
    ["without a subject", { sub: undefined }],
    ["with an empty subject", { sub: "" }],
    ["with a subject that is no text", { sub: 7 }],
    ["with a subject too long", { sub: "a".repeat(10_001) }],
  ])("is refused %s", async (_what, changes) => {
    await expectUnauthenticated(verifier, await signed(claims(changes)));
  });

  it("is refused with another secret, another algorithm, or a changed payload", async () => {
    await expectUnauthenticated(verifier, await signed(claims(), "another secret of more than 32 characters"));
    await expectUnauthenticated(verifier, await signed(claims(), SECRET, "HS512"));
    const [header, , signature] = (await signed(claims())).split(".");
    const payload = Buffer.from(JSON.stringify(claims({ role: "operator" }))).toString("base64url");
    await expectUnauthenticated(verifier, `${header}.${payload}.${signature}`);
  });

  it("is refused unsigned", async () => {
    await expectUnauthenticated(verifier, new UnsecuredJWT(claims()).encode());
    const header = Buffer.from(JSON.stringify({ alg: "None", typ: "JWT" })).toString("base64url");
    await expectUnauthenticated(verifier, `${header}.${Buffer.from(JSON.stringify(claims())).toString("base64url")}.`);
  });

  it.each(["", "x", "a.b", "a.b.c", "....", "null", "\0", "e30.e30.e30"])(
    "is refused where it is %j",
    async (token) => {
      await expectUnauthenticated(verifier, token);
    },
  );
});

describe("the Authorization header", () => {
  const verifier = createVerifier(config);

  it("names nobody where it is absent", async () => {
    expect(await principalFromAuthorization(verifier, undefined)).toBeNull();
    expect(await principalFromAuthorization(verifier, null)).toBeNull();
  });

  it("names the token's principal, whatever the case of its scheme", async () => {
    const token = await signed(claims());
    for (const scheme of ["Bearer", "bearer", "BEARER"]) {
      expect(await principalFromAuthorization(verifier, `${scheme} ${token}`)).toMatchObject({ buyerId: "ann" });
    }
  });

  it.each(["", "Bearer", "Bearer ", "Basic YW5uOnB3", "Bearer a b", "Bearer garbage"])(
    "is refused as %j",
    async (header) => {
      await expect(principalFromAuthorization(verifier, header)).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    },
  );
});

describe("a token signed with a key of the issuer's set", () => {
  let issuer: { url: string; keys: JWK[]; fetches: number; close(): Promise<void> };
  let verifier: Verifier;
  beforeEach(async () => {
    issuer = await startIssuer();
    verifier = createVerifier({ ...config, JWT_SECRET: undefined, JWT_JWKS_URL: issuer.url });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await issuer.close();
  });

  it.each(["RS256", "PS256", "ES256", "EdDSA"])("is accepted with %s, its keys fetched once", async (alg) => {
    const key = await newKey(alg, "one");
    issuer.keys.push(key.jwk);
    expect(await verifier.verify(await key.sign(claims()))).toMatchObject({ buyerId: "ann" });
    expect(await verifier.verify(await key.sign(claims({ sub: "bob" })))).toMatchObject({ buyerId: "bob" });
    expect(issuer.fetches).toBe(1);
  });

  it("is accepted after the issuer has rotated its keys", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const [old, next] = [await newKey("ES256", "old"), await newKey("ES256", "next")];
    issuer.keys.push(old.jwk);
    await verifier.verify(await old.sign(claims()));
    issuer.keys.splice(0, 1, next.jwk);
    vi.setSystemTime(Date.now() + 6 * SECOND);
    expect(await verifier.verify(await next.sign(claims()))).toMatchObject({ buyerId: "ann" });
    await expectUnauthenticated(verifier, await old.sign(claims()));
  });

  it("is refused with a key that isn't in the set, without asking the issuer each time", async () => {
    const [known, forged] = [await newKey("ES256", "known"), await newKey("ES256", "forged")];
    issuer.keys.push(known.jwk);
    await verifier.verify(await known.sign(claims()));
    for (let attempt = 0; attempt < 5; attempt += 1) await expectUnauthenticated(verifier, await forged.sign(claims()));
    const impostor = await newKey("ES256", "known");
    await expectUnauthenticated(verifier, await impostor.sign(claims()));
    expect(issuer.fetches).toBe(1);
  });

  it("is refused where it is signed with the public key as a secret, or unsigned", async () => {
    const key = await newKey("RS256", "one");
    issuer.keys.push(key.jwk);
    await expectUnauthenticated(verifier, await signed(claims(), JSON.stringify(key.jwk)));
    await expectUnauthenticated(verifier, new UnsecuredJWT(claims()).encode());
  });

  it("is 'not known at the moment' while the issuer is unreachable or answers nonsense, and accepted again after", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const key = await newKey("ES256", "one");
    const { port } = new URL(issuer.url);
    await issuer.close();
    await expect(verifier.verify(await key.sign(claims()))).rejects.toMatchObject({
      code: "SERVICE_UNAVAILABLE",
      retryAfterMs: expect.any(Number),
    });
    issuer = await startIssuer(Number(port), "no JSON");
    await expect(verifier.verify(await key.sign(claims()))).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    await issuer.close();
    issuer = await startIssuer(Number(port));
    issuer.keys.push(key.jwk);
    expect(await verifier.verify(await key.sign(claims()))).toMatchObject({ buyerId: "ann" });
    await issuer.close();
    vi.setSystemTime(Date.now() + 11 * MINUTE);
    await expect(verifier.verify(await key.sign(claims()))).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
  });
});

async function expectUnauthenticated(verifier: Verifier, token: string): Promise<void> {
  await expect(verifier.verify(token)).rejects.toMatchObject({ name: "SluiceError", code: "UNAUTHENTICATED" });
}

async function newKey(alg: string, kid: string) {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return {
    jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" },
    sign: (payload: JWTPayload) => new SignJWT(payload).setProtectedHeader({ alg, kid }).sign(privateKey),
  };
}

/** An identity provider that serves its public keys, on a port of its own. */
async function startIssuer(port = 0, text?: string) {
  const keys: JWK[] = [];
  const issuer = { url: "", keys, fetches: 0, close: () => closed(server) };
  const server = createServer((_req, res) => {
    issuer.fetches += 1;
    res.setHeader("connection", "close").end(text ?? JSON.stringify({ keys }));
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  issuer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
  return issuer;
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
