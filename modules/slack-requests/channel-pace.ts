// Slack takes about one message a second for each channel, and some hundred a minute for a workspace. Whoever
// sends takes the next place in line, in keys that all processes share.

import type { Clock } from 'millrace/foundation';
import type { KeyStore } from 'millrace/work';

/** Now or soon, or to come again later: then no place was taken. */
type Place = { readonly waitMs: number } | { readonly delayMs: number };

export interface PaceOptions {
  readonly keys: KeyStore;
  readonly clock: Clock;
  /** Whoever would wait for longer comes again. */
  readonly waitMaxMs: number;
}

const triesMax = 50;

export interface Pace {
  take(line: string, intervalMs: number): Promise<Place>;
  /** Nobody goes before then. */
  pause(line: string, ms: number): Promise<void>;
}

/** `notification.slack:v1:{core}:pace:<workspace>[:<channel>]` */
export function paceLine(tenant: string, workspaceCode: string, channelId?: string): string {
  const line = `notification.slack:v1:{${tenant}}:pace:${workspaceCode}`;
  return channelId === undefined ? line : `${line}:${channelId}`;
}

export function createPace({ keys, clock, waitMaxMs }: PaceOptions): Pace {
  /** Moves the first free time on by what `next` says; undefined: it stays. */
  async function move<Result>(
    line: string,
    next: (freeAtMs: number, nowMs: number) => { readonly to?: number; readonly result: Result },
  ): Promise<Result | undefined> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const held = await keys.get(line);
      const nowMs = clock.now();
      const { to, result } = next(Math.max(nowMs, Number(held?.value ?? 0)), nowMs);
      if (to === undefined) return result;
      const change = { from: held?.value, to: String(to), ttlMs: to - nowMs + 1_000 };
      if (await keys.replace(line, change)) return result;
    }
    return undefined;
  }

  return {
    async take(line, intervalMs) {
      const place = await move<Place>(line, (freeAtMs, nowMs) => {
        const waitMs = freeAtMs - nowMs;
        if (waitMs > waitMaxMs) return { result: { delayMs: waitMs } };
        return { to: freeAtMs + intervalMs, result: { waitMs } };
      });
      return place ?? { delayMs: intervalMs };
    },
    async pause(line, ms) {
      await move(line, (freeAtMs, nowMs) => ({ to: Math.max(freeAtMs, nowMs + ms), result: 0 }));
    },
  };
}
