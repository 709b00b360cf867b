// Redis keys: literals must be keys of the keyspace, computed ones go through redisKeys, which pins
// the tenant's slot and keeps addresses of people out of keys.

import { parseRedisKey } from '../../redis-keys.ts';
import { attempt, type Outcome } from '../builders.ts';
import type { Report } from '../finding.ts';
import { bare, readKey } from '../read-key.ts';
import { buildReading, readingCode, type Reading } from '../reading.ts';
import type { TextRule } from '../rule.ts';
import { fragmentCode, holeRange, quote, versionCode, type Text } from '../text.ts';

const space = /^(?:app|mq|job|checkpoint|notification\.slack:v1):\S+$/;
const versionSegment = new RegExp(`^[vV](?:\\d+|[${holeRange}])$`, 'u');
/** How many segments make it a key of ours, where neither braces nor a version say so. */
const segmentsMin: Readonly<Record<string, number>> = { app: 4, job: 4, mq: 3, checkpoint: 3 };

export const redisKeyRule: TextRule = ({ text }) => {
  if (!isAttempt(text.form)) return undefined;
  if (isPattern(text.form)) return patternReport(text);
  const reading = readKey(text.form);
  return text.constant ? literalReport(text, reading) : computedReport(text, reading);
};

/** `app:start` and `job:done` are everybody's; a key of the keyspace has more to it. */
function isAttempt(form: string): boolean {
  // With `<tenant>` in it, it is documentation.
  if (!space.test(form) || /[<>]/.test(form)) return false;
  const segments = form.split(':');
  return (
    /[{}]/.test(form) ||
    segments.length >= (segmentsMin[segments[0] ?? ''] ?? 0) ||
    segments.some((segment) => versionSegment.test(segment))
  );
}

/** What SCAN or startsWith is given: no builder makes these, but the slot must be right. */
function isPattern(form: string): boolean {
  return /[*?]/.test(form) || form.endsWith(':');
}

function patternReport(text: Text): Report | undefined {
  if (hasHashTag(text.form)) return undefined;
  const mended = withHashTag(text.form);
  const code = hasHashTag(mended) ? fragmentCode(mended, text) : undefined;
  return report(text, hashTagReason(text.form), code);
}

function literalReport(text: Text, reading: Reading | undefined): Report | undefined {
  const { form } = text;
  if (reading === undefined) {
    if (isQueuePrefix(form)) return undefined;
    return report(text, unreadableReason(form), undefined);
  }
  const built = buildLiteral(form, reading, 'as-written');
  if (built.ok && built.value === form) return undefined;
  const mended = buildLiteral(withHashTag(form), reading, 'mended');
  const reason = built.ok ? braceReason(form) : built.problem.reason;
  return report(text, reason, mended.ok ? quote(String(mended.value)) : undefined);
}

function computedReport(text: Text, reading: Reading | undefined): Report {
  const builder = reading?.builder ?? 'redisKeys';
  const braces = hasHashTag(text.form) ? '' : `; ${hashTagReason(text.form)}`;
  const code = reading === undefined ? queuePrefixCode(text) : readingCode(reading, text);
  return report(
    text,
    `the key is put together by hand, so nothing checks its parts: use ${builder}${braces}`,
    code,
  );
}

/** A list's hash cannot be built again from the key: there the parser has the last word. */
function buildLiteral(form: string, reading: Reading, mode: 'as-written' | 'mended'): Outcome {
  if (reading.builder !== 'redisKeys.list') return buildReading(reading, mode);
  const parsed = attempt(parseRedisKey, [form]);
  return parsed.ok ? { ok: true, value: form } : parsed;
}

/** `mq:{core}:paymenthub:payment:v1` is what BullMQ gets as its prefix. */
function isQueuePrefix(form: string): boolean {
  return form.startsWith('mq:') && attempt(parseRedisKey, [`${form}:work`]).ok;
}

function queuePrefixCode(text: Text): string | undefined {
  const [head, tenant = '', bc = '', agg = '', versioned = '', ...rest] = text.form
    .split(':')
    .map(bare);
  if (head !== 'mq' || rest.length > 0 || !versionSegment.test(versioned)) return undefined;
  const version = versionCode(versioned.slice(1), text);
  const codes = [tenant, bc, agg].map((part) => fragmentCode(part, text));
  return `redisKeys.queueAddress(${codes.join(', ')}, ${version}, work).prefix`;
}

function hasHashTag(form: string): boolean {
  return /^(?:(?:app|mq|job|notification\.slack:v1):\{[^{}]+\}|checkpoint:)/.test(form);
}

function withHashTag(form: string): string {
  const segments = form.split(':');
  const at = form.startsWith('notification.slack:') ? 2 : 1;
  if (segments[0] === 'checkpoint' || segments[at] === undefined) return form;
  return segments.with(at, `{${bare(segments[at])}}`).join(':');
}

function hashTagReason(form: string): string {
  const tenant = form.split(':')[form.startsWith('notification.slack:') ? 2 : 1] ?? '';
  const shown = /^[\w-]+$/.test(tenant) ? `{${tenant}}` : '{tenant}';
  return `the tenant must stand in braces, ${shown}, so that a cluster keeps its keys in one slot`;
}

function braceReason(form: string): string {
  return hasHashTag(form) && !form.startsWith('checkpoint:')
    ? 'braces belong around the tenant only: any other pair is part of the key by mistake'
    : form.startsWith('checkpoint:')
      ? 'a checkpoint is checkpoint:esdb:<subscription> or checkpoint:workflow:<saga>:{<tenant>}'
      : hashTagReason(form);
}

function unreadableReason(form: string): string {
  const shapes: Readonly<Record<string, string>> = {
    app: 'app:{<tenant>}:<bc>:<agg>:v<version>:<id>, or …:h:<id>, :index:by-<field>, :set:<name>, :zset:by-<field>, :list:{<hash>}',
    mq: 'mq:{<tenant>}:<bc>:<agg>:v<version>:<work>',
    job: 'job:{<tenant>}:<bc>:<agg>:<work>:<id>',
    checkpoint: 'checkpoint:esdb:<subscription> or checkpoint:workflow:<saga>:{<tenant>}',
    'notification.slack':
      'notification.slack:v1:{<tenant>}:message-request:<id>, or one of its indexes',
  };
  return `the key must be ${shapes[form.split(':')[0] ?? ''] ?? 'one of the keyspace'}`;
}

function report(text: Text, reason: string, suggestion: string | undefined): Report {
  return { rule: 'redis-key', start: text.start, end: text.end, reason, suggestion };
}
