// Runs the collectors at a scrape: each with a time limit, never concurrently with itself, and not while its last
// result is fresh. So a slow database has at most one query per collector, however often metrics are scraped.

import { systemClock, type Clock } from '../foundation/clock.ts';
import { MillraceError } from '../foundation/error.ts';
import type { Logger } from '../foundation/observer.ts';
import type { Metrics, Sample } from './create-metrics.ts';

export interface Collector {
  readonly name: string;
  /** The metrics of this collector: if it fails, they are removed rather than stale. */
  readonly metrics: readonly string[];
  collect(signal: AbortSignal): readonly Sample[] | Promise<readonly Sample[]>;
}

export interface CollectOptions {
  readonly clock?: Clock | undefined;
  readonly log?: Logger | undefined;
  /** A collector that takes longer counts as failed at this scrape. Default: 2 s. */
  readonly timeoutMs?: number | undefined;
  /** How long a result is fresh; longer for a slow collector. Default: 10 s. */
  readonly freshMs?: number | undefined;
}

export const collectLimits = { timeoutMs: 2_000, freshMs: 10_000 } as const;
/** A collector runs at most 1/20 of the time. */
const freshPerDuration = 20;

/** Returns a function to call before a scrape; it never rejects. */
export function collectMetrics(
  metrics: Metrics,
  collectors: readonly Collector[],
  options: CollectOptions = {},
): () => Promise<void> {
  const runs = collectors.map((collector) => cachedCollector(collector, options));
  const names = ['telemetry_collector_up', ...collectors.flatMap((each) => each.metrics)];
  return async () => {
    const results = await Promise.all(runs.map((run) => run()));
    const up = collectors.map(({ name }, at): Sample => ({
      name: 'telemetry_collector_up',
      value: results[at] === undefined ? 0 : 1,
      labels: { collector: name },
    }));
    // Replace all samples in one call, because two collectors may share a metric.
    metrics.replace(names, [...up, ...results.flatMap((samples) => samples ?? [])]);
  };
}

type Result = readonly Sample[] | undefined;

/** The function returns undefined if the collector failed or timed out. */
function cachedCollector(collector: Collector, options: CollectOptions): () => Promise<Result> {
  const { clock = systemClock, log } = options;
  const timeoutMs = options.timeoutMs ?? collectLimits.timeoutMs;
  const freshMs = options.freshMs ?? collectLimits.freshMs;
  let last: { readonly samples: readonly Sample[]; readonly untilMs: number } | undefined;
  let running: Promise<Result> | undefined;

  async function collect(signal: AbortSignal): Promise<Result> {
    const startMs = clock.now();
    try {
      const samples = await collector.collect(signal);
      const nowMs = clock.now();
      last = { samples, untilMs: nowMs + Math.max(freshMs, (nowMs - startMs) * freshPerDuration) };
      return samples;
    } catch (err) {
      log?.warn({ collector: collector.name, err }, 'could not collect metrics');
      return undefined;
    } finally {
      running = undefined;
    }
  }

  return async () => {
    if (last !== undefined && clock.now() < last.untilMs) return last.samples;
    const late = new AbortController();
    const done = new AbortController();
    // A collector that ignores the signal may still run: its result is for the next scrape.
    running ??= collect(late.signal);
    const timeUp = clock.sleep(timeoutMs, done.signal).then(
      () =>
        late.abort(
          new MillraceError(
            'HANDLER_TIMEOUT',
            `the metrics were not collected within ${timeoutMs} ms`,
          ),
        ),
      () => undefined,
    );
    try {
      return await Promise.race([running, timeUp.then(() => undefined)]);
    } finally {
      done.abort();
    }
  };
}
