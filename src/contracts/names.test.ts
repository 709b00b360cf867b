import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { z } from 'zod';
import { hasCode } from '../foundation/error.ts';
import type { ErrorCode } from '../foundation/error-codes.ts';
import { defineEvent } from './define-event.ts';
import { buildEventType, isEventType, parseEventType } from './event-type.ts';
import { filtersHash } from './filters-hash.ts';
import { buildIdempotencyKey, parseIdempotencyKey } from './idempotency-key.ts';
import { personalDataKind } from './identifier.ts';
import { decodeJobId, encodeJobId, parseRedisKey, redisKeys } from './redis-keys.ts';
import { slackAddressing } from './slack-addressing.ts';
import {
  buildCategory,
  buildStreamName,
  categoryStream,
  eventTypeStream,
  parseStreamName,
} from './stream-name.ts';
import { buildSubscriptionName, parseSubscriptionName } from './subscription-name.ts';
import { createTenantDirectory } from './tenant.ts';
import { propertyRuns } from '../testing/property-runs.ts';

const lower = 'abcdefghijklmnopqrstuvwxyz';
const word = (first: string, rest: string, max: number): fc.Arbitrary<string> =>
  fc
    .tuple(
      fc.constantFrom(...first.split('')),
      fc.string({ unit: fc.constantFrom(...rest.split('')), maxLength: max - 1 }),
    )
    .map(([head, tail]) => head + tail);
const identifiers = fc
  .tuple(
    word(`${lower}0123456789`, `${lower}0123456789`, 8),
    fc.array(word(lower, `${lower}0123456789`, 8), { maxLength: 2 }),
  )
  .map(([first, rest]) => [first, ...rest].join('-'));
const eventTokens = fc
  .array(word(`${lower}0123456789`, `${lower}0123456789`, 8), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join('-'));
const versions = fc.integer({ min: 1, max: 999_999_999 });
const plainTenants = word(`${lower}0123456789`, `${lower}0123456789`, 10);
const tenants = fc
  .array(word(`${lower}0123456789`, `${lower}0123456789`, 6), { minLength: 1, maxLength: 3 })
  .map((parts) => parts.join('-'));
const naturalKeys = fc.string({
  unit: fc.constantFrom(...`${lower}ABCXYZ0123456789._-`.split('')),
  minLength: 1,
  maxLength: 40,
});
const ids = fc.oneof(fc.uuid(), fc.ulid(), naturalKeys, fc.constantFrom('USD', 'invoice-reminder'));
const keyIds = ids.filter((id) => personalDataKind(id) === undefined);

/** Hides an invalid literal from the compiler. */
const untyped = (text: string): string => text;

function rejects(code: ErrorCode, work: () => unknown, pattern = /./): void {
  assert.throws(work, (error) => {
    assert.ok(hasCode(error, code), `expected ${code}, got ${String(error)}`);
    assert.match(error.message, pattern);
    return true;
  });
}

describe('event types', () => {
  test('the document’s examples build and parse', () => {
    assert.equal(buildEventType('payment', 'completed', 1), 'payment.completed.v1');
    for (const type of ['payment.requested.v1', 'currency.created.v1', 'template.updated.v2']) {
      assert.ok(isEventType(type));
    }
  });

  test('parts may start with a digit, as the document’s pattern allows', () => {
    for (const type of ['2fa.enabled.v1', 'payment.2nd.v1', 'a.b-1.v1', 'a-1.b.v2']) {
      assert.ok(isEventType(type), type);
      const { agg, action, version } = parseEventType(type);
      assert.equal(buildEventType(agg, action, version), type);
    }
    assert.equal(buildEventType('2fa', 'code-1-sent', 1), '2fa.code-1-sent.v1');
    assert.equal(defineEvent('2fa.enabled.v1', z.object({})).agg, '2fa');
  });

  test('an aggregate may start with a digit, and its category parses back', () => {
    const stream = buildStreamName('2fa-login', '2fa', 1, 'core', 'u1');
    assert.equal(stream, '2faLogin.2fa.v1-core-u1');
    const { bc, agg, tenant, id } = parseStreamName(stream);
    assert.deepEqual([bc, agg, tenant, id], ['2fa-login', '2fa', 'core', 'u1']);
    // `step1` is the category of the aggregate `step1`.
    rejects('NAME_INVALID', () => buildCategory('shop', untyped('step-1'), 1), /step1/);
  });

  test('parsing reverses building', () => {
    fc.assert(
      fc.property(eventTokens, eventTokens, versions, (agg, action, version) => {
        const type = buildEventType(agg, action, version);
        assert.deepEqual(parseEventType(type), { agg, action, version });
      }),
    );
  });

  test('an invalid name is rejected with the corrected spelling', () => {
    rejects('NAME_INVALID', () => parseEventType('Payment.Completed.v1'), /payment\.completed\.v1/);
    rejects(
      'NAME_INVALID',
      () => parseEventType('payment_request.created.v01'),
      /payment-request\.created\.v1/,
    );
    rejects('NAME_INVALID', () => buildEventType('payment', untyped('Completed'), 1), /completed/);
    for (const bad of [
      'payment.completed',
      'payment.completed.v0',
      'payment..v1',
      '',
      'a.b.v1.',
      'a.b.c.v1',
      'a--b.c.v1',
      '-a.b.v1',
      'a-.b.v1',
    ]) {
      rejects('NAME_INVALID', () => parseEventType(bad));
      assert.equal(isEventType(bad), false);
    }
    rejects('NAME_INVALID', () => buildEventType('payment', 'completed', 1.5));
    rejects('KEY_TOO_LONG', () => buildEventType('a'.repeat(130), 'b', 1));
  });

  test('a very long name is rejected quickly and quoted in part', () => {
    rejects('NAME_INVALID', () => parseEventType(`${'a-'.repeat(50_000)}.b.v1`));
    rejects('NAME_INVALID', () => parseStreamName('a'.repeat(1_000_000)), /^.{0,300}$/s);
  });
});

