/** `node healthcheck.mjs 4000` ends with 0 while /ready answers 200 on this port. The image has no curl. */
import { get } from "node:http";

const request = get({ host: "127.0.0.1", port: process.argv[2], path: "/ready", timeout: 2_000 }, (response) => {
  process.exitCode = response.statusCode === 200 ? 0 : 1;
  // What is away, for `docker inspect`.
  response.pipe(process.stdout);
});
request.on("timeout", () => request.destroy(new Error("no answer within 2 s")));
request.on("error", (error) => {
  process.stdout.write(`${error.message}\n`);
  process.exitCode = 1;
});
