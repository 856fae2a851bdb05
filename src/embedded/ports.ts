import { createServer } from "node:net";
import { StartFailure } from "./failure.js";

/** A port of 127.0.0.1 that is free now. Another process can be faster: whoever uses it must be ready to try again. */
export function findFreePort(): Promise<number> {
  return listenOnce(0, "127.0.0.1");
}

/**
 * Makes sure that the API will be able to listen.
 *
 * @returns the port, chosen where 0 was asked for
 * @throws StartFailure saying what to type instead
 */
export async function claimablePort(port: number, host: string): Promise<number> {
  try {
    return await listenOnce(port, host);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE") {
      throw new StartFailure(
        `Port ${port} of ${host} is in use by another program. Choose another one: PORT=${port + 1} npm start`,
      );
    }
    if (code === "EACCES")
      throw new StartFailure(`Port ${port} needs special rights. Choose one above 1023: PORT=4000 npm start`);
    throw new StartFailure(
      `HOST=${host} can't be listened on (${code}). Use 127.0.0.1, or 0.0.0.0 for every address of this machine.`,
    );
  }
}

function listenOnce(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : port));
    });
  });
}
