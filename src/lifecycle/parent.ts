/**
 * For a process that was started with an IPC channel and makes no sense without the one that started it.
 *
 * Calls `stop` once when the parent is gone, however it went: the channel closes also when the parent was killed with
 * SIGKILL and could tell nobody. Without a channel (started by hand, or in a container of its own) nothing happens.
 */
export function exitWithParent(stop: () => void): void {
  const channel = process.channel;
  if (channel === undefined || channel === null) {
    // `send` outlives the channel: there was a parent, and it died before we came to watch it.
    if (process.send) stop();
    return;
  }
  process.once("disconnect", stop);
  // Listening must not keep a process alive that has nothing else to do.
  channel.unref();
}
