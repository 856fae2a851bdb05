import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import { createVerifier, type Role, type Verifier } from "../../src/admission/identity.js";
import { signToken } from "../../src/admission/sign-token.js";
import { serviceUnavailable } from "../../src/domain/errors.js";
import type { RequestScope } from "../../src/graphql/context.js";
import { operatorsOnly } from "../../src/http/operators-only.js";
import { atEndOfFile } from "../support/test-file.js";

const SECRET = "a secret of more than thirty-two characters";
const token = (role: Role, expiresInSeconds = 60) =>
  signToken({ secret: SECRET, issuer: "sluice", audience: "sluice", role, userId: "somebody", expiresInSeconds });
const basic = (text: string | Buffer) => `Basic ${Buffer.from(text).toString("base64")}`;

async function serve(verifier: Verifier): Promise<number> {
  const route = operatorsOnly(verifier, async (_req, res) => {
    res.end("for operators");
  });
  const server = createServer((req, res) => {
    route(req, res, {} as RequestScope).catch(() => res.writeHead(500).end());
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  atEndOfFile(() => void server.close().closeAllConnections());
  return (server.address() as AddressInfo).port;
}

let port: number;
beforeAll(async () => {
  const identity = { JWT_SECRET: SECRET, JWT_JWKS_URL: undefined, JWT_ISSUER: "sluice", JWT_AUDIENCE: "sluice" };
  port = await serve(createVerifier(identity));
});

/** Not fetch: it refuses headers that this must be asked with. */
function ask(authorization: string | undefined, of = port): Promise<{ status: number; offers: string[] }> {
  return new Promise((answered, failed) => {
    const headers = authorization === undefined ? {} : { authorization };
    request({ port: of, headers }, (res) => {
      const offers = res.rawHeaders.filter((_, at) => res.rawHeaders[at - 1]?.toLowerCase() === "www-authenticate");
      res.resume().on("end", () => answered({ status: res.statusCode ?? 0, offers }));
    })
      .on("error", failed)
      .end();
  });
}

describe("what is for operators", () => {
  it("is had with an operator's token, as Bearer or as the password of Basic with any name", async () => {
    const operator = await token("operator");
    const ways = [
      `Bearer ${operator}`,
      `bearer  ${operator} `,
      basic(`x:${operator}`),
      basic(`:${operator}`),
      basic(`Ölga Ω:${operator}`),
      basic(`x:${operator}`).replace("Basic", "BASIC "),
    ];
    for (const way of ways) expect((await ask(way)).status).toBe(200);
  });

  it("is not had with another role's token: 403, and nothing to try instead", async () => {
    for (const role of ["buyer", "payments"] as const) {
      for (const way of [`Bearer ${await token(role)}`, basic(`x:${await token(role)}`)]) {
        expect(await ask(way)).toEqual({ status: 403, offers: [] });
      }
    }
  });

  it("is not had without a token that is valid now: 401, which offers both ways", async () => {
    const operator = await token("operator");
    const expired = await token("operator", -60);
    const bytes = (...list: number[]) => Buffer.from(list);
    const ways = [
      undefined,
      "",
      `Bearer ${expired}`,
      basic(`x:${expired}`),
      operator,
      `Basic ${operator}`,
      basic(operator),
      basic(`${operator}:`),
      basic(`x:y:${operator}`),
      basic(`x:${operator}\n`),
      basic(`x: ${operator}`),
      basic(Buffer.concat([Buffer.from(`x:${operator}`), bytes(0xff)])),
      basic(bytes(0xff, 0xfe, 0x3a, 0xc3, 0x28)),
      basic(bytes(0x3a, 0x00, 0x0a)),
      `${basic(`x:${operator}`)}!`,
      `${basic(`x:${operator}`)}, Bearer ${operator}`,
      `Bearer ${operator} ${operator}`,
      "Basic",
      `Basic ${" ".repeat(10_000)}`,
      `Basic ${"=".repeat(10_000)}`,
      `Basic ${"A".repeat(10_000)}`,
      `Bearer ${"\xff".repeat(1_000)}`,
      `Bearer ${"x.".repeat(5_000)}`,
    ];
    for (const way of ways) {
      const { status, offers } = await ask(way);
      expect([way?.slice(0, 40), status]).toEqual([way?.slice(0, 40), 401]);
      expect(offers).toEqual(["Bearer", expect.stringMatching(/^Basic realm="[^"]+", charset="UTF-8"$/)]);
    }
  });

  it("is put off where the keys can't be had: 503, because nothing is known of the token", async () => {
    const unable = await serve({ verify: () => Promise.reject(serviceUnavailable("Not now.")) });
    expect(await ask(`Bearer ${await token("operator")}`, unable)).toEqual({ status: 503, offers: [] });
  });
});
