// What has to be asked for is asked at the scrape: each collector within a time limit, never twice at
// once, and not again while its last answer is fresh. However often somebody scrapes, and however slow a
// database is, it has one question of each kind to answer.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Logger } from '../foundation/observer.ts';
import type { Metrics, Sample } from './create-metrics.ts';

export interface Collector {
  readonly name: string;
  /** Those that it answers for: when it fails they are gone, rather than old. */
  readonly metrics: readonly string[];
  collect(signal: AbortSignal): readonly Sample[] | Promise<readonly Sample[]>;
}

export interface CollectOptions {
  readonly clock?: Clock | undefined;
  readonly log?: Logger | undefined;
  /** Whoever takes longer counts as failed at this scrape. Default: 2 s. */
  readonly timeoutMs?: number | undefined;
  /** How long an answer is good; longer where it took long. Default: 10 s. */
  readonly freshMs?: number | undefined;
}

export const collectLimits = { timeoutMs: 2_000, freshMs: 10_000 } as const;
/** A twentieth of the time, at most, is spent on answering. */
const share = 20;

/** Returns what a scrape calls first; never rejects. */
export function collectMetrics(
  metrics: Metrics,
  collectors: readonly Collector[],
  options: CollectOptions = {},
): () => Promise<void> {
  const asked = collectors.map((collector) => askOne(collector, options));
  const names = ['telemetry_collector_up', ...collectors.flatMap((each) => each.metrics)];
  return async () => {
    const answers = await Promise.all(asked.map((ask) => ask()));
    const up = collectors.map(({ name }, at): Sample => ({
      name: 'telemetry_collector_up',
      value: answers[at] === undefined ? 0 : 1,
      labels: { collector: name },
    }));
    // All at once: two collectors may answer for one metric.
    metrics.replace(names, [...up, ...answers.flatMap((samples) => samples ?? [])]);
  };
}

type Answer = readonly Sample[] | undefined;

/** Undefined: it did not answer in time, or failed. */
function askOne(collector: Collector, options: CollectOptions): () => Promise<Answer> {
  const { clock = systemClock, log } = options;
  const timeoutMs = options.timeoutMs ?? collectLimits.timeoutMs;
  const freshMs = options.freshMs ?? collectLimits.freshMs;
  let last: { readonly samples: readonly Sample[]; readonly untilMs: number } | undefined;
  let running: Promise<Answer> | undefined;

  async function ask(signal: AbortSignal): Promise<Answer> {
    const startMs = clock.now();
    try {
      const samples = await collector.collect(signal);
      const nowMs = clock.now();
      last = { samples, untilMs: nowMs + Math.max(freshMs, (nowMs - startMs) * share) };
      return samples;
    } catch (err) {
      log?.warn({ collector: collector.name, err }, 'metrics could not be collected');
      return undefined;
    } finally {
      running = undefined;
    }
  }

  return async () => {
    if (last !== undefined && clock.now() < last.untilMs) return last.samples;
    const late = new AbortController();
    const done = new AbortController();
    // Who did not heed the signal may still be at it: then its answer is for the next scrape.
    running ??= ask(late.signal);
    const timeUp = clock.sleep(timeoutMs, done.signal).then(
      () => late.abort(new MillraceError('HANDLER_TIMEOUT', `no metrics within ${timeoutMs} ms`)),
      () => undefined,
    );
    try {
      return await Promise.race([running, timeUp.then(() => undefined)]);
    } finally {
      done.abort();
    }
  };
}
