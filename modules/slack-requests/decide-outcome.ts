// What follows from an attempt: sent, failed, or later. Pure.

import type { SlackFound, SlackPosted } from 'millrace/adapters/slack';
import { backoffMs, type BackoffPolicy } from 'millrace/foundation';

export type Step =
  | { readonly kind: 'sent'; readonly ts: string; readonly channelId: string }
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly reason?: string;
      readonly mayBePosted: boolean;
    }
  | {
      readonly kind: 'later';
      readonly code: string;
      readonly delayMs: number;
      readonly mayBePosted: boolean;
      /** False: Slack asked for a pause, which is no failure. */
      readonly counts: boolean;
      /** For all that goes to this workspace. */
      readonly pauseMs?: number;
    };

export interface AttemptRules {
  /** This one, from 1. */
  readonly attempt: number;
  readonly attemptsMax: number;
  /** After an attempt that may have posted: until then Slack may still be at it. */
  readonly settleMs: number;
  /** The first one's rest; each has twice the one before. */
  readonly retryMs: number;
  readonly random: number;
}

type Retry = Extract<SlackPosted, { readonly kind: 'retry' }>;

const backoff: Omit<BackoffPolicy, 'attemptsMax' | 'initialMs' | 'jitterMs'> = {
  factor: 2,
  capMs: 5 * 60_000,
};
/** Where Slack asks for a pause and does not say for how long. */
const pauseMsDefault = 30_000;

export function afterPost(posted: SlackPosted, rules: AttemptRules): Step {
  if (posted.kind === 'sent') {
    return { kind: 'sent', ts: posted.ts, channelId: posted.channel };
  }
  if (posted.kind === 'dead') {
    return { kind: 'failed', code: failureCodeOf(posted.error), mayBePosted: false };
  }
  return again(posted, rules, posted.ambiguous === true);
}

/** Undefined: it is not there, and may be posted. */
export function afterLookup(found: SlackFound, rules: AttemptRules): Step | undefined {
  if (found.kind === 'absent') return undefined;
  if (found.kind === 'found') return { kind: 'sent', ts: found.ts, channelId: found.channel };
  if (found.kind === 'retry') return again(found, rules, true);
  // To post again might be to post twice: somebody has to look.
  const reason = `whether it was posted cannot be told: ${failureCodeOf(found.error)}`;
  return { kind: 'failed', code: 'outcome-unknown', reason, mayBePosted: true };
}

function again(retry: Retry, rules: AttemptRules, mayBePosted: boolean): Step {
  const { attempt, attemptsMax, settleMs, retryMs, random } = rules;
  const code = failureCodeOf(retry.error, retry.ambiguous === true);
  if (code === 'ratelimited') {
    // Slack did nothing: a pause, for all that goes there.
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

/** A code of Slack as it is; of everything else, no word of what was answered. */
export function failureCodeOf(error: string, isAmbiguous = false): string {
  if (/^[a-z][a-z0-9_]{0,99}$/.test(error)) return error;
  const status = /^HTTP (\d{3})\b/.exec(error)?.[1];
  if (status !== undefined) return `http-${status}`;
  return isAmbiguous ? 'no-answer' : 'unreachable';
}
