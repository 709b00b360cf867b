// Whether it lives, and whether it can work: for those who restart it and those who send requests to it.

import { withinTime } from '../../foundation/within-time.ts';
import { Type } from '../../contracts/type.ts';
import { route, type Route } from '../../platform/modules/route.ts';
import type { ApiPlatform } from './api-context.ts';

const answerMsMax = 2_000;
const check = Type.Object({
  status: Type.Union([Type.Literal('ok'), Type.Literal('failing')]),
  checks: Type.Record(
    Type.String(),
    Type.Object({ status: Type.String(), detail: Type.Optional(Type.String()) }),
  ),
});

export function healthRoutes(platform: ApiPlatform): readonly Route[] {
  const base = { method: 'GET', tag: 'health', access: 'anonymous' } as const;
  return [
    route({
      ...base,
      path: '/health/live',
      summary: 'The process runs',
      answers: { 200: { description: 'It does' } },
      handle: async () => ({ body: { status: 'ok' } }),
    }),
    route({
      ...base,
      path: '/health/ready',
      summary: 'Its engines answer, and it works',
      answers: {
        200: { description: 'It does', schema: check },
        503: { description: 'Not now', schema: check },
      },
      async handle() {
        const { store, ledger } = platform.engines;
        const checks = {
          platform: platform.state === 'started' ? ok : failing(`it is ${platform.state}`),
          store: await answers(store.head()),
          outbox: await answers(ledger.paused()),
        };
        const isReady = Object.values(checks).every(({ status }) => status === 'ok');
        return {
          status: isReady ? 200 : 503,
          body: { status: isReady ? 'ok' : 'failing', checks },
        };
      },
    }),
  ];
}

const ok = { status: 'ok' };
const failing = (detail: string) => ({ status: 'failing', detail });

/** Without reasons: anybody may ask. */
async function answers(
  asked: Promise<unknown>,
): Promise<{ readonly status: string; readonly detail?: string }> {
  const answered = asked.then(
    () => true,
    () => false,
  );
  const isGood = await withinTime(answered, { ms: answerMsMax, late: () => false });
  return isGood ? ok : failing('it does not answer');
}
