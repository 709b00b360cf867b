// Signs of life for readers, so that nothing between takes them for dead: one timer for all of them.

export interface Keepalives extends Disposable {
  /** Every interval from now on, until it is disposed of. */
  add(beat: () => void): Disposable;
}

const slots = 16;

export function createKeepalives(everyMs: number): Keepalives {
  const rounds = Array.from({ length: slots }, () => new Set<() => void>());
  let at = 0;
  const timer = setInterval(
    () => {
      at = (at + 1) % slots;
      for (const beat of rounds[at] ?? []) beat();
    },
    Math.max(1, Math.floor(everyMs / slots)),
  );
  timer.unref();
  return {
    add(beat) {
      const round = rounds[at];
      round?.add(beat);
      return { [Symbol.dispose]: () => void round?.delete(beat) };
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
