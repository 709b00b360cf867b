// How much one visitor may do: buckets of a few numbers each, by address or by user. Pure but for the map.

import type { Clock } from '../foundation/clock.ts';
import { refused, type NtfyProblemName } from './ntfy-problems.ts';

export interface NotifyLimits {
  readonly requestsBurst: number;
  readonly requestsReplenishMs: number;
  /** In a day, of the clock's own (UTC). */
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

/** Tokens that are out, as the time at which all of them will be back. */
interface Visitor {
  requestsMs: number;
  emailsMs: number;
  newTopicsMs: number;
  authFailuresMs: number;
  bytesMs: number;
  day: number;
  messages: number;
  subscriptions: number;
}

type Bucket = 'requestsMs' | 'emailsMs' | 'newTopicsMs' | 'authFailuresMs';

const visitorsMax = 100_000;
const dayMs = 86_400_000;

export interface VisitorBook {
  /** Each throws when it is too much. */
  request(visitor: string): void;
  message(visitor: string): void;
  email(visitor: string): void;
  newTopic(visitor: string): void;
  authAttempt(visitor: string): void;
  authFailure(visitor: string): void;
  /** Of attachments that are sent or fetched. */
  bytes(visitor: string, count: number): boolean;
  subscribe(visitor: string): Disposable;
  messagesToday(visitor: string): number;
  readonly size: number;
}

export function createVisitorBook(limits: NotifyLimits, clock: Clock): VisitorBook {
  const visitors = new Map<string, Visitor>();

  function of(name: string): Visitor {
    let found = visitors.get(name);
    if (found === undefined) {
      if (visitors.size >= visitorsMax) makeRoom();
      const day = dayOf(clock.now());
      found = {
        requestsMs: 0,
        emailsMs: 0,
        newTopicsMs: 0,
        authFailuresMs: 0,
        bytesMs: 0,
        day,
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
    for (const [name, each] of visitors) {
      const isIdle =
        each.subscriptions === 0 &&
        Math.max(
          each.requestsMs,
          each.emailsMs,
          each.newTopicsMs,
          each.authFailuresMs,
          each.bytesMs,
        ) <= nowMs &&
        (each.messages === 0 || each.day !== day);
      if (isIdle) visitors.delete(name);
    }
    // All of them are busy: the oldest that reads nothing begins anew.
    for (const [name, each] of visitors) {
      if (visitors.size < visitorsMax) return;
      if (each.subscriptions === 0) visitors.delete(name);
    }
  }

  function take(
    name: string,
    bucket: Bucket,
    {
      burst,
      replenishMs,
      problem,
    }: { readonly burst: number; readonly replenishMs: number; readonly problem: NtfyProblemName },
  ): void {
    const visitor = of(name);
    const nowMs = clock.now();
    const fullAtMs = Math.max(visitor[bucket], nowMs);
    if (fullAtMs - nowMs > (burst - 1) * replenishMs) throw refused(problem);
    visitor[bucket] = fullAtMs + replenishMs;
  }

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
    request: (name) =>
      take(name, 'requestsMs', {
        burst: limits.requestsBurst,
        replenishMs: limits.requestsReplenishMs,
        problem: 'tooManyRequests',
      }),
    message(name) {
      const visitor = today(name);
      if (visitor.messages >= limits.messagesPerDay) throw refused('tooManyMessages');
      visitor.messages += 1;
    },
    email: (name) =>
      take(name, 'emailsMs', {
        burst: limits.emailsBurst,
        replenishMs: limits.emailsReplenishMs,
        problem: 'tooManyEmails',
      }),
    newTopic: (name) =>
      take(name, 'newTopicsMs', {
        burst: limits.newTopicsBurst,
        replenishMs: limits.newTopicsReplenishMs,
        problem: 'tooManyNewTopics',
      }),
    authAttempt(name) {
      const outMs = (visitors.get(name)?.authFailuresMs ?? 0) - clock.now();
      // One token has to be left: ntfy asks for more than one.
      if (outMs > (limits.authFailuresBurst - 1) * limits.authFailuresReplenishMs) {
        throw refused('tooManyAuthFailures');
      }
    },
    authFailure(name) {
      const visitor = of(name);
      visitor.authFailuresMs =
        Math.max(visitor.authFailuresMs, clock.now()) + limits.authFailuresReplenishMs;
    },
    bytes(name, count) {
      const visitor = of(name);
      const nowMs = clock.now();
      const msPerByte = dayMs / limits.attachmentBytesPerDay;
      const fullAtMs = Math.max(visitor.bytesMs, nowMs) + count * msPerByte;
      if (fullAtMs - nowMs > dayMs) return false;
      visitor.bytesMs = fullAtMs;
      return true;
    },
    subscribe(name) {
      const visitor = of(name);
      if (visitor.subscriptions >= limits.subscriptionsMax) throw refused('tooManySubscriptions');
      visitor.subscriptions += 1;
      let isOver = false;
      return {
        [Symbol.dispose]() {
          if (isOver) return;
          isOver = true;
          visitor.subscriptions -= 1;
        },
      };
    },
    messagesToday: (name) => today(name).messages,
    get size() {
      return visitors.size;
    },
  };
}

function dayOf(nowMs: number): number {
  return Math.floor(nowMs / dayMs);
}

/** An address of IPv4 as it is, one of IPv6 by the network that a household has. */
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
