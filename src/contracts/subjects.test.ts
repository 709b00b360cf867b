import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../foundation/error.ts';
import { validatePattern, validateSubject } from './subject-match.ts';
import { consumerGroups, createSubjects, subjects } from './subjects.ts';

/** Fails to compile unless the literal type is exact. */
const typed = <const S extends string>(actual: S, expected: S): void =>
  assert.equal(actual, expected);

const long = 'x'.repeat(65);

test('builds the examples of the document, with their literal types', () => {
  const { notify, events, tasks } = subjects;
  const customer = notify.customer('cust_abc123');
  typed<'gbe.notify.customer.cust_abc123.alert'>(
    customer.alert,
    'gbe.notify.customer.cust_abc123.alert',
  );
  typed<'gbe.notify.customer.cust_abc123.info'>(
    customer.info,
    'gbe.notify.customer.cust_abc123.info',
  );
  typed<'gbe.notify.broadcast.maintenance'>(
    notify.broadcast.maintenance,
    'gbe.notify.broadcast.maintenance',
  );
  typed<'gbe.notify.topic.server-alerts'>(
    notify.topic('server-alerts'),
    'gbe.notify.topic.server-alerts',
  );
  typed<'gbe.events.system.health'>(events.system.health, 'gbe.events.system.health');
  typed<'gbe.events.api.error'>(events.api.error, 'gbe.events.api.error');
  typed<'gbe.events.auth.failure'>(events.auth.failure, 'gbe.events.auth.failure');
  typed<'gbe.events.audit.change'>(events.audit.change, 'gbe.events.audit.change');
  const email = tasks.type('email-send');
  typed<'gbe.tasks.email-send.queue'>(email.queue, 'gbe.tasks.email-send.queue');
  typed<'gbe.tasks.email-send.progress'>(email.progress, 'gbe.tasks.email-send.progress');
  typed<'gbe.tasks.email-send.terminal'>(email.terminal, 'gbe.tasks.email-send.terminal');
  typed<'gbe.tasks._control.sweep'>(tasks.control.sweep, 'gbe.tasks._control.sweep');
});

test('builds the patterns of the document', () => {
  const { notify, events, tasks } = subjects;
  typed<'gbe.notify.customer.cust_abc123.>'>(
    notify.customer('cust_abc123').all,
    'gbe.notify.customer.cust_abc123.>',
  );
  typed<'gbe.notify.customer.*.alert'>(notify.everyCustomer.alert, 'gbe.notify.customer.*.alert');
  typed<'gbe.notify.broadcast.>'>(notify.broadcast.all, 'gbe.notify.broadcast.>');
  typed<'gbe.notify.topic.*'>(notify.everyTopic, 'gbe.notify.topic.*');
  typed<'gbe.events.>'>(events.all, 'gbe.events.>');
  typed<'gbe.events.audit.>'>(events.audit.all, 'gbe.events.audit.>');
  typed<'gbe.tasks.email-send.>'>(tasks.type('email-send').all, 'gbe.tasks.email-send.>');
  typed<'gbe.tasks.*.terminal'>(tasks.everyType.terminal, 'gbe.tasks.*.terminal');
  typed<'gbe.tasks._control.>'>(tasks.control.all, 'gbe.tasks._control.>');
  typed<'gbe.>'>(subjects.all, 'gbe.>');
});

test('keeps the shape of the subject in the type if the id is known only at run time', () => {
  const id: string = 'c1';
  const alert: `gbe.notify.customer.${string}.alert` = subjects.notify.customer(id).alert;
  assert.equal(alert, 'gbe.notify.customer.c1.alert');
});

test('contains exactly the subjects of the hierarchy', () => {
  const all = [
    ...Object.values(subjects.notify.customer('c')),
    ...Object.values(subjects.notify.broadcast),
    ...Object.values(subjects.events.system),
    ...Object.values(subjects.events.api),
    ...Object.values(subjects.events.auth),
    ...Object.values(subjects.events.audit),
    ...Object.values(subjects.tasks.type('t')),
    ...Object.values(subjects.tasks.control),
  ].filter((subject) => !subject.endsWith('>'));
  assert.deepEqual(
    all.map((subject) => subject.slice('gbe.'.length)),
    [
      'notify.customer.c.alert',
      'notify.customer.c.info',
      'notify.customer.c.digest',
      'notify.broadcast.maintenance',
      'notify.broadcast.announcement',
      'events.system.health',
      'events.system.deploy',
      'events.system.error',
      'events.api.request',
      'events.api.error',
      'events.auth.login',
      'events.auth.logout',
      'events.auth.failure',
      'events.audit.change',
      'events.audit.access',
      'tasks.t.queue',
      'tasks.t.progress',
      'tasks.t.terminal',
      'tasks._control.sweep',
      'tasks._control.rebalance',
      'tasks._control.shutdown',
    ],
  );
});

