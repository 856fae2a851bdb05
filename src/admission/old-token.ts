import { jwtVerify } from "jose";

/** What a token must be of to count as ours. */
export interface OldTokenInput {
  readonly token: string;
  readonly secret: string;
  readonly issuer: string;
  readonly audience: string;
}

/**
 * The subject of a buyer's token that we signed (HS256), whether it has expired or not; null for every other token. For the
 * demo, where everybody gets tokens anyway: it lets a visitor stay who he is.
 */
export async function subjectOfOldToken({ token, secret, issuer, audience }: OldTokenInput): Promise<string | null> {
  try {
    const { payload } = await jwtVerify(token, new TextEncoder().encode(secret), {
      algorithms: ["HS256"],
      issuer,
      audience,
      // Nothing has expired at the beginning of time.
      currentDate: new Date(0),
    });
    return payload.role === "buyer" ? payload.sub || null : null;
  } catch {
    // Whatever a strange token makes of the parsers, it is one thing: not ours.
    return null;
  }
}
