import DataLoader from "dataloader";

const BATCH_MS = 2;
const BATCH_SIZE = 500;

/**
 * A loader that joins what many ask for within two milliseconds into one read, each thing once. Nothing is cached: whoever
 * asks later reads again. `identity` tells which keys mean the same.
 */
export function joinReads<Key, Row>(
  read: (keys: readonly Key[]) => Promise<readonly (Row | null)[]>,
  identity: (key: Key) => string,
): DataLoader<Key, Row | null> {
  const readOnce = async (keys: readonly Key[]) => {
    const distinct = new Map(keys.map((key) => [identity(key), key]));
    const rows = await read([...distinct.values()]);
    const byIdentity = new Map([...distinct.keys()].map((id, index) => [id, rows[index] ?? null]));
    return keys.map((key) => byIdentity.get(identity(key)) ?? null);
  };
  return new DataLoader(readOnce, {
    cache: false,
    maxBatchSize: BATCH_SIZE,
    batchScheduleFn: (dispatch) => void setTimeout(dispatch, BATCH_MS),
  });
}
