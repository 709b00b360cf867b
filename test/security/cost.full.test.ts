import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseDuration } from '../../src/foundation/duration.ts';
import { MillraceError } from '../../src/foundation/error.ts';
import { matchesGlob } from '../../src/foundation/matches-glob.ts';
import { parseJson } from '../../src/foundation/parse-json.ts';
import { regexSize } from '../../src/foundation/regex-size.ts';
import { isSequence } from '../../src/bus/sequence.ts';
import { durationMs, futureTime, nonNegativeInteger } from '../../src/cli/options.ts';
import { parseEventType } from '../../src/contracts/event-type.ts';
import { parseStreamName } from '../../src/contracts/stream-name.ts';
import { matchSubject, validatePattern } from '../../src/contracts/subject-match.ts';
import { checkTenant } from '../../src/contracts/tenant.ts';
import { signingKey } from '../../src/destinations/webhook/key.ts';
import { ntfyRouteOf } from '../../src/server/topics/ntfy-route.ts';
import { compileFilter } from '../../src/store/event-filter.ts';
import { parseCron } from '../../src/tasks/cron.ts';
import { parseActions } from '../../src/topics/parse-actions.ts';
import { parseDelay } from '../../src/topics/parse-delay.ts';
import { readPublishParams } from '../../src/topics/publish-params.ts';
import { parseSince } from '../../src/topics/read-params.ts';
import { decodeMimeWords, parsePriority, requestParams } from '../../src/topics/request-params.ts';
import { createTemplateBudget } from '../../src/topics/templates/budget.ts';
import {
  callTemplateFunction,
  templateFunctionNames,
} from '../../src/topics/templates/functions.ts';
import { parseGoDuration } from '../../src/topics/templates/go-duration.ts';
import { parseGoTime } from '../../src/topics/templates/go-time.ts';
import { renderTemplate } from '../../src/topics/templates/render-template.ts';
import { TemplateProblem } from '../../src/topics/templates/syntax.ts';
import type { TemplateValue } from '../../src/topics/templates/values.ts';
import { createAccessBook } from '../../src/topics/users/access-rules.ts';
import { createUserBook } from '../../src/topics/users/user-directory.ts';

const [charsOfSmall, growth] = [4_000, 8];

const rules = { hasEmail: true, delayMsMin: 10_000, delayMsMax: 1e9 };
const published = (name: string) => (text: string) =>
  readPublishParams(requestParams({}, new URLSearchParams({ [name]: text })), {
    pathSequenceId: undefined,
    nowMs: 0,
    rules,
  });
const access = (pattern: string, topic: string): boolean =>
  createAccessBook(
    createUserBook({ access: [{ topic: pattern, permission: 'read-write' }] }),
    'deny',
  ).may(undefined, topic, 'read');

/** Every function that reads a text from outside the process: its work grows at most like n log n. */
const readers: Readonly<Record<string, (text: string) => unknown>> = {
  'access rule: pattern': (text) => access(text, 'a'.repeat(64)),
  'access rule: topic': (text) => access('*a*a*a*a*a*a*a*a*a*b', text),
  'glob: pattern': (text) => matchesGlob(text, `${text}b`),
  'glob: text': (text) => matchesGlob('*1*1*1*a*a*a*/*/*b', text),
  'subject pattern': (text) => matchSubject(text, text),
  'subject pattern: check': validatePattern,
  'event filter: pattern': (text) => compileFilter({ typePattern: text.slice(0, 1_000) }),
  'event filter: size of a pattern': regexSize,
  'event type': parseEventType,
  'stream name': (text) => parseStreamName(text),
  tenant: checkTenant,
  sequence: isSequence,
  duration: parseDuration,
  'duration of Go': parseGoDuration,
  'time of Go': (text) => parseGoTime(text, text),
  'option: duration': (text) => durationMs('x', text),
  'option: time': (text) => futureTime('x', text),
  'option: integer': (text) => nonNegativeInteger('x', text),
  cron: (text) => parseCron(text),
  'cron: field': (text) => parseCron(`${text} * * * *`),
  json: parseJson,
  'webhook secret': signingKey,
  'topic: since': (text) => parseSince(text, { isPoll: false, nowMs: 0 }),
  'topic: delay': (text) => parseDelay(text, 0, rules),
  'topic: delay with words': (text) => parseDelay(`in ${text}`.slice(0, 99), 0, rules),
  'topic: priority': parsePriority,
  'topic: actions': parseActions,
  'topic: header': decodeMimeWords,
  'topic: path': (text) => ntfyRouteOf('GET', `/${text}/json`),
  'topic: email': published('email'),
  'topic: attach': (text) => published('attach')(`http://${text}`),
  'topic: delay parameter': published('delay'),
  'template: syntax': (text) => renderTemplate(`{{${text}}}`, '{}', 'x'),
  'template: text': (text) => renderTemplate(text, '{}', 'x'),
};

