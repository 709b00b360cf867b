import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../foundation/error.ts';
import { parseSubject, type ParsedSubject } from './subject-parse.ts';
import { createSubjects, subjectActions } from './subjects.ts';
import { propertyRuns } from '../testing/property-runs.ts';

const plain = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
const root = fc.oneof(fc.constant('gbe'), plain, fc.constantFrom('a.b', 'prod.gbe.x'));
const taskType = fc.stringMatching(/^[a-z][a-z0-9]{0,8}(-[a-z][a-z0-9]{0,8}){0,3}$/);

const at = <const D extends string, const E extends string>(domain: D, entity: E) => ({
  root,
  domain: fc.constant(domain),
  entity: fc.constant(entity),
});
const oneOf = <const A extends string>(actions: readonly A[]) => ({
  action: fc.constantFrom(...actions),
});

const { notify, events, tasks } = subjectActions;
const parsed: fc.Arbitrary<ParsedSubject> = fc.oneof(
  fc.record({ ...at('notify', 'customer'), customerId: plain, ...oneOf(notify.customer) }),
  fc.record({ ...at('notify', 'broadcast'), ...oneOf(notify.broadcast) }),
  fc.record({ ...at('notify', 'topic'), topic: plain }),
  fc.record({ ...at('events', 'system'), ...oneOf(events.system) }),
  fc.record({ ...at('events', 'api'), ...oneOf(events.api) }),
  fc.record({ ...at('events', 'auth'), ...oneOf(events.auth) }),
  fc.record({ ...at('events', 'audit'), ...oneOf(events.audit) }),
  fc.record({ ...at('tasks', 'type'), taskType, ...oneOf(tasks.type) }),
  fc.record({ ...at('tasks', 'control'), ...oneOf(tasks.control) }),
);

test('parses built subjects back to their parts', () => {
  fc.assert(
    fc.property(parsed, (parts) => {
      assert.deepEqual(parseSubject(build(parts), { root: parts.root }), { ...parts });
    }),
    { numRuns: propertyRuns(1000) },
  );
});

test('parses the examples of the document below the default root', () => {
  assert.deepEqual(parseSubject('gbe.notify.customer.cust_abc123.alert'), {
    root: 'gbe',
    domain: 'notify',
    entity: 'customer',
    customerId: 'cust_abc123',
    action: 'alert',
  });
  assert.deepEqual(parseSubject('gbe.tasks.report-gen.terminal'), {
    root: 'gbe',
    domain: 'tasks',
    entity: 'type',
    taskType: 'report-gen',
    action: 'terminal',
  });
  assert.deepEqual(parseSubject('gbe.tasks._control.sweep'), {
    root: 'gbe',
    domain: 'tasks',
    entity: 'control',
    action: 'sweep',
  });
});

const wrong: readonly (readonly [subject: string, reason: RegExp])[] = [
  ['', /empty token/],
  ['gbe', /does not start with "gbe\."/],
  ['gbx.events.api.error', /does not start with "gbe\."/],
  ['gbe.', /empty token/],
  ['gbe.other.x', /unknown domain: expected notify, events, tasks/],
  ['gbe.notify', /unknown entity/],
  ['gbe.notify.customers.c1.alert', /unknown entity: expected customer, broadcast, topic/],
  ['gbe.notify.customer.c1', /has 2 tokens after its domain; expected 3/],
  ['gbe.notify.customer.c1.alert.now', /has 4 tokens/],
  ['gbe.notify.customer.c1.urgent', /unknown last token: expected alert, info, digest/],
  ['gbe.notify.customer.é.alert', /"é", which is not a customer id/],
  ['gbe.notify.customer.*.alert', /contains "\*"/],
  ['gbe.notify.topic.a.b', /has 3 tokens/],
  ['gbe.events.toString.x', /unknown entity: expected system, api, auth, audit/],
  ['gbe.events.api.login', /expected request, error/],
  ['gbe.tasks.email-send.pending', /expected queue, progress, terminal/],
  ['gbe.tasks.emailSend.queue', /"emailSend", which is not a task type/],
  ['gbe.tasks._control.queue', /expected sweep, rebalance, shutdown/],
];

for (const [subject, reason] of wrong) {
  test(`rejects "${subject}" with the reason`, () => {
    assert.throws(
      () => parseSubject(subject),
      (error) => hasCode(error, 'NAME_INVALID') && reason.test(String(error.details['reason'])),
    );
  });
}

test('rejects a subject of 256 characters', () => {
  const subject = `gbe.notify.topic.${'x'.repeat(256)}`;
  assert.throws(
    () => parseSubject(subject),
    (error) => hasCode(error, 'KEY_TOO_LONG'),
  );
});

function build(parts: ParsedSubject): string {
  const built = createSubjects({ root: parts.root });
  switch (parts.entity) {
    case 'customer':
      return built.notify.customer(parts.customerId)[parts.action];
    case 'broadcast':
      return built.notify.broadcast[parts.action];
    case 'topic':
      return built.notify.topic(parts.topic);
    case 'system':
      return built.events.system[parts.action];
    case 'api':
      return built.events.api[parts.action];
    case 'auth':
      return built.events.auth[parts.action];
    case 'audit':
      return built.events.audit[parts.action];
    case 'type':
      return built.tasks.type(parts.taskType)[parts.action];
    default:
      return built.tasks.control[parts.action];
  }
}