describe('stream names', () => {
  test('parses the document’s example exactly', () => {
    assert.deepEqual(parseStreamName('banking.currency.v1-core-USD'), {
      category: 'banking.currency.v1',
      bc: 'banking',
      agg: 'currency',
      version: 1,
      tenant: 'core',
      id: 'USD',
    });
  });

  test('a UUID after the tenant does not become part of the tenant', () => {
    const parsed = parseStreamName(
      'paymenthub.payment.v1-core-017f8c4a-2b1c-7000-8000-000000000001',
    );
    assert.equal(parsed.tenant, 'core');
    assert.equal(parsed.id, '017f8c4a-2b1c-7000-8000-000000000001');
  });

  test('hyphens of context and aggregate become camelCase, so the category has none', () => {
    const stream = buildStreamName(
      'core-template-manager',
      'template',
      1,
      'core',
      'invoice-reminder',
    );
    assert.equal(stream, 'coreTemplateManager.template.v1-core-invoice-reminder');
    assert.equal(parseStreamName(stream).bc, 'core-template-manager');
    assert.equal(buildCategory('a-b', 'c-d', 2), 'aB.cD.v2');
  });

  test('every built stream name parses back, without a directory', () => {
    fc.assert(
      fc.property(
        identifiers,
        identifiers,
        versions,
        plainTenants,
        ids,
        (bc, agg, version, tenant, id) => {
          const stream = buildStreamName(bc, agg, version, tenant, id);
          const parsed = parseStreamName(stream);
          assert.deepEqual(parsed, {
            category: buildCategory(bc, agg, version),
            bc,
            agg,
            version,
            tenant,
            id,
          });
        },
      ),
    );
  });

  test('every built stream name parses back, with overlapping hyphenated tenants known', () => {
    let ambiguous = 0;
    fc.assert(
      fc.property(
        identifiers,
        identifiers,
        fc.array(tenants, { minLength: 1, maxLength: 8 }),
        fc.nat(),
        fc.oneof(ids, tenants),
        (bc, agg, known, at, id) => {
          const directory = new Set(known);
          const tenant = known[at % known.length] ?? 'core';
          let stream: string;
          try {
            stream = buildStreamName(bc, agg, 1, tenant, id, directory);
          } catch (error) {
            if (!hasCode(error, 'STREAM_AMBIGUOUS')) throw error;
            ambiguous += 1;
            return;
          }
          const parsed = parseStreamName(stream, directory);
          assert.deepEqual([parsed.tenant, parsed.id], [tenant, id]);
        },
      ),
      { numRuns: propertyRuns(2_000) },
    );
    assert.ok(ambiguous < 200, `${ambiguous} of 2000 were rejected`);
  });

  test('the longest known tenant wins', () => {
    const known = new Set(['demo', 'demo-za', 'demo-za-west']);
    assert.equal(parseStreamName('a.b.v1-demo-za-west-1', known).tenant, 'demo-za-west');
    assert.equal(parseStreamName('a.b.v1-demo-za-1', known).tenant, 'demo-za');
    assert.equal(parseStreamName('a.b.v1-demo-1', known).tenant, 'demo');
    assert.equal(parseStreamName('a.b.v1-other-za-1', known).tenant, 'other');
  });

  test('a tenant with a hyphen must be in the directory', () => {
    rejects(
      'TENANT_UNKNOWN',
      () => buildStreamName('banking', 'currency', 1, 'demo-za', 'USD'),
      /directory/,
    );
    const stream = buildStreamName(
      'banking',
      'currency',
      1,
      'demo-za',
      'USD',
      new Set(['demo-za']),
    );
    assert.equal(stream, 'banking.currency.v1-demo-za-USD');
  });

  test('an id that would parse as another tenant’s is rejected', () => {
    const known = new Set(['demo', 'demo-za']);
    rejects(
      'STREAM_AMBIGUOUS',
      () => buildStreamName('a', 'b', 1, 'demo', 'za-1', known),
      /demo-za/,
    );
    rejects('STREAM_AMBIGUOUS', () =>
      buildStreamName('a', 'b', 1, 'demo', 'za-1', new Set(['demo-za'])),
    );
  });

  test('invalid parts are rejected', () => {
    for (const bad of [
      'banking.currency-core-USD',
      'banking.currency.v1-core',
      'banking.currency.v1',
      'core-template-manager.template.v1-core-x',
      'Banking.currency.v1-core-USD',
      'banking.currency.v1-core-',
      'banking.currency.v1--USD',
      'banking.currency.v1-core-a b',
      'banking.currency.v01-core-x',
    ]) {
      rejects('NAME_INVALID', () => parseStreamName(bad));
    }
    rejects('NAME_INVALID', () => buildStreamName('a', 'b', 1, 'Core', 'x'));
    rejects('NAME_INVALID', () => buildStreamName('a', 'b', 1, 'core', ''));
    rejects('NAME_INVALID', () => buildStreamName('a', 'b', 1, 'core', 'a:b'));
    rejects('NAME_INVALID', () => buildStreamName('a', 'b', 0, 'core', 'x'));
    rejects(
      'NAME_INVALID',
      () => buildStreamName(untyped('coreTemplateManager'), 'b', 1, 'core', 'x'),
      /core-template-manager/,
    );
    rejects('KEY_TOO_LONG', () => buildStreamName('a', 'b', 1, 'core', 'x'.repeat(200)));
  });

  test('index streams are named as EventStoreDB names them', () => {
    assert.equal(categoryStream('banking', 'currency', 1), '$ce-banking.currency.v1');
    assert.equal(eventTypeStream('payment.completed.v1'), '$et-payment.completed.v1');
    rejects('NAME_INVALID', () => eventTypeStream('PaymentCompleted'));
  });
});

