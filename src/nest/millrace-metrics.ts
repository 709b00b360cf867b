// The metrics of the module in the text format of Prometheus, for a controller of the application.

import { Inject, Injectable } from '@nestjs/common';
import { collectMetrics } from '../telemetry/collect-metrics.ts';
import { outboxCollectors } from '../telemetry/collectors.ts';
import { metricsContentTypes } from '../telemetry/create-metrics.ts';
import { MillraceRuntime } from './millrace-runtime.ts';

/**
 * Counters and durations of this process, and the figures of outbox and subscriptions in the database, which all
 * processes share.
 *
 * @example
 * import { Controller, Get, Header } from '@nestjs/common';
 * import { MillraceMetrics } from 'millrace/nest';
 *
 * @Controller('metrics')
 * export class MetricsController {
 *   constructor(private readonly metrics: MillraceMetrics) {}
 *
 *   @Get()
 *   @Header('content-type', MillraceMetrics.contentType)
 *   read(): Promise<string> {
 *     return this.metrics.read();
 *   }
 * }
 */
export class MillraceMetrics {
  static readonly contentType = metricsContentTypes.prometheus;
  readonly #collect: () => Promise<void>;
  readonly #expose: () => string;

  constructor({ store, subscriptions, ledger, metrics, observer }: MillraceRuntime) {
    const projecting = store && subscriptions && { store, subscriptions };
    const collectors = outboxCollectors({ projecting, ledger });
    this.#collect = collectMetrics(metrics, collectors, { log: observer.log });
    this.#expose = metrics.expose;
  }

  /** The body of `GET /metrics`. Never rejects; figures that could not be read are missing. */
  async read(): Promise<string> {
    await this.#collect();
    return this.#expose();
  }
}

Injectable()(MillraceMetrics);
Inject(MillraceRuntime)(MillraceMetrics, undefined, 0);
