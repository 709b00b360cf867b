// Which dead letters a command is about.

import type { DeadLetterFilter } from '../subscriptions/dead-letter.ts';
import { usage } from './command.ts';
import { durationSeconds } from './option-values.ts';

export const letterFilterOptions = {
  subscription: { type: 'string', value: 'name', summary: 'only those of this one' },
  type: { type: 'string', value: 'event-type', summary: 'only this one' },
  tenant: { type: 'string', value: 'key', summary: 'only this tenant' },
  stream: { type: 'string', value: 'stream', summary: 'only this stream' },
  since: { type: 'string', value: 'time', summary: 'not older than 12h, 30d, or a date and time' },
} as const;

interface LetterFilterValues {
  readonly subscription?: string | undefined;
  readonly type?: string | undefined;
  readonly tenant?: string | undefined;
  readonly stream?: string | undefined;
  readonly since?: string | undefined;
}

export function letterFilterOf(values: LetterFilterValues, nowMs: number): DeadLetterFilter {
  const { subscription, type, tenant, stream, since } = values;
  return {
    ...(subscription === undefined ? {} : { handler: subscription }),
    ...(type === undefined ? {} : { eventType: type }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(stream === undefined ? {} : { stream }),
    ...(since === undefined ? {} : { since: sinceTime(since, nowMs) }),
  };
}

/** Which letters a command changes: those with these ids, or all that the filter leaves. */
export function chosenLetters(
  { command, ids }: { readonly command: string; readonly ids: readonly string[] },
  values: LetterFilterValues & { readonly all?: boolean | undefined },
  nowMs: number,
): DeadLetterFilter {
  const filter = letterFilterOf(values, nowMs);
  const isFiltered = Object.keys(filter).length > 0;
  if (ids.length > 0) {
    if (isFiltered || values.all === true)
      throw usage(`${command} takes ids or a filter, not both`);
    return { ids };
  }
  if (isFiltered === (values.all === true)) {
    throw usage(`${command} takes ids, a filter (such as --subscription), or --all`);
  }
  return filter;
}

export function sinceTime(text: string, nowMs: number): string {
  const ago = /^\d+[smhdw]$/.test(text) ? durationSeconds('since', text) * 1_000 : undefined;
  const atMs = ago === undefined ? Date.parse(text) : nowMs - ago;
  if (Number.isFinite(atMs)) return new Date(atMs).toISOString();
  throw usage(`--since takes a duration such as 12h, or a date and time, not '${text}'`);
}
