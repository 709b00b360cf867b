// What a process knows of a group between two fetches; the truth is in Redis.

import type { GroupRecord } from './redis-bus-groups.ts';

/** What this process knows of a group. */
export interface GroupView {
  readonly record: GroupRecord;
  readonly filters: readonly string[];
  readonly domains: Map<string, DomainView>;
  readonly streams: Set<string>;
  /** Streams that may have something. */
  readonly ready: Set<string>;
  version: number;
  sweptAtMs: number;
  /** Counts what happened, for those who wait. */
  news: number;
  readonly waiting: Set<() => void>;
}

export interface DomainView {
  /** How many were out when it was last asked. */
  pending: number;
  /** When one of them may be free. */
  dueAtMs: number;
}

export function createGroupView(record: GroupRecord, filters: readonly string[]): GroupView {
  return {
    record,
    filters,
    domains: new Map(),
    streams: new Set(),
    ready: new Set(),
    version: 0,
    sweptAtMs: Number.NEGATIVE_INFINITY,
    news: 0,
    waiting: new Set(),
  };
}

export function domainView(view: GroupView, domain: string): DomainView {
  let there = view.domains.get(domain);
  if (there === undefined) {
    there = { pending: 0, dueAtMs: Number.POSITIVE_INFINITY };
    view.domains.set(domain, there);
  }
  return there;
}

export function pendingOf(view: GroupView): number {
  let pending = 0;
  for (const each of view.domains.values()) pending += each.pending;
  return pending;
}

export function dueAtMsOf(view: GroupView): number {
  let dueAtMs = Number.POSITIVE_INFINITY;
  for (const each of view.domains.values()) dueAtMs = Math.min(dueAtMs, each.dueAtMs);
  return dueAtMs;
}

export function tellNews(view: GroupView): void {
  view.news += 1;
  for (const wake of view.waiting) wake();
}
