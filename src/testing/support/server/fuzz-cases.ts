// Sends generated requests to all routes: no response is a 500 or contains data of another tenant. Runs on every engine.

import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { inspect } from 'node:util';
import fc from 'fast-check';
import type { EngineUrls } from '../../../platform/index.ts';
import { soakMinutes } from '../../property-runs.ts';
import { openApi, type Api } from './api-rig.ts';
import { requestsFor, send, type FuzzAnswer, type FuzzRequest, type Pool } from './fuzz-rig.ts';

/** A marker in all data of the other tenant, and in no name. */
const secret = 'flow-that-only-acme-knows';

export const fuzzRuns = soakMinutes > 0 ? 5_000 * soakMinutes : 700;

/** The causes of 500 responses, for the failure message. */
let defect: unknown;
const quiet = (): void => {};
const log = {
  debug: quiet,
  info: quiet,
  warn: quiet,
  error(fields: object) {
    defect = 'err' in fields ? fields.err : fields;
  },
};

export async function openForFuzz(engines?: EngineUrls): Promise<Api> {
  const often = { perSecond: 1e6, burst: 1e6 };
  const options = { rateLimits: { known: often, unknown: often }, observer: { log } };
  await using opened = new AsyncDisposableStack();
  const api = opened.use(await openApi(options, engines));
  await api.fail('acme', secret);
  await api.fail('core');
  const tasks = await api.platform.tasks();
  for (const type of ['email-send', 'report-gen']) {
    await tasks.enqueue({ type, payload: { secret }, tenant: 'acme', correlationId: secret });
    await tasks.enqueue({ type, payload: { to: 'c-1' }, tenant: 'core' });
  }
  opened.move();
  return api;
}

/** Existing names and ids, including those of the other tenant. */
export async function poolOf({ platform }: Api): Promise<Pool> {
  const { outbox, sagas } = platform.engines;
  const letters = await platform.engines.subscriptions.deadLetters.list({});
  const messages = (await outbox?.list({})) ?? [];
  const entries = await sagas.list({});
  const jobs = (await (await platform.tasks()).list()).tasks;
  const ids = [
    ...jobs.map(({ id }) => id),
    ...letters.map(({ id }) => id),
    ...messages.map(({ id }) => id),
  ];
  const streams = [...letters, ...entries].map(({ stream }) => stream);
  const own = 'banking.account.v1-core-a1';
  const subscriptions = ['sub:banking:accounts:v1', 'sub:banking:alarm:v1'];
  const names = 'banking account core acme a1 partner:x all balance start handler'.split(' ');
  const values = ['account.deposited.v1', '0000000000000000', '2026-01-01T00:00:00Z', own];
  return {
    any: fc.constantFrom(...ids, ...streams, ...subscriptions, ...names, ...values),
    fields: {
      id: fc.constantFrom(...ids, 'handler', 'a1'),
      ids: fc.constant(ids),
      stream: fc.constantFrom(own, own, 'banking.review.v1-core-a1', ...streams),
      type: fc.constantFrom('account.deposited.v1', 'email-send', 'report-gen'),
      types: fc.constant({ 'email-send': 1, 'report-gen': 1 }),
      worker: fc.constantFrom('w-1', 'w-2'),
      fence: fc.integer({ min: 0, max: 3 }),
      waitMs: fc.constantFrom(0, 1),
      until: fc.constant('2026-01-01T00:00:00Z'),
      payload: fc.record({ amount: fc.integer({ min: 1, max: 100 }) }),
      expected: fc.constantFrom('any', 'none', 'exists', 0, 1),
      bc: fc.constant('banking'),
      aggregate: fc.constant('account'),
      name: fc.constantFrom(...subscriptions, 'a-token'),
      token: fc.constantFrom('a-token', 'nobody'),
      tenant: fc.constantFrom('core', 'core', 'acme'),
      to: fc.constantFrom('start', '0000000000000001', '2026-01-01T00:00:00Z'),
      since: fc.constant('2026-01-01T00:00:00Z'),
      before: fc.constantFrom('2001-01-01', '2999-01-01'),
      expiresAt: fc.constant('2999-01-01'),
      after: fc.constantFrom('0000000000000000', 'end', '0'),
      command: fc.constantFrom('account.deposit', 'account.review'),
      aggregateId: fc.constantFrom('a1', 'handler'),
      eventId: fc.uuid(),
      causationId: fc.uuid(),
      headers: fc.constant({}),
      cursor: fc.constantFrom(...ids, ...streams, '1'),
      waitFor: fc.constant('0000000000000001'),
    },
  };
}

export async function fuzz(
  api: Api,
  {
    token,
    seed,
    runs = fuzzRuns,
    isBound,
  }: {
    readonly token: string | undefined;
    readonly seed: number;
    readonly runs?: number;
    readonly isBound: boolean;
  },
): Promise<ReadonlySet<number>> {
  const { server } = api;
  // The aliases under /api/v1 have the same handlers.
  const routes = server.routes.filter(({ path }) => !path.startsWith('/api/v1/admin'));
  const statuses = new Set<number>();
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  try {
    await fc.assert(
      fc.asyncProperty(requestsFor(routes, await poolOf(api)), async (request) => {
        const response = await send(server.url, request, { token, agent });
        statuses.add(response.status);
        check(request, response, isBound);
      }),
      // A fraction is never reached: the runs would go on until the time limit.
      { seed, numRuns: Math.ceil(runs), endOnFailure: true, interruptAfterTimeLimit: 600_000 },
    );
  } finally {
    agent.destroy();
  }
  return statuses;
}

function check(request: FuzzRequest, { status, text }: FuzzAnswer, isBound: boolean): void {
  const shown = `${request.method} ${request.path}: ${status} ${text.slice(0, 500)}`;
  assert.ok(status < 500 || status === 504, `${shown}\n${inspect(defect)}`);
  // Node rejects too large headers (431) before the server sees the request.
  const isOurs = status !== 426 && status !== 431 && request.method !== 'HEAD';
  if (status >= 400 && isOurs) {
    const problem = JSON.parse(text) as { status?: number; error?: { code: string } };
    // The vault of the bank has a custom error format.
    if (problem.error === undefined) assert.equal(problem.status, status, shown);
    else assert.match(problem.error.code, /^[A-Z_]+$/, shown);
  }
  if (isBound) assertOwn(text, shown);
}

/** Asserts that the text contains no data of the other tenant. */
export function assertOwn(text: string, shown: string): void {
  assert.ok(!text.includes(secret), shown);
  assert.doesNotMatch(text, /"tenant(Id)?":"acme"/, shown);
}
