// What Prometheus scrapes. For those who may read: it tells how busy whom, and what fails.

import { MillraceError } from '../../foundation/error.ts';
import { metricsContentType } from '../../telemetry/create-metrics.ts';
import { route, type Route } from '../../platform/modules/route.ts';

export function metricsRoute(metrics: () => Promise<string>): Route {
  return route({
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics, as Prometheus reads them',
    tag: 'health',
    access: 'read',
    answers: { 200: { description: 'The text', contentType: metricsContentType } },
    async handle({ principal }) {
      if (principal?.tenant !== undefined) {
        throw new MillraceError('NOT_ALLOWED', 'metrics are of all tenants', {
          details: { field: 'authorization' },
        });
      }
      return { contentType: metricsContentType, stream: one(await metrics()) };
    },
  });
}

async function* one(text: string): AsyncGenerator<string> {
  yield text;
}
