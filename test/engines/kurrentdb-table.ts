// The results of the tests of a given KurrentDB server as a table: one line per topic, then every failure.

import { afterEach } from 'node:test';

interface Topic {
  passed: number;
  failed: number;
}

const topics = new Map<string, Topic>();
const failures: string[] = [];

/** Counts the tests that follow in this file by the part of their name before the first colon, or by their suite. */
export function recordResults(): void {
  afterEach((context) => {
    const { fullName, passed } = context as unknown as {
      readonly fullName: string;
      readonly passed: boolean;
    };
    const [, suite = '', name = ''] = /^[^:]*: ([^>]*) > (.*)$/.exec(fullName) ?? [];
    const topic = suite === 'conformance' ? (name.split(':')[0] ?? name) : suite;
    const counts = topics.get(topic) ?? { passed: 0, failed: 0 };
    topics.set(topic, counts);
    if (passed) counts.passed += 1;
    else counts.failed += 1;
    if (!passed) failures.push(`${suite}: ${name}`);
  });
}

export function resultTable(): string {
  const width = Math.max(...[...topics.keys()].map((topic) => topic.length));
  const line = (topic: string, passed: number | string, failed: number | string): string =>
    `| ${topic.padEnd(width)} | ${String(passed).padStart(6)} | ${String(failed).padStart(6)} |`;
  const sum = (key: keyof Topic): number =>
    [...topics.values()].reduce((total, topic) => total + topic[key], 0);
  return [
    line('topic', 'passed', 'failed'),
    ...[...topics].map(([topic, { passed, failed }]) => line(topic, passed, failed)),
    line('all', sum('passed'), sum('failed')),
    ...failures.map((name) => `failed: ${name}`),
  ].join('\n');
}
