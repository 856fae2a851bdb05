import { randomUUID } from "node:crypto";
import { signToken } from "../../src/admission/sign-token.js";
import { createTestDatabase, type TestDatabase } from "./database.js";
import { type NodeProcess, spawnNode } from "./processes.js";
import { startTestRedis, type TestRedis } from "./redis.js";
import { waitFor } from "./wait.js";

export type Role = "buyer" | "operator" | "payments";

/** What a GraphQL call answered, over HTTP. */
export interface Answer<Data> {
  readonly status: number;
  readonly data: Data | null | undefined;
  readonly errors?: readonly { message: string; extensions: { code: string; retryAfterMs?: number } }[];
}

/** An API process and its address. */
export interface Api extends NodeProcess {
  readonly url: string;
  /** Sends one operation. Anonymous with `token` null. */
  call<Data = Record<string, unknown>>(
    token: string | null,
    query: string,
    variables?: Record<string, unknown>,
  ): Promise<Answer<Data>>;
}

export interface TestSale {
  readonly id: string;
  readonly items: readonly { readonly id: string }[];
}

/** A whole Sluice of this test file's own: real Redis and PostgreSQL, APIs and workers as processes. */
export interface TestSluice {
  readonly redis: TestRedis;
  readonly databaseUrl: string;
  readonly env: Record<string, string>;
  startApi(env?: Record<string, string>): Promise<Api>;
  startWorker(env?: Record<string, string>): Promise<NodeProcess>;
  /** Kills every process that was started so far, so that the next test begins with none. */
  endProcesses(): Promise<void>;
  token(role: Role, subject: string, expiresInSeconds?: number): Promise<string>;
  /** Creates a sale through the API and opens it, unless told not to. */
  createSale(api: Api, options?: SaleOptions): Promise<TestSale>;
}

export interface SaleOptions {
  /** units of each item */
  readonly initial?: readonly number[];
  readonly maxPerBuyer?: number;
  readonly opensAt?: Date;
  readonly closesAt?: Date;
  readonly paymentWindowSeconds?: number;
  readonly open?: boolean;
}

export interface SluiceOptions {
  /** Stores that were made before, for example to stand a proxy in front of them. */
  readonly stores?: { readonly redis: TestRedis; readonly database: TestDatabase };
  /** Another way to the servers, for example through a proxy. */
  readonly redisUrl?: string;
  readonly databaseUrl?: string;
  /** More environment for every process. */
  readonly env?: Record<string, string>;
}

const SECRET = "a secret of the tests, longer than 32 characters";
const HOUR = 60 * 60 * 1_000;

/** Prepares the stores; APIs and workers are started one by one. */
export async function prepareSluice(options: SluiceOptions = {}): Promise<TestSluice> {
  const { redis, database } = options.stores ?? {
    redis: await startTestRedis(),
    database: await createTestDatabase(),
  };
  const env = {
    DATABASE_URL: options.databaseUrl ?? database.url,
    REDIS_URL: options.redisUrl ?? redis.url,
    JWT_SECRET: SECRET,
    ...options.env,
  };
  const token = (role: Role, subject: string, expiresInSeconds = 3_600) =>
    signToken({ secret: SECRET, issuer: "sluice", audience: "sluice", role, userId: subject, expiresInSeconds });

  const running = new Set<NodeProcess>();
  const started = (process: NodeProcess) => {
    running.add(process);
    void process.exited.then(() => running.delete(process));
    return process;
  };

  return {
    redis,
    databaseUrl: database.url,
    env,
    token,
    async startApi(more = {}) {
      const api = started(await spawnNode("src/main.ts", { ...env, PORT: "0", ...more }));
      const [, url = ""] = await api.waitForLine(/"url":"([^"]+)"/);
      return Object.assign(api, { url, call: (...args: CallArgs) => call(url, ...args) }) as Api;
    },
    async startWorker(more = {}) {
      const worker = started(await spawnNode("workers/main.ts", { ...env, ...more }));
      await worker.waitForLine(/worker ready/);
      return worker;
    },
    async endProcesses() {
      const ending = [...running];
      for (const process of ending) process.kill("SIGKILL");
      await Promise.all(ending.map((process) => process.exited));
    },
    async createSale(api, sale = {}) {
      const operator = await token("operator", "olga");
      const created = await must(
        api.call<{ createSale: TestSale }>(operator, CREATE_SALE, { input: saleInput(sale) }),
        "createSale",
      );
      if (sale.open !== false) {
        await must(
          api.call(operator, "mutation ($id: ID!) { openSale(saleId: $id) { state } }", { id: created.createSale.id }),
          "openSale",
        );
      }
      return created.createSale;
    },
  };
}

