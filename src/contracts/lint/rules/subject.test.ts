import { describe, test } from 'node:test';
import { assertClean, assertFound, type BadCode } from '../rule-cases.ts';

const byHand = /use the builders of createSubjects/;

const bad: readonly BadCode[] = [
  {
    code: "'gbe.tasks.email-send.pending'",
    reason: /unknown last token/,
    suggestion: "'gbe.tasks.email-send.queue'",
  },
  {
    code: "'gbe.tasks.emailSend.queue'",
    reason: /task type/,
    suggestion: "'gbe.tasks.email-send.queue'",
  },
  {
    code: "'gbe.notify.customer.c1.alerts'",
    reason: /unknown last token/,
    suggestion: "'gbe.notify.customer.c1.alert'",
  },
  {
    code: "'gbe.events.sytem.health'",
    reason: /unknown entity/,
    suggestion: "'gbe.events.system.health'",
  },
  { code: "'gbe.notify.sms.c1'", reason: /unknown entity/ },
  { code: "'gbe.events.>.health'", reason: />/ },
  { code: "'gbe.notify.customer*.alert'", reason: /\*/ },
  { code: "'gbe.events.billing.>'", reason: /no subject of the hierarchy can match/ },
  {
    code: "'gbe:tasks:email-send:pending'",
    reason: /unknown last token/,
    suggestion: "'gbe:tasks:email-send:queue'",
  },
  {
    code: '`gbe.tasks.${type}.queue`',
    reason: byHand,
    suggestion: 'subjects.tasks.type(type).queue',
  },
  {
    code: '`gbe.tasks.${type}.${role}`',
    reason: byHand,
    suggestion: 'subjects.tasks.type(type)[role]',
  },
  {
    code: "'gbe.notify.customer.' + user.id + '.>'",
    reason: byHand,
    suggestion: 'subjects.notify.customer(user.id).all',
  },
  {
    code: '`gbe.notify.topic.${topic}`',
    reason: byHand,
    suggestion: 'subjects.notify.topic(topic)',
  },
  { code: '`gbe.events.audit.${what}`', reason: byHand, suggestion: 'subjects.events.audit[what]' },
  {
    code: '`gbe.tasks._control.${what}`',
    reason: byHand,
    suggestion: 'subjects.tasks.control[what]',
  },
  {
    code: '`gbe.notify.customer.*.${what}`',
    reason: byHand,
    suggestion: 'subjects.notify.everyCustomer[what]',
  },
  {
    code: '`gbe.${domain}.x`); use(`gbe.tasks.${a}.${b}.${c}`',
    at: '`gbe.tasks.${a}.${b}.${c}`',
    reason: byHand,
  },
  {
    code: '`${root}.tasks.${type}.queue`',
    reason: byHand,
    suggestion: 'createSubjects({ root: root }).tasks.type(type).queue',
  },
  {
    code: '`gbe:tasks:${type}:queue`',
    reason: byHand,
    suggestion: 'subjectToStreamKey(subjects.tasks.type(type).queue)',
  },
  {
    code: "subjects.tasks.type('EmailSend')",
    at: "'EmailSend'",
    reason: /task type/,
    suggestion: "'email-send'",
  },
  {
    code: "subjects.notify.topic('server alerts')",
    at: "'server alerts'",
    reason: /topic/,
    suggestion: "'server-alerts'",
  },
  { code: "subjects.notify.customer('a b')", at: "'a b'", reason: /customer id/ },
  {
    code: "consumerGroups.workers('EmailSend')",
    at: "'EmailSend'",
    reason: /task type/,
    suggestion: "'email-send'",
  },
];

describe('subjects', () => {
  for (const code of bad) {
    test(`finds and mends ${code.code}`, () => assertFound('subject', code));
  }

  test('knows other roots when told', async () => {
    const code = '`prod.gbe.tasks.${type}.queue`';
    const suggestion = "createSubjects({ root: 'prod.gbe' }).tasks.type(type).queue";
    await assertFound('subject', { code, reason: byHand, suggestion }, { roots: ['prod.gbe'] });
    await assertClean(`use(${code});`);
  });

  for (const good of [
    "on('gbe.notify.customer.cust_abc123.alert', 'gbe.notify.topic.server-alerts');",
    "on('gbe.notify.customer.*.alert', 'gbe.events.>', 'gbe.tasks.email-send.>', 'gbe.*.*.error');",
    "on('gbe.tasks._control.sweep', 'gbe:tasks:email-send:queue', 'gbe:tasks:*');",
    "if (subject.startsWith('gbe.tasks.') || subject.startsWith('gbe.events')) {}",
    "const other = 'gbe.settings.theme'; const text = 'gbe.tasks.are many';",
    "subjects.tasks.type(type).queue; subjects.notify.customer('c1').alert;",
  ]) {
    test(`has nothing to say about ${JSON.stringify(good)}`, () => assertClean(good));
  }
});
