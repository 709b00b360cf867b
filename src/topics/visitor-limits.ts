// How much one visitor may do, by address or by user: one token bucket per kind of action, and daily counts.

import type { Clock } from '../foundation/clock.ts';
import { reserveTokens, type TokenBucket } from '../foundation/token-bucket.ts';
import { ntfyError, type NtfyProblemName } from './ntfy-problems.ts';

export interface NotifyLimits {
  readonly requestsBurst: number;
  readonly requestsReplenishMs: number;
  /** Per day, by UTC. */
  readonly messagesPerDay: number;
  readonly emailsBurst: number;
  readonly emailsReplenishMs: number;
  readonly subscriptionsMax: number;
  readonly newTopicsBurst: number;
  readonly newTopicsReplenishMs: number;
  readonly topicsMax: number;
  readonly authFailuresBurst: number;
  readonly authFailuresReplenishMs: number;
  readonly attachmentBytesMax: number;
  readonly attachmentBytesPerVisitor: number;
  readonly attachmentBytesTotal: number;
  readonly attachmentBytesPerDay: number;
  readonly attachmentExpiryMs: number;
  readonly messageBytesMax: number;
  readonly messageExpiryMs: number;
  readonly delayMsMin: number;
  readonly delayMsMax: number;
  readonly keepaliveMs: number;
}

/** ntfy's own defaults. */
export const notifyLimits: NotifyLimits = {
  requestsBurst: 60,
  requestsReplenishMs: 5_000,
  messagesPerDay: 17_280,
  emailsBurst: 16,
  emailsReplenishMs: 3_600_000,
  subscriptionsMax: 30,
  newTopicsBurst: 100,
  newTopicsReplenishMs: 60_000,
  topicsMax: 15_000,
  authFailuresBurst: 30,
  authFailuresReplenishMs: 60_000,
  attachmentBytesMax: 15 * 1_048_576,
  attachmentBytesPerVisitor: 100 * 1_048_576,
  attachmentBytesTotal: 5 * 1_073_741_824,
  attachmentBytesPerDay: 500 * 1_048_576,
  attachmentExpiryMs: 3 * 3_600_000,
  messageBytesMax: 4_096,
  messageExpiryMs: 12 * 3_600_000,
  delayMsMin: 10_000,
  delayMsMax: 3 * 86_400_000,
  keepaliveMs: 45_000,
};

const bucketNames = ['requests', 'emails', 'newTopics', 'authFailures', 'bytes'] as const;
type BucketName = (typeof bucketNames)[number];

interface Visitor {
  /** When each bucket is full again. */
  readonly fullAtMs: Record<BucketName, number>;
  day: number;
  messages: number;
  subscriptions: number;
}

const visitorsMax = 100_000;
const dayMs = 86_400_000;

export interface VisitorBook {
  /** Each of these throws once the visitor is over the limit. */
  request(visitor: string): void;
  message(visitor: string): void;
  email(visitor: string): void;
  newTopic(visitor: string): void;
  authAttempt(visitor: string): void;
  authFailure(visitor: string): void;
  /** Bytes of attachments that the visitor uploads or downloads; false: over the limit. */
  bytes(visitor: string, count: number): boolean;
  subscribe(visitor: string): Disposable;
  messagesToday(visitor: string): number;
}

