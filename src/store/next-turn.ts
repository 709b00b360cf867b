// Page after page must not keep timers, sockets and signals waiting: an engine that reads on the
// caller's thread never leaves it by itself.

/** Taken once: a test that fakes the timers later must not stop the store. */
const immediate = globalThis.setImmediate;

export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    immediate(resolve);
  });
}
