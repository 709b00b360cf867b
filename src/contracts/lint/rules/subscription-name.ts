// Subscription names, under which checkpoints are kept: sub:<service>:<name>:v<version>.

import { parseSubscriptionName } from '../../subscription-name.ts';
import { attempt } from '../builders.ts';
import { buildReading, readingCode, type Reading } from '../reading.ts';
import type { TextRule } from '../rule.ts';
import { holeRange, quote } from '../text.ts';

const attempted = /^sub:[^\s:*]+:[^\s*]+$/;
const parts = new RegExp(`^sub:([^:]+):([^:]+)(?::[vV](\\d+|[${holeRange}]))?$`, 'u');
const subscriptionPlace = /subscription|checkpoint/i;

export const subscriptionNameRule: TextRule = (candidate) => {
  const { text } = candidate;
  const { form, start, end } = text;
  if (!attempted.test(form)) return undefined;
  const reading = readSubscriptionName(form);
  // `sub:` is also what others call things: without a version, the place has to say it.
  const versioned = form.split(':').length === 4 || /:[vV]\d+$/.test(form);
  if (!versioned && !subscriptionPlace.test(candidate.place.name ?? '')) return undefined;
  if (!text.constant) {
    return {
      rule: 'subscription-name',
      start,
      end,
      reason: 'a subscription name is put together by hand: use buildSubscriptionName',
      suggestion: reading === undefined ? undefined : readingCode(reading, text),
    };
  }
  const parsed = attempt(parseSubscriptionName, [form]);
  if (parsed.ok) return undefined;
  const mended = reading === undefined ? undefined : buildReading(reading, 'mended');
  const suggestion = mended?.ok === true ? quote(String(mended.value)) : undefined;
  return { rule: 'subscription-name', start, end, reason: parsed.problem.reason, suggestion };
};

export function readSubscriptionName(form: string): Reading | undefined {
  const match = parts.exec(form);
  if (match === null) return undefined;
  const [, service = '', name = '', version = '1'] = match;
  return { builder: 'buildSubscriptionName', parts: [service, name, version] };
}
