// The message limit per user: a sliding window of one minute.

import { MillraceError, type Clock } from 'millrace/foundation';
import type { RateLimitState } from './collab-errors.ts';
import type { WebUser } from './endpoints.ts';

export const messageLimits = { messages: 60, withinMs: 60_000, usersMax: 100_000 } as const;

export interface MessageLimiter {
  /** Counts a message; throws `RATE_LIMITED` above the limit. Undefined: unlimited. */
  take(user: Pick<WebUser, 'tenant' | 'userId'>): RateLimitState | undefined;
}

export function createMessageLimiter(
  clock: Clock,
  limit: number = messageLimits.messages,
): MessageLimiter {
  const { withinMs, usersMax } = messageLimits;
  /** Times of recent messages by user, least recently active user first. */
  const posted = new Map<string, readonly number[]>();

  const removeIdle = (nowMs: number): void => {
    for (const [user, times] of posted) {
      if (posted.size < usersMax && (times.at(-1) ?? 0) > nowMs - withinMs) return;
      posted.delete(user);
    }
  };

  return {
    take({ tenant, userId }) {
      if (limit === Infinity) return undefined;
      const user = `${tenant} ${userId}`;
      const nowMs = clock.now();
      const times = (posted.get(user) ?? []).filter((ms) => ms > nowMs - withinMs);
      const resetSeconds = Math.ceil(((times[0] ?? nowMs) + withinMs - nowMs) / 1_000);
      if (times.length >= limit) {
        const rateLimit: RateLimitState = { limit, remaining: 0, resetSeconds };
        throw new MillraceError('RATE_LIMITED', `Message limit reached: ${limit} per minute.`, {
          details: { retryAfterSeconds: resetSeconds, rateLimit },
        });
      }
      posted.delete(user);
      removeIdle(nowMs);
      posted.set(user, [...times, nowMs]);
      return { limit, remaining: limit - times.length - 1, resetSeconds };
    },
  };
}