describe('tenant directory', () => {
  test('rejects a tenant that is a prefix of another, in either order', () => {
    rejects('TENANT_OVERLAP', () => createTenantDirectory(['demo', 'demo-za']), /demo-za/);
    rejects('TENANT_OVERLAP', () => createTenantDirectory(['demo-za', 'demo']));
    const directory = createTenantDirectory(['demo-za', 'demo-uk', 'core']);
    directory.add('core');
    assert.deepEqual([...directory], ['demo-za', 'demo-uk', 'core']);
    assert.deepEqual([directory.size, directory.has('demo')], [3, false]);
  });

  test('no id of a listed tenant is ambiguous', () => {
    fc.assert(
      fc.property(fc.array(tenants, { minLength: 1, maxLength: 10 }), ids, (wanted, id) => {
        const directory = createTenantDirectory();
        for (const tenant of wanted) {
          try {
            directory.add(tenant);
          } catch (error) {
            assert.ok(hasCode(error, 'TENANT_OVERLAP'));
          }
        }
        for (const tenant of directory) {
          const stream = buildStreamName('a', 'b', 1, tenant, id, directory);
          assert.equal(parseStreamName(stream, directory).tenant, tenant);
        }
      }),
    );
  });
});

describe('Redis keys', () => {
  test('builds the document’s keys exactly', () => {
    const at = ['core', 'banking', 'currency', 1] as const;
    assert.equal(redisKeys.snapshot(...at, 'USD'), 'app:{core}:banking:currency:v1:USD');
    assert.equal(redisKeys.hash(...at, 'USD'), 'app:{core}:banking:currency:v1:h:USD');
    assert.equal(redisKeys.indexByCode(...at), 'app:{core}:banking:currency:v1:index:by-code');
    assert.equal(redisKeys.setAll(...at), 'app:{core}:banking:currency:v1:set:all');
    assert.equal(redisKeys.setEnabled(...at), 'app:{core}:banking:currency:v1:set:enabled');
    assert.equal(redisKeys.zsetByUpdated(...at), 'app:{core}:banking:currency:v1:zset:by-updated');
    assert.match(
      redisKeys.list(...at, {}),
      /^app:\{core\}:banking:currency:v1:list:\{[0-9a-f]{32}\}$/,
    );
    assert.equal(
      redisKeys.queue('core', 'paymenthub', 'payment', 1, 'process'),
      'mq:{core}:paymenthub:payment:v1:process',
    );
    assert.equal(
      redisKeys.jobId('core', 'paymenthub', 'payment', 'process', '017f8c4a'),
      'job:{core}:paymenthub:payment:process:017f8c4a',
    );
    assert.equal(
      redisKeys.checkpoint('sub:payments:payment-projection:v1'),
      'checkpoint:esdb:sub:payments:payment-projection:v1',
    );
    assert.equal(
      redisKeys.workflowCheckpoint('payment', 'core'),
      'checkpoint:workflow:payment:{core}',
    );
    assert.equal(
      redisKeys.workflowByStatus('payment', 'core'),
      'checkpoint:workflow:payment:{core}:by-status',
    );
    assert.equal(
      redisKeys.workflowDue('payment', 'paymenthub', 1, 3),
      'checkpoint:workflow:{payment}:paymenthub:v1:due:3',
    );
    assert.equal(
      redisKeys.workflowPart('payment', 'paymenthub', 1, 'tenants'),
      'checkpoint:workflow:{payment}:paymenthub:v1:tenants',
    );
    assert.deepEqual(parseRedisKey(redisKeys.workflows()), { kind: 'workflows' });
    rejects('NAME_INVALID', () => redisKeys.workflowDue('payment', 'paymenthub', 1, -1));
  });

  test('BullMQ’s prefix and name joined equal the document’s queue key', () => {
    const { prefix, name } = redisKeys.queueAddress('core', 'paymenthub', 'payment', 1, 'process');
    assert.deepEqual([prefix, name], ['mq:{core}:paymenthub:payment:v1', 'process']);
    assert.equal(
      `${prefix}:${name}`,
      redisKeys.queue('core', 'paymenthub', 'payment', 1, 'process'),
    );
  });

  test('every built key parses back to its parts', () => {
    fc.assert(
      fc.property(
        tenants,
        identifiers,
        identifiers,
        versions,
        keyIds,
        identifiers,
        (tenant, bc, agg, version, id, name) => {
          const owned = { tenant, bc, agg };
          const at = [tenant, bc, agg, version] as const;
          assert.deepEqual(parseRedisKey(redisKeys.snapshot(...at, id)), {
            kind: 'snapshot',
            ...owned,
            version,
            name: id,
          });
          assert.deepEqual(parseRedisKey(redisKeys.hash(...at, id)), {
            kind: 'hash',
            ...owned,
            version,
            name: id,
          });
          assert.deepEqual(parseRedisKey(redisKeys.index(...at, name)), {
            kind: 'index',
            ...owned,
            version,
            name,
          });
          assert.deepEqual(parseRedisKey(redisKeys.set(...at, name)), {
            kind: 'set',
            ...owned,
            version,
            name,
          });
          assert.deepEqual(parseRedisKey(redisKeys.zset(...at, name)), {
            kind: 'zset',
            ...owned,
            version,
            name,
          });
          assert.deepEqual(parseRedisKey(redisKeys.zset(...at, `${name}:${id}`)), {
            kind: 'zset',
            ...owned,
            version,
            name: `${name}:${id}`,
          });
          assert.throws(() => parseRedisKey(`${redisKeys.set(...at, name)}:${id}`));
          assert.deepEqual(parseRedisKey(redisKeys.meta(...at, 'fences')), {
            kind: 'meta',
            ...owned,
            version,
            name: 'fences',
          });
          assert.deepEqual(parseRedisKey(redisKeys.list(...at, { id })), {
            kind: 'list',
            ...owned,
            version,
            name: filtersHash({ id }),
          });
          assert.deepEqual(parseRedisKey(redisKeys.queue(...at, name)), {
            kind: 'queue',
            ...owned,
            version,
            name,
          });
          assert.deepEqual(parseRedisKey(redisKeys.jobId(tenant, bc, agg, name, id)), {
            kind: 'job',
            ...owned,
            work: name,
            id,
          });
          const subscription = buildSubscriptionName(bc, agg, version);
          assert.deepEqual(parseRedisKey(redisKeys.checkpoint(subscription)), {
            kind: 'checkpoint',
            subscription,
          });
          assert.deepEqual(parseRedisKey(redisKeys.lease(subscription, 'shards')), {
            kind: 'lease',
            subscription,
            what: 'shards',
          });
          assert.deepEqual(parseRedisKey(redisKeys.workflowCheckpoint(bc, tenant)), {
            kind: 'workflow',
            saga: bc,
            tenant,
          });
          assert.deepEqual(parseRedisKey(redisKeys.workflowByStatus(bc, tenant)), {
            kind: 'workflow-by-status',
            saga: bc,
            tenant,
          });
          for (const [key, part] of [
            [redisKeys.workflowDue(agg, bc, version, 7), 'due:7'],
            [redisKeys.workflowPart(agg, bc, version, 'tenants'), 'tenants'],
          ]) {
            assert.deepEqual(parseRedisKey(key ?? ''), {
              kind: 'workflow-part',
              saga: agg,
              bc,
              version,
              name: part,
            });
          }
        },
      ),
    );
    for (const bad of [
      'app:core:banking:currency:v1:USD',
      'app:{core}:banking:currency:v1:list:x:y',
      'x',
      'app:{core}:b:a:v1:',
    ]) {
      rejects('NAME_INVALID', () => parseRedisKey(bad));
    }
  });

  test('job ids are encoded without colons for BullMQ and decoded again', () => {
    assert.equal(encodeJobId('job:{core}:a:b:w:1'), 'job~{core}~a~b~w~1');
    fc.assert(
      fc.property(fc.string(), (text) => {
        const encoded = encodeJobId(text);
        assert.ok(!encoded.includes(':'));
        assert.equal(decodeJobId(encoded), text);
      }),
    );
  });

  test('ids that look like e-mail addresses or phone numbers are rejected', () => {
    for (const id of [
      'jane.doe@example.com',
      '+27821234567',
      '0821234567',
      '082-123-4567',
      '555-123-4567',
      '14155552671',
    ]) {
      rejects('KEY_HOLDS_PERSONAL_DATA', () => redisKeys.snapshot('core', 'a', 'b', 1, id));
      rejects('KEY_HOLDS_PERSONAL_DATA', () => redisKeys.jobId('core', 'a', 'b', 'w', id));
      rejects('KEY_HOLDS_PERSONAL_DATA', () => slackAddressing.snapshot('core', id));
    }
    for (const id of [
      'USD',
      '42',
      '123456789',
      '2025-09-30',
      '20250930',
      '1.2.3',
      'order-1000000001',
      '1234567890123456789',
      '017f8c4a-2b1c-7000-8000-000000000001',
      '01ARZ3NDEKTSV4RRFFQ69G5FAV',
    ]) {
      assert.ok(redisKeys.snapshot('core', 'a', 'b', 1, id).endsWith(id));
    }
  });

  test('keys of 256 characters and invalid parts are rejected', () => {
    rejects('KEY_TOO_LONG', () => redisKeys.snapshot('core', 'a', 'b', 1, 'x'.repeat(240)));
    rejects('NAME_INVALID', () => redisKeys.snapshot('co:re', 'a', 'b', 1, 'x'));
    rejects('NAME_INVALID', () => redisKeys.snapshot('core', 'a', 'b', 1, 'x}y'));
    rejects('NAME_INVALID', () => redisKeys.snapshot('core', 'A', 'b', 1, 'x'));
    rejects('NAME_INVALID', () => redisKeys.queue('core', 'a', 'b', 1, 'do:it'));
    rejects('NAME_INVALID', () => redisKeys.checkpoint('payments'));
  });
});

