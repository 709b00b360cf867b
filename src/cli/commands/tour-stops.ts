// The stops of the tour. Every line shows the result of a real call.

import { inspect } from 'node:util';
import { createEnvelope, validateEnvelope } from '../../contracts/envelope.ts';
import { buildEventType, parseEventType } from '../../contracts/event-type.ts';
import { buildIdempotencyKey } from '../../contracts/idempotency-key.ts';
import { lintSource } from '../../contracts/lint/lint-source.ts';
import { encodeJobId, redisKeys } from '../../contracts/redis-keys.ts';
import { buildStreamName, parseStreamName } from '../../contracts/stream-name.ts';
import { matchSubject } from '../../contracts/subject-match.ts';
import { subjects } from '../../contracts/subjects.ts';
import { createTenantDirectory } from '../../contracts/tenant.ts';
import {
  backoffMs,
  eventFlowBackoff,
  outboxBackoff,
  type BackoffPolicy,
} from '../../foundation/backoff.ts';
import { hasCode, MillraceError } from '../../foundation/error.ts';
import { idFromKey } from '../../foundation/ids.ts';

interface TourLine {
  /** The code that was run; empty for a continued line. */
  readonly call: string;
  readonly result: string;
  readonly isRejected?: boolean;
}

export interface TourStop {
  readonly title: string;
  readonly show: () => Promise<readonly TourLine[]> | readonly TourLine[];
}

export const tourStops: readonly TourStop[] = [
  { title: 'Names contain the event, the aggregate and the tenant', show: names },
  { title: 'One envelope for every event', show: envelopes },
  { title: 'Redis keys keep a tenant in one slot', show: keys },
  { title: 'Subjects route messages', show: routes },
  { title: 'A repeated command has the same id, a failed one is retried later', show: repeats },
  { title: 'The linter finds hand-written names', show: linter },
];

function names(): readonly TourLine[] {
  const tenants = createTenantDirectory(['core', 'demo-za']);
  const stream = buildStreamName(
    'core-template-manager',
    'template',
    1,
    'demo-za',
    'inv-7',
    tenants,
  );
  const { bc, agg, tenant, id } = parseStreamName(stream, tenants);
  return [
    {
      call: "buildEventType('payment', 'completed', 1)",
      result: buildEventType('payment', 'completed', 1),
    },
    rejected("parseEventType('Payment.Completed.v1')", () =>
      parseEventType('Payment.Completed.v1'),
    ),
    {
      call: "buildStreamName('core-template-manager', 'template', 1, 'demo-za', 'inv-7', tenants)",
      result: stream,
    },
    { call: 'parseStreamName(stream, tenants)', result: JSON.stringify({ bc, agg, tenant, id }) },
    rejected('the same call without the tenant directory', () =>
      buildStreamName('core-template-manager', 'template', 1, 'demo-za', 'inv-7'),
    ),
  ];
}

function envelopes(): readonly TourLine[] {
  const envelope = createEnvelope(
    { type: 'payment.completed.v1', payload: { amount: 12.5 } },
    { tenant: 'core', aggregate: { bc: 'paymenthub', type: 'payment', id: 'p-1' } },
  );
  const bad = { type: 'PaymentCompleted', tenant: 'Core', payload: {} };
  return [
    ...block("createEnvelope({ type: 'payment.completed.v1', … }, …)", envelope),
    ...problems('validateEnvelope({ type: "PaymentCompleted", tenant: "Core", payload: {} })', bad),
  ];
}

function keys(): readonly TourLine[] {
  const { prefix, name } = redisKeys.queueAddress('core', 'paymenthub', 'payment', 1, 'process');
  const jobId = redisKeys.jobId('core', 'paymenthub', 'payment', 'process', 'p-1');
  return [
    {
      call: "redisKeys.snapshot('core', 'banking', 'currency', 1, 'USD')",
      result: redisKeys.snapshot('core', 'banking', 'currency', 1, 'USD'),
    },
    {
      call: "redisKeys.queueAddress('core', 'paymenthub', 'payment', 1, 'process')",
      result: `${prefix} + ${name}`,
    },
    { call: "encodeJobId(redisKeys.jobId(…, 'p-1'))", result: encodeJobId(jobId) },
    rejected("redisKeys.snapshot('core', 'crm', 'contact', 1, 'ada@example.com')", () =>
      redisKeys.snapshot('core', 'crm', 'contact', 1, 'ada@example.com'),
    ),
  ];
}

function routes(): readonly TourLine[] {
  const subject = subjects.notify.customer('cust_abc123').alert;
  const patterns = [subjects.notify.everyCustomer.alert, subjects.notify.all, subjects.events.all];
  return [
    { call: "subjects.notify.customer('cust_abc123').alert", result: subject },
    ...patterns.map((pattern) => {
      const matches = matchSubject(pattern, subject);
      return {
        call: '',
        result: `${pattern.padEnd(30)} ${matches ? 'matches' : 'does not match'}`,
        isRejected: !matches,
      };
    }),
  ];
}

function repeats(): readonly TourLine[] {
  const key = buildIdempotencyKey({
    tenant: 'core',
    service: 'notify',
    operation: 'sendSlack',
    naturalKey: 'maker-test1',
  });
  return [
    { call: `idFromKey('${key}')`, result: `${idFromKey(key)}, every time` },
    {
      call: 'delays of eventFlowBackoff',
      result: `${delays(eventFlowBackoff, 5)}, then dead-lettered`,
    },
    {
      call: 'delays of outboxBackoff',
      result: `${delays(outboxBackoff, 6)}, … plus up to 10 s of jitter`,
    },
  ];
}

function delays(policy: BackoffPolicy, count: number): string {
  return Array.from({ length: count }, (_, index) => backoffMs(policy, index + 1, 0) / 1_000)
    .map((seconds) => (seconds < 60 ? `${seconds} s` : `${seconds / 60} min`))
    .join(', ');
}

/** Joins the invalid name from parts, so that the linter does not report it in this file. */
async function linter(): Promise<readonly TourLine[]> {
  const code = ['const key = `app:$', '{tenant}:banking:currency:v1:$', '{id}`;'].join('');
  try {
    const [finding] = await lintSource('tour.ts', code);
    return [
      { call: code, result: finding?.reason ?? '', isRejected: true },
      { call: '', result: `→ ${finding?.suggestion ?? ''}` },
    ];
  } catch (error) {
    if (!hasCode(error, 'DRIVER_MISSING')) throw error;
    return [{ call: code, result: error.message, isRejected: true }];
  }
}

function block(call: string, value: unknown): readonly TourLine[] {
  const [first = '', ...rest] = inspect(value, { breakLength: 92, compact: 3 }).split('\n');
  return [{ call, result: first }, ...rest.map((result) => ({ call: '', result }))];
}

function problems(call: string, value: unknown): readonly TourLine[] {
  const error = errorOf(() => validateEnvelope(value));
  const found = error?.details['problems'];
  const lines = Array.isArray(found) ? (found as readonly { path: string; message: string }[]) : [];
  return [
    { call, result: `${error?.code ?? ''}, with all problems:`, isRejected: true },
    ...lines.map(({ path, message }) => ({
      call: '',
      result: `${path} ${message}`,
      isRejected: true,
    })),
  ];
}

function rejected(call: string, run: () => unknown): TourLine {
  const error = errorOf(run);
  return { call, result: `${error?.code ?? ''}: ${error?.message ?? ''}`, isRejected: true };
}

function errorOf(run: () => unknown): MillraceError | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    if (error instanceof MillraceError) return error;
    throw error;
  }
}
