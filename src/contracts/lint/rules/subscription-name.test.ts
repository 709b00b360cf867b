import { describe, test } from 'node:test';
import { assertClean, assertFound, type BadCode } from '../rule-cases.ts';

const byHand = /use buildSubscriptionName/;

const bad: readonly BadCode[] = [
  {
    code: "'sub:Core:CurrencyProjection:v1'",
    reason: /kebab-case/,
    suggestion: "'sub:core:currency-projection:v1'",
  },
  { code: "'sub:core:currency:v0'", reason: /kebab-case/, suggestion: "'sub:core:currency:v1'" },
  {
    code: "{ subscription: 'sub:core:currency' }",
    at: "'sub:core:currency'",
    reason: /kebab-case/,
    suggestion: "'sub:core:currency:v1'",
  },
  {
    code: '`sub:${service}:${name}:v${version}`',
    reason: byHand,
    suggestion: 'buildSubscriptionName(service, name, version)',
  },
  {
    code: "'sub:' + service + ':projection:v1'",
    reason: byHand,
    suggestion: "buildSubscriptionName(service, 'projection', 1)",
  },
  {
    code: "buildSubscriptionName('Core', name, 1)",
    at: "'Core'",
    reason: /service 'Core'/,
    suggestion: "'core'",
  },
];

describe('subscription names', () => {
  for (const code of bad) {
    test(`finds and mends ${code.code}`, () => assertFound('subscription-name', code));
  }

  for (const good of [
    "subscribe('sub:core-lookup:currency-projection:v1');",
    "emit('sub:user:created'); join(`sub:${user}:${room}`); log('sub: nothing');",
    "keys('sub:*:*:v1');",
  ]) {
    test(`has nothing to say about ${JSON.stringify(good)}`, () => assertClean(good));
  }
});