describe('filters hash', () => {
  test('ignores only key order and absent members, at every depth', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.infiniteStream(fc.nat()), (value, random) => {
        assert.equal(filtersHash(shuffled(value, random)), filtersHash(value));
      }),
    );
    assert.equal(filtersHash({ a: 1, b: undefined }), filtersHash({ a: 1 }));
    assert.notEqual(filtersHash([1, 2]), filtersHash([2, 1]));
    assert.notEqual(filtersHash({ a: '1' }), filtersHash({ a: 1 }));
    assert.notEqual(filtersHash({ a: { b: 1 } }), filtersHash({ b: { a: 1 } }));
  });

  test('keeps its value across releases, because caches outlive a deployment', () => {
    assert.equal(filtersHash({ status: 'open', page: 1 }), '2e989569b6181ed44f8e3e3bfe5781cd');
  });

  test('rejects values without a stable JSON form', () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    for (const bad of [cycle, { a: Number.NaN }, { a: 1n }, { a: () => 1 }]) {
      rejects('PAYLOAD_NOT_JSON', () => filtersHash(bad));
    }
  });

  function shuffled(value: unknown, random: Iterator<number>): unknown {
    if (Array.isArray(value)) return value.map((item) => shuffled(item, random));
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([key, member]) => ({
      order: random.next().value as number,
      entry: [key, shuffled(member, random)] as const,
    }));
    return Object.fromEntries(
      entries.toSorted((a, b) => a.order - b.order).map(({ entry }) => entry),
    );
  }
});

