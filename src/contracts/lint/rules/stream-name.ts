// Stream names and the index streams $ce- and $et-: literals must parse, computed ones go through
// the builders, which alone know how a tenant with a hyphen stays apart from the id.

import { parseEventType } from '../../event-type.ts';
import { slackAddressing } from '../../slack-addressing.ts';
import { parseStreamName } from '../../stream-name.ts';
import { attempt, type BuilderName, type Outcome } from '../builders.ts';
import type { Report } from '../finding.ts';
import { buildReading, readingCode, type Reading } from '../reading.ts';
import type { TextRule } from '../rule.ts';
import { hasHole, holeRange, quote, type Text } from '../text.ts';
import { wordsOf } from '../words.ts';
import { guessEventType, readEventType } from './event-type.ts';

const token = '[^.\\s/:$]+';
const version = `[vV](\\d+|[${holeRange}])`;
const stream = new RegExp(
  `^(${token})\\.(${token})\\.${version}-([^-\\s/]+)(?:-([^\\s/]*))?$`,
  'u',
);
const category = new RegExp(`^(${token})\\.(${token})\\.${version}$`, 'u');
const namedCategory = new RegExp(`^[${holeRange}]-[^\\s/]+-[^\\s/]+$`, 'u');
const attempted = /^[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)+\.[vV]\d+-[^\s/]*$/;
/** Downloads and bundles are versioned in the same way. */
const fileName =
  /\.(?:[cm]?[jt]sx?|css|map|json|md|txt|html|pdf|png|jpe?g|svg|gif|zip|t?gz|ya?ml|csv|xml|wasm)$/;

const categoryPrefix = '$ce-';
const eventTypePrefix = '$et-';
const slackPrefix = 'notification.slack.request-';
const slackCategory = 'notification.slack.request';
const prefixes = new Set([categoryPrefix, eventTypePrefix, slackPrefix]);
const contextWords = new Set(['bc', 'context', 'category']);

export const streamNameRule: TextRule = ({ text }) => {
  const { form } = text;
  // A prefix alone is something to compare with.
  if (prefixes.has(form)) return undefined;
  if (form.startsWith(categoryPrefix)) return categoryStream(text);
  if (form.startsWith(eventTypePrefix)) return eventTypeStream(text);
  if (form.startsWith(slackPrefix)) return judge(text, parseSlack, readSlack(form));
  if (text.constant) {
    return attempted.test(form) && !fileName.test(form)
      ? judge(text, parseStream, readStream(form))
      : undefined;
  }
  return stream.test(form) && !fileName.test(form)
    ? byHand(text, readStream(form))
    : computedCategory(text);
};

function parseStream(name: string): Outcome {
  return attempt(parseStreamName, [name]);
}

function parseSlack(name: string): Outcome {
  return attempt(slackAddressing.parseStream, [name]);
}

/** `${bc}.${agg}.v1` and `${category}-${tenant}-${id}`, where the expressions say what they are. */
function computedCategory(text: Text): Report | undefined {
  const parts = category.exec(text.form);
  const words = text.holes.flatMap(wordsOf);
  if (parts !== null && words.some((word) => contextWords.has(word))) {
    return byHand(text, { builder: 'buildCategory', parts: parts.slice(1) });
  }
  const first = wordsOf(text.holes[0] ?? '').at(-1);
  return namedCategory.test(text.form) && first === 'category'
    ? byHand(text, undefined)
    : undefined;
}

function categoryStream(text: Text): Report | undefined {
  const name = text.form.slice(categoryPrefix.length);
  const parts = category.exec(name);
  const reading: Reading | undefined =
    parts === null ? undefined : { builder: 'categoryStream', parts: parts.slice(1) };
  const parse = (): Outcome => {
    if (name === slackCategory) return { ok: true, value: name };
    const parsed = attempt(parseStreamName, [`${name}-tenant-id`]);
    if (parsed.ok && !name.includes('-')) return parsed;
    const reason = `category stream '${text.form}' must be $ce-<bc>.<agg>.v<version>, hyphens in bc and agg written in camelCase`;
    return {
      ok: false,
      problem: { code: 'NAME_INVALID', reason, value: name, suggestion: undefined },
    };
  };
  return judge(text, parse, reading);
}

function eventTypeStream(text: Text): Report | undefined {
  const type = text.form.slice(eventTypePrefix.length);
  if (!text.constant) {
    return byHand(text, { builder: 'eventTypeStream', parts: [readEventType(type) ?? type] });
  }
  const parsed = attempt(parseEventType, [type]);
  if (parsed.ok) return undefined;
  const guess = guessEventType(type);
  return report(text, parsed.problem.reason, guess && quote(`${eventTypePrefix}${guess}`));
}

function judge(
  text: Text,
  parse: (name: string) => Outcome,
  reading: Reading | undefined,
): Report | undefined {
  if (!text.constant) return byHand(text, reading);
  const parsed = parse(text.form);
  if (parsed.ok) return undefined;
  return report(text, parsed.problem.reason, mend(text, reading));
}

/** The right literal; or the builder's call, where a part is missing that only the author knows. */
function mend(text: Text, reading: Reading | undefined): string | undefined {
  if (reading === undefined) return undefined;
  if (reading.parts.some((part) => typeof part === 'string' && hasHole(part))) {
    return readingCode(reading, { ...text, holes: ['id'] });
  }
  const built = buildReading(reading, 'mended');
  return built.ok ? quote(String(built.value)) : undefined;
}

function readStream(form: string): Reading | undefined {
  const match = stream.exec(form);
  if (match === null) return undefined;
  const [, bc = '', agg = '', v = '', tenant = '', id] = match;
  // A missing id becomes an expression called `id`; in a computed name its place is unknown.
  if ((id ?? '') === '' && hasHole(form)) return undefined;
  return { builder: 'buildStreamName', parts: [bc, agg, v, tenant, id || missing] };
}

const missing = '\u{e000}';

function readSlack(form: string): Reading | undefined {
  const tail = form.slice(slackPrefix.length);
  const at = tail.indexOf('-');
  if (at < 1 || at === tail.length - 1) return undefined;
  return { builder: 'slackAddressing.stream', parts: [tail.slice(0, at), tail.slice(at + 1)] };
}

function byHand(text: Text, reading: Reading | undefined): Report {
  const builder = reading?.builder ?? builderFor(text.form);
  const suggestion = reading === undefined ? undefined : readingCode(reading, text);
  return report(
    text,
    `the name is put together by hand, so nothing checks its parts: use ${builder}`,
    suggestion,
  );
}

/** Where the parts cannot be told apart, the builder can still be named. */
function builderFor(form: string): BuilderName {
  if (form.startsWith(slackPrefix)) return 'slackAddressing.stream';
  return form.startsWith(categoryPrefix) ? 'categoryStream' : 'buildStreamName';
}

function report(text: Text, reason: string, suggestion: string | undefined): Report {
  return { rule: 'stream-name', start: text.start, end: text.end, reason, suggestion };
}
