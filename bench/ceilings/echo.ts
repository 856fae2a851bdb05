/**
 * What node:http alone can do: reads a JSON body and answers with a small one of the size of a refusal. A ceiling.
 *
 *   PORT  by default a free one
 */
import { createServer } from "node:http";
import { announceReady, closeServer, endInOrder, listen } from "../as-program.js";

const server = createServer((req, res) => {
  const chunks: Buffer[] = [];
  req.on("data", (chunk: Buffer) => chunks.push(chunk));
  req.on("end", () => {
    const { query } = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { query: string };
    const body = JSON.stringify({
      data: { reserve: { status: "SOLD_OUT", reservation: null, message: `${query.length} characters were asked.` } },
    });
    res.writeHead(200, {
      "content-type": "application/json; charset=utf-8",
      "content-length": Buffer.byteLength(body),
    });
    res.end(body);
  });
});
endInOrder(() => closeServer(server));
announceReady(await listen(server));
