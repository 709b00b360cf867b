// Event types: literals must follow the grammar, computed ones go through buildEventType.

import { buildEventType, isEventType } from '../../event-type.ts';
import { attempt } from '../builders.ts';
import type { Report } from '../finding.ts';
import { isPastTense } from '../past-tense.ts';
import type { Place } from '../place.ts';
import { readingCode, type Reading } from '../reading.ts';
import type { TextRule } from '../rule.ts';
import { guessIdentifier } from '../spelling.ts';
import { holeRange, quote, type Text } from '../text.ts';
import { wordsOf } from '../words.ts';

/** Somebody meant this as an event type, whether or not it is one. */
const attempted = /^[\w-]+\.[\w.-]+\.[vV]\d+$/;
const computed = new RegExp(`^([^.\\s/:$]+)\\.([^.\\s/:]+)\\.[vV](\\d+|[${holeRange}])$`, 'u');

const typeName = /^(?:event_?)?types?$/i;
const eventName = /events?$|event_?types?$/i;
/** Calls whose first argument is an event type, if it looks like one. */
const eventCalls = new Set(['on', 'once', 'off', 'emit', 'EventPattern', 'OnEvent']);
const eventWords = new Set(['agg', 'aggregate', 'action', 'verb', 'event']);

export const eventTypeRule: TextRule = (candidate) => {
  const { text } = candidate;
  if (!text.constant) return computedType(text, () => candidate.place);
  if (!isAttempt(text, () => candidate.place) || isEventType(text.form)) return undefined;
  const guess = guessEventType(text.form);
  return report(text, {
    reason: `event type '${text.form}' must be <agg>.<action>.v<version> in kebab-case`,
    suggestion: guess === undefined ? undefined : quote(guess),
  });
};

/** Whether the text stands where event types stand, and is or tries to be one. */
export function isAttempt(text: Text, place: () => Place): boolean {
  if (attempted.test(text.form)) return isEventPlace(place());
  return mayBeFirstArgument(text) && isDefinition(place());
}

export function readEventType(form: string): Reading | undefined {
  const parts = computed.exec(form);
  return parts === null ? undefined : { builder: 'buildEventType', parts: parts.slice(1) };
}

function computedType(text: Text, place: () => Place): Report | undefined {
  const reading = readEventType(text.form);
  if (reading === undefined) return undefined;
  const spoken = text.holes.some((code) => wordsOf(code).some((word) => eventWords.has(word)));
  if (!spoken && !isEventPlace(place())) return undefined;
  return report(text, {
    reason:
      'an event type is put together by hand, so nothing checks its parts: use buildEventType',
    suggestion: readingCode(reading, text),
  });
}

function report(text: Text, said: Pick<Report, 'reason' | 'suggestion'>): Report {
  return { rule: 'event-type', start: text.start, end: text.end, ...said };
}

function isEventPlace(place: Place): boolean {
  const { name, comparedWith, holders, argument } = place;
  if (argument !== undefined) {
    return argument.index === 0 && (isDefinition(place) || eventCalls.has(argument.callee));
  }
  return (
    [name, comparedWith].some((given) => given !== undefined && typeName.test(given)) ||
    [name, comparedWith, ...holders].some((given) => given !== undefined && eventName.test(given))
  );
}

/** `defineEvent` takes nothing but an event type, so there any other literal is wrong. */
function isDefinition({ argument }: Place): boolean {
  return argument?.callee === 'defineEvent' && argument.index === 0;
}

function mayBeFirstArgument({ spot }: Text): boolean {
  return spot.key === 'arguments' || spot.parent?.key === 'arguments';
}

/** `PaymentCompleted`, `Payment.Completed.V1`, `payment.completed` → `payment.completed.v1`. */
export function guessEventType(text: string): string | undefined {
  const [, body = '', digits = '1'] = /^(.*?)(?:[._-]?[vV](\d+))?$/s.exec(text) ?? [];
  const tokens = body.split(/[.:/\s]+/).filter((token) => token !== '');
  const words = (tokens.length === 1 ? guessIdentifier(body).split('-') : tokens).map(
    guessIdentifier,
  );
  // In one run of words, only the verb says where the aggregate ends: guest, checked out.
  const verb = tokens.length === 1 ? words.findLastIndex(isPastTense) : words.length - 1;
  if (verb < 1) return undefined;
  const [agg, action] = [words.slice(0, verb).join('-'), words.slice(verb).join('-')];
  const built = attempt(buildEventType, [agg, action, Math.max(1, Number(digits))]);
  return built.ok ? String(built.value) : undefined;
}
