// The process in which one subject of a memory case runs: sets up, runs, reports, and ends.

import { setImmediate } from 'node:timers/promises';
import type { Benchmark } from './benchmark.ts';
import { collectGarbage } from './garbage.ts';
import { openCases } from './open-cases.ts';
import type { MemoryReply, MemoryTask } from './memory.ts';

/** Keeps the result of the run alive while memory is measured. */
const retainedObjects: unknown[] = [];
const task = JSON.parse(process.argv[2] ?? '{}') as MemoryTask;
process.send?.(await reply());
process.disconnect?.();

async function reply(): Promise<MemoryReply> {
  try {
    return { rssMiB: await measure() };
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

async function measure(): Promise<number> {
  const { benchmark } = (await import(task.url)) as { readonly benchmark: Benchmark };
  // The parent ends this process when it is interrupted.
  const { signal } = new AbortController();
  await using opened = await openCases(benchmark, { quick: task.quick, signal });
  const work = opened.cases.find(({ name }) => name === task.case);
  const subject = work?.subjects.find(({ name }) => name === task.subject);
  if (subject === undefined) throw new Error(`no subject '${task.subject}' in '${task.case}'`);
  const runner = await subject.setup();
  try {
    const n = work?.batch ?? 1;
    await runner.prepare?.(n);
    retainedObjects.push(await runner.run(n, () => undefined));
    await setImmediate();
    collectGarbage();
    return (await runner.rssMiB?.()) ?? process.memoryUsage.rss() / 2 ** 20;
  } finally {
    await runner.teardown?.();
  }
}
