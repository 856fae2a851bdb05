import { signToken } from "../../src/admission/sign-token.js";

/** What all contenders verify tokens with. It guards nothing but a run. */
export const AUTH = {
  secret: "a secret of the benchmark, longer than 32 characters",
  issuer: "sluice",
  audience: "sluice",
} as const;

/** Calls Sluice as an operator. @throws Error with the answer where it is one of errors */
export async function operate(url: string, query: string, variables: Record<string, unknown>): Promise<void> {
  const token = await signToken({ ...AUTH, role: "operator", userId: "bench" });
  const response = await fetch(`${url}/graphql`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ query, variables }),
  });
  const { errors } = (await response.json()) as { errors?: unknown };
  if (errors) throw new Error(`the operator was refused: ${JSON.stringify(errors)}`);
}