describe('subscription names and idempotency keys', () => {
  test('subscription names build and parse', () => {
    assert.equal(
      buildSubscriptionName('core-lookup', 'currency-projection', 1),
      'sub:core-lookup:currency-projection:v1',
    );
    fc.assert(
      fc.property(identifiers, identifiers, versions, (service, name, version) => {
        assert.deepEqual(parseSubscriptionName(buildSubscriptionName(service, name, version)), {
          service,
          name,
          version,
        });
      }),
    );
    for (const bad of ['sub:a:b', 'sub:A:b:v1', 'a:b:v1', 'sub:a:b:v0'])
      rejects('NAME_INVALID', () => parseSubscriptionName(bad));
  });

  test('idempotency keys build and parse, also with bars in the natural key', () => {
    assert.equal(
      buildIdempotencyKey({
        tenant: 'core',
        service: 'notify',
        operation: 'sendSlack',
        naturalKey: 'maker-test1',
      }),
      'core|notify|sendSlack|maker-test1',
    );
    fc.assert(
      fc.property(
        tenants,
        identifiers,
        identifiers,
        fc.stringMatching(/^[ -~]{1,60}$/),
        (tenant, service, operation, naturalKey) => {
          const parts = { tenant, service, operation, naturalKey };
          assert.deepEqual(parseIdempotencyKey(buildIdempotencyKey(parts)), parts);
        },
      ),
    );
    for (const bad of ['core|a|b', 'core|a|b|', 'Core|a|b|c', 'core||b|c', 'core|a|b|c\nd']) {
      rejects('NAME_INVALID', () => parseIdempotencyKey(bad));
    }
    rejects('KEY_TOO_LONG', () => parseIdempotencyKey(`core|a|b|${'x'.repeat(250)}`));
  });
});

