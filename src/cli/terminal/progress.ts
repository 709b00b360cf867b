// One line that shows the progress of a long run: on a terminal only, and erased when the run ends.

import { grouped } from './text.ts';
import type { Output } from './write-out.ts';

/** Short runs show nothing; long ones update the line a few times a second. */
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

const barCells = 20;

/** `done` is from 0 to 1. */
export function progressBar(done: number, note: string): string {
  const share = Math.min(1, Math.max(0, done));
  const filled = Math.round(share * barCells);
  const bar = '█'.repeat(filled) + '░'.repeat(barCells - filled);
  return `${bar} ${String(Math.floor(share * 100)).padStart(3)} %  ${note}`;
}

/** `12,345 events, 6,172/s`, measured from this call on. */
export function createEventRate(
  nowMs = (): number => performance.now(),
): (events: number) => string {
  const startedMs = nowMs();
  return (events) => {
    const seconds = Math.max(0.001, (nowMs() - startedMs) / 1_000);
    return `${grouped(events)} events, ${grouped(Math.round(events / seconds))}/s`;
  };
}