const CREATE_SALE = "mutation ($input: CreateSaleInput!) { createSale(input: $input) { id items { id } } }";

/** Input for createSale that is right in every field. */
export function saleInput(options: SaleOptions = {}): Record<string, unknown> {
  const { initial = [100], maxPerBuyer = 2, paymentWindowSeconds = 900 } = options;
  return {
    title: "A drop",
    opensAt: (options.opensAt ?? new Date(Date.now() - HOUR)).toISOString(),
    closesAt: (options.closesAt ?? new Date(Date.now() + HOUR)).toISOString(),
    maxPerBuyer,
    paymentWindowSeconds,
    items: initial.map((units, at) => ({
      sku: `SKU-${at}`,
      title: `Item ${at}`,
      priceMinor: 2_500,
      currency: "EUR",
      initial: units,
    })),
  };
}

export interface ReserveAnswer {
  readonly reserve: {
    readonly status: string;
    readonly message: string;
    readonly retryAfterMs: number | null;
    readonly reservation: {
      readonly requestId: string;
      readonly status: string;
      readonly quantity: number;
      readonly ahead: number | null;
      readonly version: number;
      readonly order: { readonly id: string; readonly status: string } | null;
    } | null;
  };
}

export const RESERVE = `mutation ($input: ReserveInput!) {
  reserve(input: $input) {
    status message retryAfterMs
    reservation { requestId status quantity ahead version order { id status } }
  }
}`;

/** Reserves, with a requestId of its own unless one is given. */
export function reserve(
  api: Api,
  token: string,
  sale: TestSale,
  input: { itemId?: string; quantity?: number; requestId?: string } = {},
): Promise<Answer<ReserveAnswer>> {
  return api.call<ReserveAnswer>(token, RESERVE, {
    input: { saleId: sale.id, itemId: sale.items[0]?.id, requestId: randomUUID(), ...input },
  });
}

/** What a reservation has come to, asked of the API until it is no longer waiting. */
export async function waitUntilDecided(
  api: Api,
  token: string,
  saleId: string,
  requestId: string,
  timeoutMs = 60_000,
): Promise<{ status: string; reasonCode: string | null; version: number }> {
  return waitFor(
    async () => {
      const answer = await api.call<{ reservation: { status: string; reasonCode: string | null; version: number } }>(
        token,
        "query ($s: ID!, $r: UUID!) { reservation(saleId: $s, requestId: $r) { status reasonCode version } }",
        { s: saleId, r: requestId },
      );
      const reservation = answer.data?.reservation;
      return reservation && !["PENDING", "QUEUED"].includes(reservation.status) ? reservation : null;
    },
    { what: `${requestId} to be decided`, timeoutMs },
  );
}

type CallArgs = [token: string | null, query: string, variables?: Record<string, unknown>];

async function call<Data>(url: string, ...[token, query, variables]: CallArgs): Promise<Answer<Data>> {
  const response = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ query, variables }),
  });
  return { status: response.status, ...((await response.json()) as Omit<Answer<Data>, "status">) };
}

async function must<Data>(answering: Promise<Answer<Data>>, what: string): Promise<Data> {
  const { data, errors } = await answering;
  if (!data || errors) throw new Error(`${what} failed: ${JSON.stringify(errors)}`);
  return data;
}