export function createVisitorBook(limits: NotifyLimits, clock: Clock): VisitorBook {
  const visitors = new Map<string, Visitor>();
  const bucket = (burst: number, replenishMs: number): TokenBucket => {
    // Bounded on both sides, so 0 forbids and Infinity allows everything.
    const count = Math.min(Math.max(burst, 1e-9), 1e9);
    return { count, perMs: count * replenishMs };
  };
  const buckets: Readonly<Record<BucketName, TokenBucket>> = {
    requests: bucket(limits.requestsBurst, limits.requestsReplenishMs),
    emails: bucket(limits.emailsBurst, limits.emailsReplenishMs),
    newTopics: bucket(limits.newTopicsBurst, limits.newTopicsReplenishMs),
    authFailures: bucket(limits.authFailuresBurst, limits.authFailuresReplenishMs),
    bytes: { count: limits.attachmentBytesPerDay, perMs: dayMs },
  };

  function of(name: string): Visitor {
    let found = visitors.get(name);
    if (found === undefined) {
      if (visitors.size >= visitorsMax) makeRoom();
      found = {
        fullAtMs: { requests: 0, emails: 0, newTopics: 0, authFailures: 0, bytes: 0 },
        day: dayOf(clock.now()),
        messages: 0,
        subscriptions: 0,
      };
      visitors.set(name, found);
    }
    return found;
  }

  function makeRoom(): void {
    const nowMs = clock.now();
    const day = dayOf(nowMs);
    for (const [name, visitor] of visitors) {
      const isIdle =
        visitor.subscriptions === 0 &&
        bucketNames.every((each) => visitor.fullAtMs[each] <= nowMs) &&
        (visitor.messages === 0 || visitor.day !== day);
      if (isIdle) visitors.delete(name);
    }
    // No visitor is idle: drop the oldest ones without a subscription.
    for (const [name, { subscriptions }] of visitors) {
      if (visitors.size < visitorsMax) return;
      if (subscriptions === 0) visitors.delete(name);
    }
  }

  function reserve(visitor: Visitor | undefined, name: BucketName, wanted = 1) {
    const fullAtMs = visitor?.fullAtMs[name] ?? 0;
    return reserveTokens({ ...buckets[name], fullAtMs, nowMs: clock.now(), wanted });
  }

  function take(visitor: Visitor, name: BucketName, wanted = 1): boolean {
    const { waitMs, fullAtMs } = reserve(visitor, name, wanted);
    if (waitMs > 0) return false;
    visitor.fullAtMs[name] = fullAtMs;
    return true;
  }

  const limited = (name: BucketName, problem: NtfyProblemName) => (visitor: string) => {
    if (!take(of(visitor), name)) throw ntfyError(problem);
  };

  function today(name: string): Visitor {
    const visitor = of(name);
    const day = dayOf(clock.now());
    if (visitor.day !== day) {
      visitor.day = day;
      visitor.messages = 0;
    }
    return visitor;
  }

  return {
    request: limited('requests', 'tooManyRequests'),
    email: limited('emails', 'tooManyEmails'),
    newTopic: limited('newTopics', 'tooManyNewTopics'),
    message(name) {
      const visitor = today(name);
      if (visitor.messages >= limits.messagesPerDay) throw ntfyError('tooManyMessages');
      visitor.messages += 1;
    },
    authAttempt(name) {
      if (reserve(visitors.get(name), 'authFailures').waitMs > 0) {
        throw ntfyError('tooManyAuthFailures');
      }
    },
    authFailure(name) {
      const visitor = of(name);
      visitor.fullAtMs.authFailures = reserve(visitor, 'authFailures').fullAtMs;
    },
    bytes: (name, count) => take(of(name), 'bytes', count),
    subscribe(name) {
      const visitor = of(name);
      if (visitor.subscriptions >= limits.subscriptionsMax) throw ntfyError('tooManySubscriptions');
      visitor.subscriptions += 1;
      let isDisposed = false;
      return {
        [Symbol.dispose]() {
          if (isDisposed) return;
          isDisposed = true;
          visitor.subscriptions -= 1;
        },
      };
    },
    messagesToday: (name) => today(name).messages,
  };
}

function dayOf(nowMs: number): number {
  return Math.floor(nowMs / dayMs);
}

/** An IPv4 address as it is, an IPv6 address by its /64 network, which one household shares. */
export function visitorOfAddress(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  if (!plain.includes(':')) return `ip:${plain}`;
  const [head = '', tail] = plain.split('::');
  const first = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  const missing = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length);
  const groups = [...first, ...Array.from({ length: missing }, () => '0'), ...last];
  return `ip:${groups
    .slice(0, 4)
    .map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''))
    .join(':')}`;
}
