// What the process says of itself: time, memory, and how busy its event loop is.

import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { Sample } from './create-metrics.ts';
import type { Collector } from './collect-metrics.ts';

const resolutionMs = 10;

/** Measures the event loop until it is disposed. */
export function processCollector(): Collector & Disposable {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  let before = performance.eventLoopUtilization();

  return {
    name: 'process',
    metrics: [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'process_start_time_seconds',
      'nodejs_heap_size_used_bytes',
      'nodejs_heap_size_total_bytes',
      'nodejs_external_memory_bytes',
      'nodejs_eventloop_lag_p50_seconds',
      'nodejs_eventloop_lag_p99_seconds',
      'nodejs_eventloop_utilization',
      'nodejs_version_info',
    ],
    collect(): readonly Sample[] {
      const { user, system } = process.cpuUsage();
      const memory = process.memoryUsage();
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, before);
      before = now;
      // Measured from one tick of a timer to the next: the time between them is no delay.
      const lagOf = (percent: number): number =>
        delay.count === 0 ? 0 : Math.max(0, delay.percentile(percent) / 1e6 - resolutionMs) / 1_000;
      const samples = [
        { name: 'process_cpu_seconds_total', value: (user + system) / 1e6 },
        { name: 'process_resident_memory_bytes', value: memory.rss },
        { name: 'process_start_time_seconds', value: performance.timeOrigin / 1_000 },
        { name: 'nodejs_heap_size_used_bytes', value: memory.heapUsed },
        { name: 'nodejs_heap_size_total_bytes', value: memory.heapTotal },
        { name: 'nodejs_external_memory_bytes', value: memory.external },
        { name: 'nodejs_eventloop_lag_p50_seconds', value: lagOf(50) },
        { name: 'nodejs_eventloop_lag_p99_seconds', value: lagOf(99) },
        { name: 'nodejs_eventloop_utilization', value: utilization },
        { name: 'nodejs_version_info', value: 1, labels: { version: process.version } },
      ];
      delay.reset();
      return samples;
    },
    [Symbol.dispose]: () => void delay.disable(),
  };
}