describe('Slack addressing', () => {
  test('keys, stream and queue equal the document’s', () => {
    const id = '8d1f';
    assert.equal(
      slackAddressing.snapshot('core', id),
      'notification.slack:v1:{core}:message-request:8d1f',
    );
    assert.equal(
      slackAddressing.dispatched('core', id),
      'notification.slack:v1:{core}:message-request:8d1f:dispatched',
    );
    assert.equal(
      slackAddressing.sendLock('core', id),
      'notification.slack:v1:{core}:message-request:8d1f:send-lock',
    );
    assert.equal(
      slackAddressing.indexUpdated('core'),
      'notification.slack:v1:{core}:idx:message-request:updated',
    );
    assert.equal(
      slackAddressing.indexByStatus('core', 'queued'),
      'notification.slack:v1:{core}:idx:message-request:by-status:queued',
    );
    assert.equal(slackAddressing.stream('core', id), 'notification.slack.request-core-8d1f');
    assert.equal(slackAddressing.queueName, 'MessageRequestQueue');
    assert.equal(slackAddressing.jobName, 'send-message-request');
    for (const type of Object.values(slackAddressing.events)) assert.ok(isEventType(type));
  });

  test('streams parse back, also with hyphenated tenants', () => {
    fc.assert(
      fc.property(tenants, ids, (tenant, id) => {
        const directory = createTenantDirectory([tenant]);
        const stream = slackAddressing.stream(tenant, id, directory);
        assert.deepEqual(slackAddressing.parseStream(stream, directory), { tenant, id });
      }),
    );
    rejects('NAME_INVALID', () => slackAddressing.parseStream('notification.mail.request-core-1'));
    rejects('NAME_INVALID', () => slackAddressing.parseStream('notification.slack.request-core'));
    rejects('TENANT_UNKNOWN', () => slackAddressing.stream('demo-za', '1'));
  });
});
