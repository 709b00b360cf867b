// Subscriptions and published subjects over the gbe hierarchy, in any number.

import type { Random } from '../random.ts';

export interface SubjectPopulation {
  readonly patterns: readonly string[];
  /** Drawn from the whole population, so that nothing that was matched lately is at hand. */
  readonly subjects: readonly string[];
}

/**
 * The number of wide wildcards is the same at every size. A match has as many results in a small
 * population as in a large one, so what grows with the size is the search alone.
 */
const widePatterns = [
  'gbe.>',
  'gbe.events.>',
  'gbe.notify.broadcast.>',
  'gbe.notify.customer.*.alert',
];
const levels = ['alert', 'info', 'digest'];
const taskStreams = ['queue', 'progress', 'terminal'];
const events = ['system.health', 'system.error', 'api.request', 'api.error', 'auth.login'];

export function createSubjectPopulation(
  random: Random,
  options: { readonly patterns: number; readonly subjects: number },
): SubjectPopulation {
  const narrow = options.patterns - widePatterns.length;
  const customers = Math.round(narrow * 0.6);
  const taskTypes = Math.round(narrow * 0.01);
  const topics = Math.round(narrow * 0.2);
  const tasks = narrow - customers - taskTypes - topics;
  const patterns = [
    ...widePatterns,
    ...times(customers, (index) => `${customer(index)}.${index % 2 === 0 ? '>' : 'alert'}`),
    ...times(taskTypes, (index) => `${task(index)}.*`),
    ...times(topics, topic),
    ...times(tasks, (index) => `${task(Math.floor(index / 3))}.${taskStreams[index % 3] ?? ''}`),
  ];
  const draw = (): string => {
    const share = random.next();
    if (share < 0.6) return `${customer(random.below(customers))}.${random.pick(levels)}`;
    if (share < 0.7)
      return `${customer(customers + random.below(customers))}.${random.pick(levels)}`;
    if (share < 0.8) return topic(random.below(topics));
    if (share < 0.95) return `${task(random.below(tasks / 3))}.${random.pick(taskStreams)}`;
    return `gbe.events.${random.pick(events)}`;
  };
  return overTheWire({
    patterns: random.shuffle(patterns),
    subjects: times(options.subjects, draw),
  });
}

/** Texts that are put together here lie in pieces in memory; those that arrive are whole. */
function overTheWire<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

function customer(index: number): string {
  return `gbe.notify.customer.cust_${scattered(index)}`;
}

function topic(index: number): string {
  return `gbe.notify.topic.topic-${scattered(index)}`;
}

function task(index: number): string {
  return `gbe.tasks.job-${scattered(index)}`;
}

/** Ids of customers do not count upwards; a product with an odd number never gives one twice. */
function scattered(index: number): string {
  return (Math.imul(index + 1, 0x9e3779b1) >>> 0).toString(36);
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_item, index) => make(index));
}
