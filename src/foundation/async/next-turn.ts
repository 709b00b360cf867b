// Reading many pages must not block timers, sockets and signals: an engine that reads on the
// caller's thread never yields to the event loop.

/** Captured at load time, so a test with fake timers does not stop the store. */
const immediate = globalThis.setImmediate;

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    immediate(resolve);
  });
}
