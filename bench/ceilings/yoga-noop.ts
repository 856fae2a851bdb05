/**
 * What GraphQL Yoga can do, as it comes: the same mutation, without a token, without any work. A ceiling for whoever uses it.
 *
 *   PORT        by default a free one
 *   BODY_LIMIT  `default`: Yoga counts a body's bytes, as it does where nobody says otherwise; `off`: it does not
 */
import { createServer } from "node:http";
import { createSchema, createYoga } from "graphql-yoga";
import { announceReady, closeServer, endInOrder, listen, setting } from "../as-program.js";

const schema = createSchema({
  typeDefs: `
    scalar UUID
    input ReserveInput { saleId: ID! itemId: ID! quantity: Int! = 1 requestId: UUID! }
    type Reservation { requestId: UUID! status: String! ahead: Int }
    type ReservePayload { status: String! reservation: Reservation message: String! }
    type Query { serverTime: String! }
    type Mutation { reserve(input: ReserveInput!): ReservePayload! }
  `,
  resolvers: {
    Query: { serverTime: () => new Date().toISOString() },
    Mutation: { reserve: () => ({ status: "SOLD_OUT", reservation: null, message: "This item is sold out." }) },
  },
});

const bodyLimit = setting("BODY_LIMIT", "default");
if (bodyLimit !== "default" && bodyLimit !== "off") throw new Error("BODY_LIMIT must be default or off");
const yoga = createYoga({ schema, ...(bodyLimit === "off" && { maxRequestBodySize: false }) });
const server = createServer((req, res) => void yoga(req, res));
endInOrder(() => closeServer(server));
announceReady(await listen(server));
