import { serverTime } from "../../operations/server-time.js";
import { builder } from "../builder.js";

builder.queryField("serverTime", (t) =>
  t.field({
    type: "DateTime",
    description: "for countdowns; the clock that opens and closes sales",
    resolve: (_root, _args, { deps }) => serverTime(deps),
  }),
);
