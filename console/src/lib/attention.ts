// What needs attention, from the numbers of the overview: pure.

import type { ResponseOf } from './api.ts';
import type { View } from '../views.ts';
import { countText, durationText } from './format.ts';

export interface Attention {
  readonly key: string;
  readonly level: 'failing' | 'paused' | 'warning';
  readonly subject: string;
  readonly text: string;
  /** The view that shows it. */
  readonly view: View['path'];
}

type Overview = ResponseOf<'GET /admin/overview'>;
type Role = ResponseOf<'GET /admin/system'>['roles'][number];

const lagSecondsMax = 60;

/** The most urgent first. */
export function attentionOf(overview: Overview, roles: readonly Role[]): readonly Attention[] {
  const { subscriptions, outbox, jobs, failures: counts, failing } = overview;
  const found: Attention[] = [];
  for (const { subscription, failures, reason } of failing) {
    found.push({
      key: `shard ${subscription}`,
      level: 'failing',
      subject: subscription,
      text: `has stopped ${countText(failures)} times without progress: ${reason}`,
      view: '/subscriptions',
    });
  }
  for (const { subscription, deadLetters, waiting } of subscriptions) {
    if (deadLetters === 0) continue;
    const queued = waiting === 0 ? '' : `; ${countText(waiting)} events of their streams wait`;
    found.push({
      key: `dead ${subscription}`,
      level: 'failing',
      subject: subscription,
      text: `${plural(deadLetters, 'dead letter')}${queued}`,
      view: '/failures',
    });
  }
  if (outbox !== undefined) found.push(...outboxItems(outbox));
  if (jobs !== undefined && jobs.failed > 0) {
    found.push({
      key: 'jobs',
      level: 'failing',
      subject: 'jobs',
      text: plural(jobs.failed, 'failed job'),
      view: '/failures',
    });
  }
  for (const [source, noun] of [
    ['bus', 'dead letter'],
    ['saga', 'parked saga'],
  ] as const) {
    if (counts[source] === 0) continue;
    found.push({
      key: source,
      level: 'failing',
      subject: source === 'bus' ? 'bus' : 'sagas',
      text: plural(counts[source], noun),
      view: '/failures',
    });
  }
  for (const { subscription, state, seconds } of subscriptions) {
    if (state === 'paused') {
      const text = 'is paused; its events are not processed';
      found.push({
        key: `paused ${subscription}`,
        level: 'paused',
        subject: subscription,
        text,
        view: '/subscriptions',
      });
    } else if (seconds >= lagSecondsMax) {
      const text = `is ${durationText(seconds * 1_000)} behind`;
      found.push({
        key: `lag ${subscription}`,
        level: 'warning',
        subject: subscription,
        text,
        view: '/subscriptions',
      });
    }
  }
  const warnings = Map.groupBy(
    roles.filter(({ warning }) => warning !== undefined),
    ({ warning }) => warning,
  );
  for (const [warning = '', all] of warnings) {
    const subject = all.map(({ title }) => title).join(', ');
    found.push({
      key: `role ${warning}`,
      level: 'warning',
      subject,
      text: warning,
      view: '/system',
    });
  }
  return found;
}

function outboxItems({ counts, paused }: NonNullable<Overview['outbox']>): readonly Attention[] {
  const found: Attention[] = [];
  if (counts.DEAD > 0) {
    const text = `${plural(counts.DEAD, 'message')} could not be delivered and will not be tried again`;
    found.push({
      key: 'outbox dead',
      level: 'failing',
      subject: 'outbox',
      text,
      view: '/failures',
    });
  }
  if (counts.FAILED > 0) {
    const text = `${plural(counts.FAILED, 'message')} failed and will be tried again`;
    found.push({
      key: 'outbox failed',
      level: 'warning',
      subject: 'outbox',
      text,
      view: '/failures',
    });
  }
  for (const destination of paused) {
    const text = 'is paused; its messages wait in the outbox';
    found.push({
      key: `destination ${destination}`,
      level: 'paused',
      subject: destination,
      text,
      view: '/deliveries',
    });
  }
  return found;
}

function plural(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`;
}
