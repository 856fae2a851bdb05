const KNOWN_AT_MOST = 1_000;
const KEPT_AT_MOST = 200;

export type MediaType = "application/json" | "application/graphql-response+json";
const ANSWERED: readonly MediaType[] = ["application/graphql-response+json", "application/json"];

const known = new Map<string, MediaType | null>();

/**
 * The media type that Yoga answers a query or mutation with, by the request's Accept header, or null where it isn't one of
 * JSON's. Its rules are not those of RFC 9110: weights mean nothing, the first type of the list wins.
 */
export function mediaTypeFor(accept: string | undefined): MediaType | null {
  if (accept === undefined || accept === "") return "application/json";
  const before = known.get(accept);
  if (before !== undefined) return before;
  const mediaType = choose(accept);
  if (known.size < KEPT_AT_MOST && accept.length < KNOWN_AT_MOST) known.set(accept, mediaType);
  return mediaType;
}

function choose(accept: string): MediaType | null {
  const asked = accept
    .replace(/\s/g, "")
    .toLowerCase()
    .split(",")
    .map((type) => type.split(";"))
    .filter(([, ...parameters]) => {
      const charset = parameters.find((parameter) => parameter.includes("charset="));
      return !charset || charset === "charset=utf-8";
    })
    .map(([type = ""]) => type.split("/"));
  for (const [type, subtype] of asked) {
    const fit = ANSWERED.filter((answered) => {
      const [own, ownSubtype] = answered.split("/");
      return (type === "*" || type === own) && (subtype === "*" || subtype === ownSubtype);
    });
    if (fit.length > 0) return fit.at(-1) ?? null;
  }
  return null;
}
