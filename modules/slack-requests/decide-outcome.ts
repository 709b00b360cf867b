// Decides the outcome of an attempt: sent, failed, or retry later. Pure.

import type { SlackFound, SlackPosted } from 'millrace/destinations/slack';
import { backoffMs, type BackoffPolicy } from 'millrace/foundation';

export type Step =
  | { readonly kind: 'sent'; readonly ts: string; readonly channelId: string }
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly reason?: string | undefined;
      readonly mayBePosted: boolean;
    }
  | {
      readonly kind: 'later';
      readonly code: string;
      readonly delayMs: number;
      readonly mayBePosted: boolean;
      /** False: rate-limited by Slack, so it does not count as an attempt. */
      readonly counts: boolean;
      /** Pause for the whole workspace. */
      readonly pauseMs?: number | undefined;
    };

export interface AttemptRules {
  /** The current attempt, from 1. */
  readonly attempt: number;
  readonly attemptsMax: number;
  /** Minimum delay after an attempt that may have posted: Slack may still process it. */
  readonly settleMs: number;
  /** First delay; it doubles with each attempt. */
  readonly retryMs: number;
  readonly random: number;
}

type Retry = Extract<SlackPosted, { readonly kind: 'retry' }>;

const backoff: Omit<BackoffPolicy, 'attemptsMax' | 'initialMs' | 'jitterMs'> = {
  factor: 2,
  capMs: 5 * 60_000,
};
/** Pause if Slack does not send `Retry-After`. */
const pauseMsDefault = 30_000;

export function afterPost(posted: SlackPosted, rules: AttemptRules): Step {
  if (posted.kind === 'sent') {
    return { kind: 'sent', ts: posted.ts, channelId: posted.channel };
  }
  if (posted.kind === 'dead') {
    return { kind: 'failed', code: failureCodeOf(posted.error), mayBePosted: false };
  }
  return retryLater(posted, rules, posted.ambiguous === true);
}

/** Undefined: the message was not found and can be posted. */
export function afterLookup(found: SlackFound, rules: AttemptRules): Step | undefined {
  if (found.kind === 'absent') return undefined;
  if (found.kind === 'found') return { kind: 'sent', ts: found.ts, channelId: found.channel };
  if (found.kind === 'retry') return retryLater(found, rules, true);
  // Posting again could duplicate the message: an operator must decide.
  const reason = `Lookup failed, the message may have been posted: ${failureCodeOf(found.error)}`;
  return { kind: 'failed', code: 'outcome-unknown', reason, mayBePosted: true };
}

function retryLater(retry: Retry, rules: AttemptRules, mayBePosted: boolean): Step {
  const { attempt, attemptsMax, settleMs, retryMs, random } = rules;
  const code = failureCodeOf(retry.error, retry.ambiguous === true);
  if (code === 'ratelimited') {
    // Rate-limited: nothing was posted, and the whole workspace pauses.
    const pauseMs = retry.afterMs ?? pauseMsDefault;
    return { kind: 'later', code, delayMs: pauseMs, pauseMs, mayBePosted, counts: false };
  }
  if (attempt >= attemptsMax) {
    return mayBePosted
      ? { kind: 'failed', code: 'outcome-unknown', reason: code, mayBePosted }
      : { kind: 'failed', code, mayBePosted };
  }
  const policy = { ...backoff, initialMs: retryMs, jitterMs: retryMs / 2, attemptsMax };
  const waitMs = backoffMs(policy, attempt, random);
  const delayMs = Math.max(waitMs, retry.afterMs ?? 0, mayBePosted ? settleMs : 0);
  return { kind: 'later', code, delayMs, mayBePosted, counts: true };
}

/** Error codes of Slack stay; other errors become a generic code without the text of the response. */
export function failureCodeOf(error: string, isAmbiguous = false): string {
  if (/^[a-z][a-z0-9_]{0,99}$/.test(error)) return error;
  const status = /^HTTP (\d{3})\b/.exec(error)?.[1];
  if (status !== undefined) return `http-${status}`;
  return isAmbiguous ? 'no-answer' : 'unreachable';
}
