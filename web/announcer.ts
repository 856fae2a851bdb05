/** Tells screen readers what has changed: seldom enough to be listened to. */
export interface Announcer {
  /** What was to be said of the same topic and wasn't said yet is dropped. */
  say(topic: string, text: string): void;
}

/** Long enough for a sentence, and for what belongs together to be said together. */
const PAUSE_MS = 1_500;

/** @param show puts the text into the live region */
export function createAnnouncer(show: (text: string) => void): Announcer {
  const waiting = new Map<string, string>();
  const said = new Map<string, string>();
  let pausing = false;

  const flush = () => {
    pausing = false;
    const news = [...waiting].filter(([topic, text]) => said.get(topic) !== text);
    waiting.clear();
    if (news.length === 0) return;
    for (const [topic, text] of news) said.set(topic, text);
    show(news.map(([, text]) => text).join(" "));
    pause();
  };
  const pause = () => {
    pausing = true;
    setTimeout(flush, PAUSE_MS);
  };

  return {
    say(topic, text) {
      waiting.set(topic, text);
      if (!pausing) queueMicrotask(() => !pausing && flush());
    },
  };
}