test('builds every subject below another root, also of several tokens', () => {
  const staging = createSubjects({ root: 'staging.gbe' });
  typed<'staging.gbe.events.api.request'>(
    staging.events.api.request,
    'staging.gbe.events.api.request',
  );
  assert.equal(staging.tasks.type('report-gen').queue, 'staging.gbe.tasks.report-gen.queue');
});

test('rejects a root that would break the subjects below it', () => {
  for (const root of ['', '.', 'gbe.', 'g*e', '>', 'g e', 'a:b', 'ü', long]) {
    assert.throws(() => createSubjects({ root }), isInvalid('subject root'), root);
  }
});

test('rejects a customer id that is not exactly one token', () => {
  for (const id of ['', 'a.b', '*', '>', 'a*', 'a b', 'a\n', 'a:b', '\u0000', 'jo@x.org', long]) {
    assert.throws(() => subjects.notify.customer(id), isInvalid('customer id'), id);
  }
});

test('rejects a missing id instead of building a subject for the customer "undefined"', () => {
  const missing = undefined as unknown as string;
  assert.throws(() => subjects.notify.customer(missing), isInvalid('customer id'));
  assert.throws(() => subjects.notify.topic(missing), isInvalid('topic'));
  assert.throws(() => subjects.tasks.type(missing), isInvalid('task type'));
});

test('accepts the topic names of ntfy, and suggests one for others', () => {
  assert.equal(subjects.notify.topic('-_Az09'), 'gbe.notify.topic.-_Az09');
  for (const name of ['', 'a.b', 'a/b', 'a b', 'é', long]) {
    assert.throws(() => subjects.notify.topic(name), isInvalid('topic'), name);
  }
  assert.throws(() => subjects.notify.topic('server.alerts'), /did you mean 'server-alerts'\?/);
});

test('accepts only kebab-case task types, so none equals _control', () => {
  for (const type of ['', '_control', 'emailSend', 'email_send', 'a.b', '-a', 'a-', 'a--b', long]) {
    const untyped: string = type;
    assert.throws(() => subjects.tasks.type(untyped), isInvalid('task type'), type);
    assert.throws(() => consumerGroups.workers(untyped), isInvalid('task type'), type);
    assert.throws(() => consumerGroups.orchestrator(untyped), isInvalid('task type'), type);
  }
  // @ts-expect-error a literal that is not kebab-case does not compile
  assert.throws(() => subjects.tasks.type('emailSend'), /did you mean 'email-send'\?/);
});

test('names the consumer groups of the document', () => {
  typed<'email-send-workers'>(consumerGroups.workers('email-send'), 'email-send-workers');
  typed<'email-send-orchestrator'>(
    consumerGroups.orchestrator('email-send'),
    'email-send-orchestrator',
  );
  assert.deepEqual([consumerGroups.monitors, consumerGroups.archiver], ['monitors', 'archiver']);
});

test('builds only valid subjects below 256 characters, even from the longest parts', () => {
  const token = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);
  fc.assert(
    fc.property(token, token, token, (root, id, topic) => {
      const built = createSubjects({ root });
      const customer = built.notify.customer(id);
      validateSubject(customer.digest);
      validateSubject(built.notify.topic(topic));
      validatePattern(customer.all);
    }),
    { numRuns: 200 },
  );
  const longest = createSubjects({ root: 'r'.repeat(64) }).notify.customer('c'.repeat(64)).digest;
  assert.ok(longest.length < 256, String(longest.length));
});

function isInvalid(kind: string) {
  return (error: unknown): boolean => {
    assert.ok(hasCode(error, 'NAME_INVALID'), String(error));
    assert.equal(error.details['kind'], kind);
    assert.equal(typeof error.details['value'], 'string');
    assert.match(String(error.details['reason']), /must be/);
    return true;
  };
}
