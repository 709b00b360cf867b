// One line that says how far a long run is, on a terminal only, and gone when the run is done.

import type { Output } from './command.ts';

/** Short runs show nothing; long ones change the line a few times a second. */
const limits = { quietMs: 500, intervalMs: 100, charsMax: 78 } as const;

export interface Progress {
  show(text: string): void;
  clear(): void;
}

export function createProgress(output: Output, nowMs = (): number => performance.now()): Progress {
  let nextMs = nowMs() + limits.quietMs;
  let isShown = false;
  const clear = (): void => {
    if (isShown) output.write('\r\u001b[K');
    isShown = false;
  };
  return {
    show(text) {
      const now = nowMs();
      if (output.isTTY !== true || now < nextMs) return;
      nextMs = now + limits.intervalMs;
      clear();
      output.write(text.slice(0, limits.charsMax));
      isShown = true;
    },
    clear,
  };
}
