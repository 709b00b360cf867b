// Rules of topics that need no server.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { hasCode } from '../foundation/error.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { createAccessBook } from './users/access-rules.ts';
import { parseGoDuration, parseLongDuration } from './templates/go-duration.ts';
import { createMessageRate } from './message-rate.ts';
import { decodeMimeWords } from './request-params.ts';
import { parseNaturalTime } from './parse-delay.ts';
import { renderTemplate } from './templates/render-template.ts';
import { templateFunctionNames } from './templates/functions.ts';
import { parseSince } from './read-params.ts';
import { comparePlaces, type TopicBus } from './topic-bus.ts';
import { isMessageId, newMessageId, timeOfMessageId, toTopicMessage } from './topic-message.ts';
import { openTopics } from './topics.ts';
import { createUserBook } from './users/user-directory.ts';
import { createVisitorBook, notifyLimits, visitorOfAddress } from './visitor-limits.ts';
import { propertyRuns } from '../testing/property-runs.ts';

test('a message id has the form of ntfy and contains its second', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1_767_225_600_000, max: 2_600_000_000_000 }), (nowMs) => {
      const id = newMessageId(nowMs);
      assert.ok(isMessageId(id));
      assert.equal(timeOfMessageId(id), Math.floor(nowMs / 1_000) * 1_000);
    }),
  );
  assert.notEqual(newMessageId(1_800_000_000_000), newMessageId(1_800_000_000_000));
});

test('any payload that another producer publishes becomes a message', () => {
  const place = { busId: 'some id', topic: 't', storedAtMs: 1_800_000_000_000 };
  fc.assert(
    fc.property(fc.jsonValue(), (payload) => {
      const message = toTopicMessage(payload, place);
      assert.ok(isMessageId(message.id));
      assert.equal(message.topic, 't');
      assert.equal(typeof message.message, 'string');
      assert.deepEqual(toTopicMessage(payload, place), message);
    }),
  );
});

