/** What the page remembers: in the browser's storage, or, where that is forbidden, for as long as the page lives. */
export interface Storage {
  get(key: string): unknown;
  set(key: string, value: unknown): void;
  remove(key: string): void;
}

/** The part of the browser's localStorage that is used. */
export interface TextStorage {
  getItem(key: string): string | null;
  setItem(key: string, text: string): void;
  removeItem(key: string): void;
}

/** @param open may throw, as browsers do where a visitor forbids storage */
export function createStorage(open: () => TextStorage): Storage {
  const inMemory = new Map<string, string>();
  const attempt = <Value>(use: (storage: TextStorage) => Value, instead: () => Value): Value => {
    try {
      return use(open());
    } catch {
      return instead();
    }
  };
  return {
    get(key) {
      const text = attempt(
        (storage) => storage.getItem(key) ?? inMemory.get(key),
        () => inMemory.get(key),
      );
      return text === undefined ? null : parsed(text);
    },
    set(key, value) {
      const text = JSON.stringify(value);
      attempt(
        (storage) => storage.setItem(key, text),
        () => void inMemory.set(key, text),
      );
    },
    remove(key) {
      inMemory.delete(key);
      attempt(
        (storage) => storage.removeItem(key),
        () => undefined,
      );
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
