// Everything that failed and waits for a decision, grouped by cause: dead letters, deliveries and jobs.

import type { ApiPlatform } from '../api/api-context.ts';
import { causeOf } from './failure-cause.ts';

export const failureLimits = {
  /** Failures that are read per source; more are reported as not counted. */
  lookedMax: 10_000,
  pageSize: 200,
  itemsMax: 200,
  buckets: 24,
} as const;

export const failureSources = ['dead-letter', 'delivery', 'job'] as const;

export interface Failure {
  readonly source: (typeof failureSources)[number];
  readonly id: string;
  /** The subscription, destination or task type. */
  readonly where: string;
  /** The type of the event or message. */
  readonly type: string;
  readonly error: string;
  readonly at: string;
  readonly attempts: number;
  readonly tenant?: string | undefined;
  readonly stream?: string | undefined;
  readonly correlationId?: string | undefined;
  /** False: it is tried again by itself. */
  readonly isFinal: boolean;
  /** Its aggregate waits for a decision. */
  readonly isParked: boolean;
}

export interface FailureGroup {
  readonly fingerprint: string;
  readonly source: Failure['source'];
  readonly where: string;
  readonly title: string;
  readonly count: number;
  /** How many of them are not tried again by themselves. */
  readonly final: number;
  readonly parked: number;
  readonly tenants: readonly string[];
  readonly first: string;
  readonly last: string;
  /** Failures by time, from `first` of all groups to now. */
  readonly buckets: readonly number[];
}

export interface Failures {
  readonly items: readonly Failure[];
  /** False: there are more failures than were read. */
  readonly isComplete: boolean;
}

export async function readFailures(
  platform: ApiPlatform,
  tenant: string | undefined,
): Promise<Failures> {
  const all = await Promise.all([
    bounded(deadLetters(platform, tenant)),
    bounded(deliveries(platform, tenant, 'DEAD')),
    bounded(deliveries(platform, tenant, 'FAILED')),
    bounded(jobs(platform, tenant)),
  ]);
  return {
    items: all.flatMap(({ items }) => items),
    isComplete: all.every(({ isComplete }) => isComplete),
  };
}

/** Groups with the latest failure first. */
export function groupFailures(
  failures: readonly Failure[],
  nowMs: number,
): readonly FailureGroup[] {
  const groups = Map.groupBy(failures, (each) => causeOf(each).fingerprint);
  const fromMs = failures.reduce((ms, { at }) => Math.min(ms, Date.parse(at)), nowMs - 60_000);
  const found = [...groups].flatMap(([fingerprint, all]): readonly FailureGroup[] => {
    const times = all.map(({ at }) => at).toSorted();
    const [sample] = all;
    const [first] = times;
    const last = times.at(-1);
    if (sample === undefined || first === undefined || last === undefined) return [];
    const buckets = Array.from({ length: failureLimits.buckets }, () => 0);
    for (const time of times) {
      const share = (Date.parse(time) - fromMs) / Math.max(1, nowMs - fromMs);
      const at = Math.min(buckets.length - 1, Math.max(0, Math.floor(share * buckets.length)));
      buckets[at] = (buckets[at] ?? 0) + 1;
    }
    return [
      {
        fingerprint,
        source: sample.source,
        where: sample.where,
        title: causeOf(sample).title,
        count: all.length,
        final: all.filter(({ isFinal }) => isFinal).length,
        parked: all.filter(({ isParked }) => isParked).length,
        tenants: [...new Set(all.flatMap((each) => each.tenant ?? []))].toSorted().slice(0, 20),
        first,
        last,
        buckets,
      },
    ];
  });
  return found.toSorted((a, b) => (a.last > b.last ? -1 : 1));
}

async function bounded(pages: AsyncIterable<readonly Failure[]>): Promise<Failures> {
  const items: Failure[] = [];
  for await (const page of pages) {
    items.push(...page);
    if (items.length >= failureLimits.lookedMax) return { items, isComplete: false };
  }
  return { items, isComplete: true };
}

async function* deadLetters(
  { engines }: ApiPlatform,
  tenant: string | undefined,
): AsyncGenerator<readonly Failure[]> {
  const filter = { tenant, status: 'pending' } as const;
  for (let after: string | undefined; ;) {
    const page = await engines.subscriptions.deadLetters.list(filter, {
      limit: failureLimits.pageSize,
      after,
    });
    yield page.map((letter) => ({
      source: 'dead-letter',
      id: letter.id,
      where: letter.handler,
      type: letter.eventType,
      error: letter.error,
      at: letter.createdAt,
      attempts: letter.attempts,
      tenant: letter.tenant,
      stream: letter.stream,
      correlationId: letter.correlationId,
      isFinal: true,
      isParked: letter.parked,
    }));
    if (page.length < failureLimits.pageSize) return;
    after = page.at(-1)?.id;
  }
}

async function* deliveries(
  { engines: { outbox } }: ApiPlatform,
  tenantId: string | undefined,
  status: 'DEAD' | 'FAILED',
): AsyncGenerator<readonly Failure[]> {
  if (outbox === undefined) return;
  for (let after: string | undefined; ;) {
    const page = await outbox.list({ tenantId, status }, { limit: failureLimits.pageSize, after });
    yield page.map((message) => ({
      source: 'delivery',
      id: message.id,
      where: message.integrationType,
      type: message.eventType,
      error: message.lastError ?? '',
      at: message.updatedAt.toISOString(),
      attempts: message.attempts,
      tenant: message.tenantId,
      stream: message.sourceStreamId,
      correlationId: message.correlationId,
      isFinal: status === 'DEAD',
      isParked: false,
    }));
    if (page.length < failureLimits.pageSize) return;
    after = page.at(-1)?.id;
  }
}

async function* jobs(
  { engines, tasks }: ApiPlatform,
  tenant: string | undefined,
): AsyncGenerator<readonly Failure[]> {
  if (!engines.has('tasks')) return;
  const all = await tasks();
  for (let cursor: string | undefined; ;) {
    const page = await all.list(
      { state: 'failed', tenant },
      { cursor, limit: failureLimits.pageSize },
    );
    yield page.tasks.map((job) => ({
      source: 'job',
      id: job.id,
      where: job.type,
      type: job.type,
      error: job.error?.message ?? '',
      at: (job.endedAt ?? job.updatedAt).toISOString(),
      attempts: job.failures,
      tenant: job.tenant,
      correlationId: job.correlationId,
      isFinal: true,
      isParked: false,
    }));
    if (page.cursor === undefined) return;
    cursor = page.cursor;
  }
}