test('durations are parsed as Go parses them', () => {
  const read = (text: string): number | undefined => parseGoDuration(text);
  assert.deepEqual(
    ['1h30m', '1.5h', '-2s', '0', '300ms', '.5s'].map(read),
    [5_400_000, 5_400_000, -2_000, 0, 300, 500],
  );
  assert.deepEqual(['2d', '', '5', 'h', '1h 30m'].map(read), [
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  assert.deepEqual(
    ['2d', '3 days', '10 min', '5 secs'].map(parseLongDuration),
    [172_800_000, 259_200_000, 600_000, 5_000],
  );
});

test('times in English are relative to the clock', () => {
  // A Wednesday, 14:30.
  const now = new Date(2026, 10, 18, 14, 30).getTime();
  const at = (text: string): string | undefined => {
    const found = parseNaturalTime(text, now);
    if (found === undefined) return undefined;
    const date = new Date(found);
    return `${date.getDate()} ${date.getHours()}:${date.getMinutes()}`;
  };
  assert.equal(at('tomorrow, 3:30pm'), '19 15:30');
  assert.equal(at('10am'), '19 10:0');
  assert.equal(at('5pm'), '18 17:0');
  assert.equal(at('friday 9am'), '20 9:0');
  assert.equal(at('in two hours'), '18 16:30');
  assert.equal(at('whenever'), undefined);
});

test('invalid encoded words are left unchanged', () => {
  assert.equal(decodeMimeWords('=?utf-8?b?!?='), '=?utf-8?b?!?=');
  assert.equal(decodeMimeWords('a =?iso-8859-1?q?=E4?= b'), 'a ä b');
  fc.assert(fc.property(fc.string(), (text) => void decodeMimeWords(`=?utf-8?q?${text}?=`)));
});

test('places of one number and of two numbers are ordered', () => {
  assert.ok(comparePlaces('9', '10') < 0);
  assert.ok(comparePlaces('1700-2', '1700-10') < 0);
  assert.ok(comparePlaces('999-5', '1000-0') < 0);
  assert.equal(comparePlaces('7', '7'), 0);
});

test('a rule of the user has precedence, then the longer pattern, then the one that allows writing', () => {
  const access = [
    { topic: '*', permission: 'deny' },
    { topic: 'up*', permission: 'write-only' },
    { user: 'ann', topic: 'up12', permission: 'read-only' },
    { user: 'ann', topic: 'up*', permission: 'read-write' },
  ] as const;
  const book = createAccessBook(createUserBook({ access }), 'read-write');
  const ann = { name: 'ann', role: 'user' } as const;
  assert.equal(book.may(undefined, 'other', 'read'), false);
  assert.equal(book.may(undefined, 'up9', 'write'), true);
  assert.equal(book.may(undefined, 'up9', 'read'), false);
  assert.equal(book.may(ann, 'up12', 'write'), false);
  assert.equal(book.may(ann, 'up2', 'write'), true);
  assert.equal(book.may({ name: 'root', role: 'admin' }, 'other', 'write'), true);
});

test('the message rate covers the last minutes, from the first whole minute on', async () => {
  const clock = fakeClock();
  const rate = createMessageRate(clock);
  for (let at = 0; at < 120; at += 1) rate.count();
  assert.equal(rate.perSecond(), 0);
  await clock.advance(60_000);
  assert.equal(rate.perSecond(), 2);
  await clock.advance(60_000);
  assert.equal(rate.perSecond(), 1);
  rate.count();
  assert.equal(rate.total, 121);
  // A message after the last sample counts in the next one; the sample with the first 120 has been dropped.
  await clock.advance(9 * 60_000);
  assert.equal(rate.perSecond(), 1 / 540);
  await clock.advance(20 * 60_000);
  assert.equal(rate.perSecond(), 0);
});

test('a bucket refills over time, and daily counts start again at midnight UTC', async () => {
  const clock = fakeClock();
  const book = createVisitorBook({ ...notifyLimits, requestsBurst: 2, messagesPerDay: 1 }, clock);
  book.request('a');
  book.request('a');
  assert.throws(() => book.request('a'), /too many requests/);
  book.request('b');
  await clock.advance(5_000);
  book.request('a');
  book.message('a');
  assert.throws(() => book.message('a'), /daily message quota/);
  await clock.advance(86_400_000);
  book.message('a');
});

test('a burst of 0 forbids an action, and an infinite one does not limit it', () => {
  const limits = { ...notifyLimits, emailsBurst: 0, requestsBurst: Infinity };
  const book = createVisitorBook({ ...limits, attachmentBytesPerDay: 1_000 }, fakeClock());
  assert.throws(() => book.email('a'));
  for (let at = 0; at < 1_000; at += 1) book.request('a');
  assert.deepEqual(
    [book.bytes('a', 900), book.bytes('a', 101), book.bytes('a', 100)],
    [true, false, true],
  );
});

test('a visitor is an IPv4 address or an IPv6 network', () => {
  assert.equal(visitorOfAddress('::ffff:10.0.0.1'), 'ip:10.0.0.1');
  assert.equal(visitorOfAddress('2001:db8:1:2:3:4:5:6'), visitorOfAddress('2001:db8:1:2::9'));
  assert.notEqual(visitorOfAddress('2001:db8:1:2::1'), visitorOfAddress('2001:db8:1:3::1'));
});

test('since is parsed as ntfy parses it', () => {
  const at = { isPoll: false, nowMs: 1_800_000_000_000 };
  assert.deepEqual(parseSince('', at), { kind: 'none' });
  assert.deepEqual(parseSince('', { ...at, isPoll: true }), { kind: 'all' });
  assert.deepEqual(parseSince('10m', at), { kind: 'time', seconds: 1_799_999_400 });
  assert.throws(() => parseSince('2d', at), /invalid since/);
});

test('an unknown durability is refused with CONFIG_INVALID', async () => {
  const durability = 'readers-first' as 'synced';
  const opening = openTopics({} as TopicBus, { durability });
  await assert.rejects(opening, (error) => hasCode(error, 'CONFIG_INVALID'));
});

test('templates have exactly the functions of ntfy', () => {
  const ofGo = 'and eq ge gt html index js le len lt ne not or print printf println urlquery';
  const ofSprig = `
    add add1 adler32sum ago all any append atoi b32dec b32enc b64dec b64enc base biggest cat ceil
    chunk clean coalesce compact concat contains date dateInZone dateModify deepEqual default dict
    dig dir div duration durationRound empty ext fail first floor fromJSON get has hasKey
    hasPrefix hasSuffix htmlDate htmlDateInZone indent initial isAbs join keys kindIs kindOf last
    list lower max maxf min minf mod mul mustAppend mustChunk mustCompact mustDateModify mustFirst
    mustFromJSON mustHas mustInitial mustLast mustPrepend mustPush mustRegexFind mustRegexFindAll
    mustRegexMatch mustRegexReplaceAll mustRegexReplaceAllLiteral mustRegexSplit mustRest
    mustReverse mustSlice mustToDate mustToJSON mustToPrettyJSON mustToRawJSON mustUniq
    mustWithout nindent now omit osBase osClean osDir osExt osIsAbs pick pluck plural prepend push
    quote randInt regexFind regexFindAll regexMatch regexQuoteMeta regexReplaceAll
    regexReplaceAllLiteral regexSplit repeat replace rest reverse round seq set sha1sum sha256sum
    sha512sum slice sortAlpha split splitList splitn squote sub substr ternary title toDate
    toDecimal toJSON toPrettyJSON toRawJSON toString toStrings trim trimAll trimPrefix trimSuffix
    trunc tuple typeIs typeIsLike typeOf uniq unixEpoch unset until untilStep upper urlJoin
    urlParse values without`;
  const names = `${ofGo} ${ofSprig}`.trim().split(/\s+/);
  assert.deepEqual(templateFunctionNames, names.toSorted());
});

test('a template with too many steps or too much output is refused', () => {
  const long = JSON.stringify({ l: Array.from({ length: 700 }, () => 1) });
  const nested = '{{range .l}}{{range $.l}}{{range $.l}}x{{end}}{{end}}{{end}}';
  assert.throws(() => renderTemplate(nested, long, 'x'), /timed out/);
  assert.throws(() => renderTemplate('{{printf "%99999s" "x"}}', '{}', 'x'), /too large/);
  assert.throws(() => renderTemplate('{{repeat 9999999 "x"}}', '{}', 'x'), /exceeds limit/);
  // A layout that makes a backtracking regular expression slow is parsed in linear time.
  const digits = `{{toDate "${'2'.repeat(60)}" "${'1'.repeat(90)}x" | unixEpoch}}`;
  assert.equal(renderTemplate(digits, '{}', 'x'), '-62135596800');
  const pattern = `{{regexMatch "(a+)+$" "${'a'.repeat(60)}b"}}`;
  assert.equal(renderTemplate(pattern, '{}', 'x'), 'false');
  fc.assert(
    fc.property(fc.string({ maxLength: 30 }), fc.jsonValue(), (text, data) => {
      try {
        renderTemplate(`{{${text}}} {{`, JSON.stringify(data), 'x');
      } catch (error) {
        assert.match(String(error), /invalid request/);
      }
    }),
    { numRuns: propertyRuns(500) },
  );
});