const parts = [
  '1',
  'a',
  '/',
  '=',
  '-',
  ' ',
  '@',
  '*',
  '*a',
  'a.',
  '.',
  ',',
  ':',
  'in ',
  '"',
  '\\"',
  '=?',
  '%',
].concat([
  '(',
  '[',
  '{',
  '1h',
  'next ',
  '{{',
  '(a',
  '1-',
  'A',
  '[{"a":',
  ';',
  "'",
  '=?a?b?',
  '0.',
  '/*',
]);
const ends = ['', ' x', '\nx'];

function hostile(part: string, end: string, chars: number): string {
  return part.repeat(Math.ceil(chars / part.length)) + end;
}

/** CPU time, not elapsed time: other processes do not count. */
function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage();
  try {
    work();
  } catch (error) {
    const known = [MillraceError, TemplateProblem, SyntaxError, RangeError];
    if (!known.some((each) => error instanceof each)) throw error;
    assert.doesNotMatch(String(error), /call stack/i);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Quadratic work grows 64 times, linear work 8 times; a collection of garbage may add a few milliseconds. */
function assertGrowth(name: string, work: (chars: number) => unknown): void {
  const large = (): number => cpuMs(() => work(charsOfSmall * growth));
  const isFit = (limitMs: number): boolean => [1, 2, 3].some(() => large() <= limitMs);
  const enoughMs = 50;
  if (large() <= enoughMs) return;
  const small = cpuMs(() => work(charsOfSmall));
  assert.ok(
    isFit(Math.max(enoughMs, small * growth * 4)),
    `${name}: the work grows faster than its input`,
  );
}

test('the work of each reader grows at most like its input', () => {
  for (const [name, read] of Object.entries(readers)) {
    for (const part of parts) {
      for (const end of ends) {
        assertGrowth(`${name} of ${JSON.stringify([part, end])}`, (chars) =>
          read(hostile(part, end, chars)),
        );
      }
    }
  }
});

test('the work of each function of templates grows at most like a text', () => {
  for (const name of templateFunctionNames) {
    for (const part of ['/', '=', '1', 'a/../', '<', '.', '%9']) {
      for (const before of [[], ['a']]) {
        assertGrowth(`${name} of ${JSON.stringify([part, ...before])}`, (chars) => {
          const values = [...before, hostile(part, 'x', chars)];
          return callTemplateFunction(createTemplateBudget(), name, values);
        });
      }
    }
  }
});

test('what a function of templates charges grows at most like an argument', () => {
  const fillers: readonly TemplateValue[] = ['a', 3n, ['a'], {}];
  const charged = (name: string, values: TemplateValue[]): number | undefined => {
    const budget = createTemplateBudget(Number.MAX_SAFE_INTEGER);
    try {
      callTemplateFunction(budget, name, values);
      return budget.spent;
    } catch (error) {
      if (!(error instanceof TemplateProblem)) throw error;
      return undefined;
    }
  };
  const bigs = [
    (size: number): TemplateValue => 'a '.repeat(size / 2),
    (size: number): TemplateValue => Array.from({ length: size / 4 }, () => 'ab'),
  ];
  let compared = 0;
  for (const name of templateFunctionNames) {
    for (const big of bigs) {
      for (const filler of fillers) {
        for (const place of [0, 1, 2]) {
          for (const count of [1, 2, 3].filter((each) => each > place)) {
            const values = (size: number): TemplateValue[] =>
              Array.from({ length: count }, (_, at) => (at === place ? big(size) : filler));
            const [small, large] = [
              charged(name, values(400)),
              charged(name, values(400 * growth)),
            ];
            if (small === undefined || large === undefined) continue;
            compared += 1;
            assert.ok(large <= small * growth * 2, `${name}: ${small} became ${large}`);
          }
        }
      }
    }
  }
  assert.ok(compared > 300, String(compared));
});
