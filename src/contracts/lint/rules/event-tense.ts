// An event has happened: its action is in the past, `completed` and not `complete`.

import { buildEventType, isEventType, parseEventType } from '../../event-type.ts';
import type { Report } from '../finding.ts';
import { isPastTense, toPastTense } from '../past-tense.ts';
import type { TextRule } from '../rule.ts';
import { quote } from '../text.ts';
import { isAttempt } from './event-type.ts';

export const eventTenseRule: TextRule = (candidate) => {
  const { text } = candidate;
  if (!text.constant) return undefined;
  const type = text.form.startsWith('$et-') ? text.form.slice('$et-'.length) : text.form;
  if (!isEventType(type)) return undefined;
  if (type === text.form && !isAttempt(text, () => candidate.place)) return undefined;
  const { agg, action, version } = parseEventType(type);
  const prefix = text.form.slice(0, text.form.length - type.length);
  return tenseReport(text, action, (past) =>
    quote(`${prefix}${buildEventType(agg, past, version)}`),
  );
};

/** The warning about an action, wherever it was found; `undefined` when it is in the past. */
export function tenseReport(
  span: { readonly start: number; readonly end: number },
  action: string,
  code: (past: string) => string,
): Report | undefined {
  if (isPastTense(action)) return undefined;
  const past = toPastTense(action);
  return {
    rule: 'event-tense',
    start: span.start,
    end: span.end,
    reason: `'${action}' is not in the past tense: an event says what has happened`,
    suggestion: past === undefined ? undefined : code(past),
  };
}
