// Slack accepts about one message per second and channel, and a few hundred per minute and workspace. Each
// worker reserves the next free time in a token bucket of one token, kept in a key that all processes share.

import { reserveTokens, type Clock } from 'millrace/foundation';
import type { KeyStore } from 'millrace/work';

/** Either a reserved time, or a delay after which to ask again. */
type Reservation = { readonly waitMs: number } | { readonly delayMs: number };

export interface PaceOptions {
  readonly keys: KeyStore;
  readonly clock: Clock;
  /** A worker that would wait longer gets a `delayMs` instead of a reservation. */
  readonly waitMaxMs: number;
}

const triesMax = 50;

export interface Pace {
  take(line: string, intervalMs: number): Promise<Reservation>;
  /** Grants no reservation before then. */
  pause(line: string, ms: number): Promise<void>;
}

/** `notification.slack:v1:{core}:pace:<workspace>[:<channel>]` */
export function paceLine(tenant: string, workspaceCode: string, channelId?: string): string {
  const line = `notification.slack:v1:{${tenant}}:pace:${workspaceCode}`;
  return channelId === undefined ? line : `${line}:${channelId}`;
}

export function createPace({ keys, clock, waitMaxMs }: PaceOptions): Pace {
  /** Replaces the stored time by `next`, with compare-and-set; `next` without a time keeps it. */
  async function change<Result>(
    line: string,
    next: (freeAtMs: number, nowMs: number) => { readonly to?: number; readonly result: Result },
  ): Promise<Result | undefined> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const stored = await keys.get(line);
      const nowMs = clock.now();
      const { to, result } = next(Number(stored?.value ?? 0), nowMs);
      if (to === undefined) return result;
      const replacement = { from: stored?.value, to: String(to), ttlMs: to - nowMs + 1_000 };
      if (await keys.replace(line, replacement)) return result;
    }
    return undefined;
  }

  return {
    async take(line, intervalMs) {
      const reservation = await change<Reservation>(line, (freeAtMs, nowMs) => {
        const request = { count: 1, perMs: intervalMs, fullAtMs: freeAtMs, nowMs, wanted: 1 };
        const { waitMs, fullAtMs } = reserveTokens(request);
        if (waitMs > waitMaxMs) return { result: { delayMs: waitMs } };
        return { to: fullAtMs, result: { waitMs } };
      });
      return reservation ?? { delayMs: intervalMs };
    },
    async pause(line, ms) {
      await change(line, (freeAtMs, nowMs) => ({ to: Math.max(freeAtMs, nowMs + ms), result: 0 }));
    },
  };
}
